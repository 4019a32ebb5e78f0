import type { ServeSettings } from '../config/settings.ts';
import type { BackendKind } from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import { createLemonadeDriver } from '../drivers/lemonade/index.ts';
import { createLmstudioDriver } from '../drivers/lmstudio/index.ts';
import { createOllamaDriver } from '../drivers/ollama/index.ts';
import type { BackendSpec } from './documents/document.ts';

/** What there is to know of a kind of backend to have one of it. */
interface DriverKind {
  /** The driver of the configured server. */
  create(settings: ServeSettings): Driver;
  /**
   * The driver of a server that a document names. What the flags say of the configured server, its memory and its token, is
   * nothing to this one.
   */
  register(spec: BackendSpec, settings: ServeSettings): Driver;
}

/** A document of a host has an endpoint: it was checked. */
const addressOf = ({ endpoint = '', agentEndpoint }: BackendSpec) => ({ endpoint, agentHost: agentEndpoint });

/** The kinds of backends, one line each. */
const driverKinds: Partial<Record<BackendKind, DriverKind>> = {
  ollama: {
    create: settings =>
      createOllamaDriver({
        endpoint: settings.ollamaEndpoint,
        agentHost: settings.ollamaAgentHost,
        keepAliveDefault: settings.defaultKeepAlive,
        memoryBudgetGiB: settings.ollamaMemoryBudgetGib,
      }),
    register: (spec, { defaultKeepAlive }) =>
      createOllamaDriver({ ...addressOf(spec), keepAliveDefault: defaultKeepAlive }),
  },
  lemonade: {
    create: settings =>
      createLemonadeDriver({ endpoint: settings.lemonadeEndpoint, agentHost: settings.lemonadeAgentHost }),
    register: spec => createLemonadeDriver(addressOf(spec)),
  },
  lmstudio: {
    create: settings =>
      createLmstudioDriver({
        endpoint: settings.lmstudioEndpoint,
        agentHost: settings.lmstudioAgentHost,
        apiToken: settings.lmstudioApiToken,
      }),
    register: spec => createLmstudioDriver(addressOf(spec)),
  },
};

/** The kinds this build can serve. */
export const buildableKinds = Object.keys(driverKinds) as BackendKind[];

export const createDriver = (kind: BackendKind, settings: ServeSettings): Driver => known(kind).create(settings);

/** The driver of a document. Throws when this build has none for its kind. */
export const registeredDriver = (spec: BackendSpec, settings: ServeSettings): Driver =>
  known(spec.kind).register(spec, settings);

function known(kind: BackendKind): DriverKind {
  const found = driverKinds[kind];
  if (!found) throw new Error(`${kind} is not in this version yet; it has ${buildableKinds.join(', ')}`);
  return found;
}
