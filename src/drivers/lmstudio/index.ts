import { setTimeout as sleep } from 'node:timers/promises';
import type { Call } from '../../call.ts';
import type { Capabilities } from '../../domain.ts';
import { parseEndpoint } from '../../endpoint.ts';
import { GatewayError, invalidRequest } from '../../errors.ts';
import { createTurns } from '../../live/turns.ts';
import { agentAddressOf, hostNameOf } from '../address.ts';
import type { Driver } from '../driver.ts';
import { healthFrom } from '../health.ts';
import type { OnRequest } from '../http.ts';
import { endedByLeaving } from '../progress.ts';
import { createLmStudioClient } from './client.ts';
import { abandoned } from './errors.ts';
import { canonicalName, findModel } from './names.ts';
import { type PullServer, progressOf } from './pull.ts';
import { loadedOf, modelOf } from './wire.ts';

export interface LmStudioOptions {
  readonly onRequest?: OnRequest | undefined;
  /** Stamped on every row; `lmstudio` when absent. */
  readonly name?: string | undefined;
  /** Root address of the server, as the gateway dials it: `http://127.0.0.1:1234`. */
  readonly endpoint: string;
  /** As agents dial it, with or without `/v1`; the endpoint when absent or blank. */
  readonly agentHost?: string | undefined;
  /** For a server that asks for one; never shown. */
  readonly apiToken?: string | undefined;
  /** Milliseconds between two questions for a download; 2000 when absent. */
  readonly pollMs?: number | undefined;
}

const capabilities: Capabilities = {
  pull: true,
  pullProgress: true,
  delete: false,
  load: true,
  unload: true,
  loadedModels: true,
  nodeInventory: false,
  presets: false,
  fitCheck: false,
  search: false,
};

/** A driver for one LM Studio server, 0.4.0 or newer. Throws `invalid_request` for an endpoint or a token that is none. */
export function createLmstudioDriver(options: LmStudioOptions): Driver {
  const { name = 'lmstudio', agentHost, apiToken, pollMs = 2_000 } = options;
  const checked = parseEndpoint(options.endpoint);
  if ('problem' in checked) throw invalidRequest(`endpoint of ${name} ${checked.problem}`);
  const { endpoint } = checked;
  const agentEndpoint = agentAddressOf(agentHost, endpoint, '/v1');
  const node = hostNameOf(agentEndpoint);
  const lmStudio = createLmStudioClient(endpoint, apiToken, options.onRequest);
  const inTurn = createTurns();

  /** The instances of a model, by what the server wants to hear to unload them. */
  async function instancesOf(call: Call, key: string): Promise<string[]> {
    const rows = (await lmStudio.library(call)).filter(row => row.key === key);
    return rows.flatMap(row => row.instances.map(({ id = key }) => id));
  }

  /** Every load makes a copy, so only one at a time looks whether there is one already. */
  async function load(call: Call, key: string): Promise<void> {
    try {
      await inTurn(key, call.signal, async () => {
        if ((await instancesOf(call, key)).length === 0) await lmStudio.load(call, key);
      });
    } catch (error) {
      throw error instanceof GatewayError || !call.signal.aborted ? error : abandoned(call, `load of ${key}`);
    }
  }

  const pullServer = (call: Call, reference: string): PullServer => ({
    library: () => lmStudio.library(call),
    start: () => lmStudio.startDownload(call, reference),
    status: id => lmStudio.download(call, id),
    isAbandoned: () => call.signal.aborted,
    async pause() {
      try {
        await sleep(pollMs, undefined, { signal: call.signal });
      } catch {
        throw abandoned(call, `download of ${reference}`);
      }
    },
  });

  return {
    kind: 'lmstudio',
    name,
    capabilities,
    // Only what a completion loaded leaves by itself, after an idle hour; what is loaded from here stays.
    loading: { onDemand: true, idleEviction: false },
    endpoint,
    agentEndpoint,
    canonical: canonicalName,
    find: findModel,
    agentAccess: ({ name }) => ({ protocol: 'openai', url: agentEndpoint, model: name, key: 'placeholder' }),

    // The server does not say its version.
    describe: call => healthFrom(call, () => lmStudio.library(call).then(() => ({ healthy: true }))),
    models: async call => (await lmStudio.library(call)).map(row => modelOf(name, row)),
    loaded: async call => (await lmStudio.library(call)).flatMap(row => loadedOf(name, node, row)),
    // A keep-alive means nothing here.
    load: (call, { model }) => load(call, model),

    async unload(call, { name: key }) {
      for (const instance of new Set(await instancesOf(call, key))) await lmStudio.unload(call, instance);
    },

    pull: (call, { model }) => endedByLeaving(call, bound => progressOf(model.trim(), pullServer(bound, model.trim()))),
  };
}
