/** What the LM Studio of the demo has and can download. */
import type { EmulatedModel, RegistryModel } from '../lmstudio.ts';
import { GB, MB } from './units.ts';

/** Loaded from the start. */
export const loaded = 'qwen/qwen3-4b';

export const library: EmulatedModel[] = [
  {
    name: loaded,
    bytes: 2.5 * GB,
    family: 'qwen3',
    parameterSize: '4B',
    quantization: 'Q4_K_M',
    contextLength: 40_960,
    capabilities: ['completion', 'tools', 'thinking'],
  },
  {
    name: 'text-embedding-nomic-embed-text-v1.5',
    bytes: 84 * MB,
    family: 'nomic-bert',
    quantization: 'Q4_K_M',
    contextLength: 2_048,
    capabilities: ['embedding'],
  },
];

export const registry: RegistryModel[] = [
  { name: 'google/gemma-3-1b', bytes: 806 * MB, family: 'gemma3', parameterSize: '1B', pullMs: 20_000 },
];
