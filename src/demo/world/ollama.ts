/** What the Ollama of the demo has and can pull. */
import type { EmulatedModel, RegistryModel } from '../ollama.ts';
import { GB, KB, MB } from './units.ts';

const chat = ['completion', 'tools'];

export const library: EmulatedModel[] = [
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
export const pulled = 'llama3.2:3b';
/** Its download always breaks off. */
export const broken = 'mistral-nemo:12b';

export const registry: RegistryModel[] = [
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
