/** The real server, where everybody has to sign in, and a provider to sign in at. */
import { type Logger, pino } from 'pino';
import type { OauthSettings } from '../../src/config/oauth.ts';
import { createIdentity, type Identity } from '../../src/identity/identity.ts';
import { type Issuer, platform, startIssuer } from '../support/issuer.ts';
import { eventually, type ServerSetup, startServer, type TestServer } from '../support/server.ts';

/** Where the gateway says that it is. */
export const baseUrl = 'https://models.example.com';

export const settingsFor = (issuer: string, others: Partial<OauthSettings> = {}): OauthSettings => ({
  baseUrl,
  issuer,
  audiences: [platform],
  caFile: '',
  allowPrivateIssuer: true,
  allowPrivateKeys: true,
  downstream: false,
  ...others,
});

export interface Lab extends AsyncDisposable {
  readonly issuer: Issuer;
  readonly identity: Identity;
  /** Log lines of identity, as text. */
  readonly logged: string[];
}

export interface LabSetup {
  readonly now?: () => number;
  readonly settings?: Partial<OauthSettings>;
  /** What is done to the provider before it is asked. */
  prepare?(issuer: Issuer): void;
  /** Comes back before the keys were read. */
  readonly early?: boolean;
}

export async function startLab({ now, settings, prepare, early = false }: LabSetup = {}): Promise<Lab> {
  const issuer = await startIssuer(now);
  prepare?.(issuer);
  const logged: string[] = [];
  const log: Logger = pino({ level: 'debug' }, { write: line => logged.push(line) });
  const identity = createIdentity(settingsFor(issuer.url, settings), log, now);
  if (!early) await eventually(() => identity.waiting() === undefined, 'the keys are read');
  return {
    issuer,
    identity,
    logged,
    async [Symbol.asyncDispose]() {
      identity.stop();
      await issuer[Symbol.asyncDispose]();
    },
  };
}

export interface ServedLab extends Lab {
  readonly server: TestServer;
}

export async function serveLab(setup: ServerSetup & LabSetup = {}): Promise<ServedLab> {
  const lab = await startLab(setup);
  const server = await startServer({ ...setup, identity: lab.identity });
  return {
    ...lab,
    server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await lab[Symbol.asyncDispose]();
    },
  };
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
