import type { ServeSettings } from '../config/settings.ts';
import type { BackendKind } from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import { createLemonadeDriver } from '../drivers/lemonade/index.ts';
import { createLmstudioDriver } from '../drivers/lmstudio/index.ts';
import { createOllamaDriver } from '../drivers/ollama/index.ts';

/** What there is to know of a kind of backend to have one of it. */
interface DriverKind {
  /** The driver of the configured server. */
  create(settings: ServeSettings): Driver;
}

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
  },
  lemonade: {
    create: settings =>
      createLemonadeDriver({ endpoint: settings.lemonadeEndpoint, agentHost: settings.lemonadeAgentHost }),
  },
  lmstudio: {
    create: settings =>
      createLmstudioDriver({
        endpoint: settings.lmstudioEndpoint,
        agentHost: settings.lmstudioAgentHost,
        apiToken: settings.lmstudioApiToken,
      }),
  },
};

/** The kinds this build can serve. */
export const buildableKinds = Object.keys(driverKinds) as BackendKind[];

export function createDriver(kind: BackendKind, settings: ServeSettings): Driver {
  const known = driverKinds[kind];
  if (!known) throw new Error(`no driver for ${kind}`);
  return known.create(settings);
}
