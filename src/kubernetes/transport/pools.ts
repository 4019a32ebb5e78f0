import { Agent, type Dispatcher, ProxyAgent } from 'undici';
import { guardedConnector } from '../../egress.ts';
import type { Access, ClientCertificate, Trust } from '../access.ts';

/**
 * Connections to the API server. A connection is only ever used by one side: the gateway's carry its client certificate,
 * those for callers' tokens never do. Watches keep theirs for minutes, so they have pools of their own.
 */
export interface Pools {
  own(use: Use, trust: Trust, certificate: ClientCertificate | undefined): Dispatcher;
  callers(use: Use, trust: Trust): Dispatcher;
}

export type Use = 'short' | 'watch';

/** Watches are bounded by who opens them; one that waited for another to end would miss what happens. */
const connections: Readonly<Record<Use, number | null>> = { short: 32, watch: null };
/** undici's own timers are off: what is bounded is bounded by the request. */
const timeouts = { headersTimeout: 0, bodyTimeout: 0 } as const;
const connectTimeoutMs = 5_000;
/** A watch may be silent for minutes: without probes nobody would notice that its other end is gone. */
const probes = { keepAlive: true, keepAliveInitialDelay: 30_000 } as const;

export function createPools({ proxyUrl }: Pick<Access, 'proxyUrl'>): Pools {
  const own = { short: createSlot(), watch: createSlot() };
  const callers = { short: createSlot(), watch: createSlot() };

  function connect(use: Use, { ca, serverName, insecure }: Trust, certificate?: ClientCertificate): Dispatcher {
    const tls = {
      ...probes,
      timeout: connectTimeoutMs,
      ...(ca !== undefined && { ca }),
      ...(serverName !== undefined && { servername: serverName }),
      ...(insecure && { rejectUnauthorized: false }),
      ...certificate,
    };
    const options = { ...timeouts, connections: connections[use] };
    return proxyUrl === undefined
      ? new Agent({ ...options, connect: guardedConnector(tls) })
      : new ProxyAgent({
          ...options,
          uri: proxyUrl,
          requestTls: tls,
          proxyTls: { ...probes, timeout: connectTimeoutMs },
        });
  }

  return {
    own: (use, trust, certificate) =>
      own[use]([trust.ca, certificate?.cert, certificate?.key], () => connect(use, trust, certificate)),
    callers: (use, trust) => callers[use]([trust.ca], () => connect(use, trust)),
  };
}

/** The newest pool for what may be renewed in files. One that is outdated ends with the requests that it still has. */
function createSlot() {
  let key: readonly (string | undefined)[] = [];
  let pool: Dispatcher | undefined;
  return (wanted: readonly (string | undefined)[], make: () => Dispatcher): Dispatcher => {
    if (pool && wanted.every((each, index) => each === key[index])) return pool;
    void pool?.close();
    key = wanted;
    pool = make();
    return pool;
  };
}
