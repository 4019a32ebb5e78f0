/** All three emulated hosts behind one gateway: the real drivers, real sockets, one clock that the test moves. */

import type { EmulatedLemonade, LemonadeOptions } from '../../src/demo/lemonade.ts';
import { instant as lemonadeInstant, startLemonade } from '../../src/demo/lemonade.ts';
import type { EmulatedLmstudio, LmstudioOptions } from '../../src/demo/lmstudio.ts';
import { instant as lmstudioInstant, startLmstudio } from '../../src/demo/lmstudio.ts';
import {
  type EmulatedOllama,
  manualClock,
  type OllamaOptions,
  instant as ollamaInstant,
  startOllama,
} from '../../src/demo/ollama.ts';
import { createLemonadeDriver } from '../../src/drivers/lemonade/index.ts';
import { createLmstudioDriver } from '../../src/drivers/lmstudio/index.ts';
import { createOllamaDriver } from '../../src/drivers/ollama/index.ts';
import { createMemoryStore } from '../../src/jobs/memory.ts';
import { createJobs } from '../../src/jobs/runner.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { registryOf } from './backends.ts';
import { silent, testGateway } from './gateway.ts';

export interface Hosts extends AsyncDisposable {
  readonly clock: ReturnType<typeof manualClock>;
  readonly ollama: EmulatedOllama;
  readonly lemonade: EmulatedLemonade;
  readonly lmstudio: EmulatedLmstudio;
  /** In the order of its backends: `ollama`, `lemonade`, `lmstudio`. */
  readonly gateway: Gateway;
  /** The next reader looks again, as if the time in which readers share a look were over. */
  lookAgain(): void;
}

export interface HostsOptions {
  readonly ollama?: Omit<OllamaOptions, 'clock'>;
  readonly lemonade?: Omit<LemonadeOptions, 'clock'>;
  readonly lmstudio?: Omit<LmstudioOptions, 'clock'>;
  /** Milliseconds a look at a host may take. */
  readonly lookMs?: number;
}

/** Nothing takes any time unless a timing says so. LM Studio is asked for its downloads all the time. */
export async function startHosts(options: HostsOptions = {}): Promise<Hosts> {
  const stack = new AsyncDisposableStack();
  const clock = manualClock();
  const { now } = clock;
  const ollama = stack.use(
    await startOllama({ ...options.ollama, timings: { ...ollamaInstant, ...options.ollama?.timings }, clock }),
  );
  const lemonade = stack.use(
    await startLemonade({ ...options.lemonade, timings: { ...lemonadeInstant, ...options.lemonade?.timings }, clock }),
  );
  const lmstudio = stack.use(
    await startLmstudio({ ...options.lmstudio, timings: { ...lmstudioInstant, ...options.lmstudio?.timings }, clock }),
  );
  const drivers = [
    createOllamaDriver({
      endpoint: ollama.url,
      keepAliveDefault: '5m',
      now,
      meminfo: async () => 'MemTotal: 67108864 kB\n',
    }),
    createLemonadeDriver({ endpoint: lemonade.url, now, pause: async () => {} }),
    createLmstudioDriver({ endpoint: lmstudio.url, pollMs: 5 }),
  ];
  const { lookMs } = options;
  const jobs = createJobs({ store: createMemoryStore({ retentionMs: 24 * 3_600_000, now }), log: silent, now });
  const gateway = { ...testGateway(), jobs, registry: registryOf(drivers, lookMs === undefined ? {} : { lookMs }) };
  return {
    clock,
    ollama,
    lemonade,
    lmstudio,
    gateway,
    lookAgain: () => {
      for (const backend of gateway.registry.backends) backend.changed();
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}
