/** What the Lemonade of the demo has and can pull: models on its NPU and on its GPU. */
import type { EmulatedModel, RegistryModel } from '../lemonade.ts';
import { GB, MB } from './units.ts';

/** Loaded from the start, and pinned. */
export const pinned = 'Qwen3-4B-Hybrid';

export const library: EmulatedModel[] = [
  { name: pinned, bytes: 2.9 * GB, recipe: 'ryzenai-llm', labels: ['chat', 'reasoning'], device: 'npu' },
  {
    name: 'Gemma-3-4b-it-GGUF',
    checkpoint: 'ggml-org/gemma-3-4b-it-GGUF:Q4_K_M',
    bytes: 3.3 * GB,
    labels: ['chat', 'vision'],
    contextLength: 131_072,
  },
  {
    name: 'nomic-embed-text-v1-GGUF',
    checkpoint: 'nomic-ai/nomic-embed-text-v1-GGUF:Q4_K_S',
    bytes: 78 * MB,
    labels: ['embeddings'],
    device: 'cpu',
  },
];

/** Pulled in every round, file by file, and deleted again at its end. */
export const pulled = 'Qwen2.5-VL-7B-Instruct-GGUF';

export const registry: RegistryModel[] = [
  {
    name: pulled,
    checkpoint: 'ggml-org/Qwen2.5-VL-7B-Instruct-GGUF:Q4_K_M',
    labels: ['chat', 'vision'],
    files: [
      { name: 'Qwen2.5-VL-7B-Instruct-Q4_K_M.gguf', bytes: 4.7 * GB },
      { name: 'mmproj-Qwen2.5-VL-7B-Instruct-Q8_0.gguf', bytes: 853 * MB },
    ],
    pullMs: 30_000,
  },
];
