/** A gateway over the emulated Ollama: the real driver, real sockets, a clock that the test moves. */
import { type EmulatedOllama, instant, manualClock, type OllamaOptions, startOllama } from '../../src/demo/ollama.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { createOllamaDriver } from '../../src/drivers/ollama/index.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { type TestGatewayOptions, testGateway } from './gateway.ts';

export interface Emulated extends AsyncDisposable {
  readonly ollama: EmulatedOllama;
  readonly clock: ReturnType<typeof manualClock>;
  readonly driver: Driver;
  readonly gateway: Gateway;
}

export interface EmulatedOptions extends Omit<OllamaOptions, 'clock'> {
  /** Backends beside the emulated one, which comes first. */
  readonly others?: readonly Driver[];
  readonly gateway?: Omit<TestGatewayOptions, 'drivers'>;
}

/** Nothing takes any time unless a timing says so, and then it takes it on `clock`. The host has 64 GiB. */
export async function startEmulated({ others = [], gateway, ...options }: EmulatedOptions = {}): Promise<Emulated> {
  const clock = manualClock();
  const ollama = await startOllama({ timings: instant, ...options, clock });
  const driver = createOllamaDriver({
    endpoint: ollama.url,
    agentHost: 'http://gpu-host:11434',
    keepAliveDefault: '5m',
    now: clock.now,
    meminfo: async () => 'MemTotal: 67108864 kB\n',
  });
  return {
    ollama,
    clock,
    driver,
    gateway: testGateway({ ...gateway, drivers: [driver, ...others] }),
    [Symbol.asyncDispose]: () => ollama.close(),
  };
}
