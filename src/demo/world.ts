/**
 * The scripted world of the demo: an emulated Ollama with a library, and a day that repeats every two minutes. A model is
 * loaded and counts down, a pull takes 40 seconds, another one fails, and the host restarts once.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type EmulatedModel, type EmulatedOllama, type RegistryModel, startOllama } from './ollama.ts';

const GB = 1_000_000_000;
const MB = 1_000_000;
const KB = 1_000;

const chat = ['completion', 'tools'];

const library: EmulatedModel[] = [
  {
    name: 'qwen3:8b',
    bytes: 5.2 * GB,
    family: 'qwen3',
    parameterSize: '8.2B',
    quantization: 'Q4_K_M',
    contextLength: 40_960,
    capabilities: [...chat, 'thinking'],
    memoryBytes: 6.9 * GB,
    modifiedAt: new Date('2026-08-14T19:07:33Z'),
  },
  {
    name: 'gemma3:latest',
    bytes: 3.3 * GB,
    family: 'gemma3',
    parameterSize: '4.3B',
    quantization: 'Q4_K_M',
    contextLength: 131_072,
    capabilities: ['completion', 'vision'],
    memoryBytes: 4.6 * GB,
    vramBytes: 2.3 * GB,
    modifiedAt: new Date('2026-08-02T09:30:05Z'),
  },
  {
    name: 'hf.co/unsloth/Qwen3-0.6B-GGUF:Q4_K_M',
    bytes: 397 * MB,
    family: 'qwen3',
    parameterSize: '596.05M',
    quantization: 'Q4_K_M',
    contextLength: 40_960,
    capabilities: chat,
    modifiedAt: new Date('2026-07-29T01:00:00Z'),
  },
  {
    name: 'bge-m3:latest',
    bytes: 1.2 * GB,
    family: 'bert',
    parameterSize: '566.70M',
    quantization: 'F16',
    contextLength: 8_192,
    capabilities: ['embedding'],
    modifiedAt: new Date('2026-06-11T07:45:12Z'),
  },
];

/** Pulled in every round, and deleted again at its end. */
const pulled = 'llama3.2:3b';
/** Its download always breaks off. */
const broken = 'mistral-nemo:12b';

const registry: RegistryModel[] = [
  {
    name: pulled,
    family: 'llama',
    parameterSize: '3.2B',
    quantization: 'Q4_K_M',
    contextLength: 131_072,
    capabilities: chat,
    layers: [{ bytes: 2.02 * GB }, { bytes: 7.7 * KB }, { bytes: 1.4 * KB }, { bytes: 561 }],
    pullMs: 40_000,
  },
  {
    name: 'smollm2:135m',
    family: 'llama',
    parameterSize: '134.52M',
    quantization: 'F16',
    contextLength: 8_192,
    capabilities: chat,
    layers: [{ bytes: 271 * MB }, { bytes: 1.1 * KB }],
    pullMs: 15_000,
  },
  {
    name: broken,
    family: 'llama',
    parameterSize: '12.2B',
    quantization: 'Q4_0',
    layers: [{ bytes: 7.1 * GB }, { bytes: 1.1 * KB }],
    pullMs: 30_000,
    failure: { at: 2.6 * GB, error: 'max retries exceeded: unexpected EOF' },
  },
];

export interface World extends AsyncDisposable {
  /** Root URL of the emulated Ollama. */
  readonly ollamaUrl: string;
  /** Lives its days until it is closed, as a client of the gateway at that URL. `tell` is told what happens. */
  live(gatewayUrl: string, tell: (event: string) => void): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const ollama = await startOllama({ models: library, registry });
  const closing = new AbortController();
  return {
    ollamaUrl: ollama.url,
    async live(gatewayUrl, tell) {
      while (!closing.signal.aborted) {
        try {
          await day(ollama, gatewayUrl, tell, closing.signal);
        } catch (error) {
          if (closing.signal.aborted) return;
          throw error;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      await ollama.close();
    },
  };
}

async function day(ollama: EmulatedOllama, gatewayUrl: string, tell: (event: string) => void, signal: AbortSignal) {
  const ask = (method: string, path: string, body?: object) =>
    fetch(`${gatewayUrl}/api/v1/models${path}`, { method, signal, ...(body && { body: JSON.stringify(body) }) });
  const pause = (seconds: number) => sleep(seconds * 1000, undefined, { signal });

  tell('qwen3:8b is loaded and leaves in 75 s unless somebody uses it');
  await ask('POST', '/load', { model: 'qwen3:8b', keepAlive: '75s' });
  await pause(2);
  tell(`${pulled} is being pulled: 40 s`);
  await ask('POST', '/pull', { model: pulled });
  await pause(10);
  tell(`${broken} is being pulled, and will fail on the way`);
  await ask('POST', '/pull', { model: broken });
  await pause(35);
  tell('gemma3 is loaded by somebody else, who does not ask the gateway');
  ollama.load('gemma3:latest', '60s');
  await pause(40);
  tell('the host restarts: 6 s down, and what was loaded is gone');
  await ollama.restart(6_000);
  await pause(20);
  tell(`${pulled} is deleted; the day begins again`);
  await ask('DELETE', `/${pulled}`);
  await pause(5);
}
