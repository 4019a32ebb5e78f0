/** Nine models, of every sort that is weighed in another way. */
import { GB } from '../world/units.ts';
import type { HubModel } from './models.ts';
import { configFiles, safetensors } from './weights.ts';

const text = { pipelineTag: 'text-generation', library: 'transformers' } as const;

export const library: readonly HubModel[] = [
  {
    id: 'Qwen/Qwen3-0.6B',
    ...text,
    // One file, no index.
    files: [...configFiles('qwen3', qwen3(28, 1024)), ...safetensors({ bytes: 1_503_264_768, layers: 28 })],
    downloads: 8_412_930,
    likes: 812,
    tags: ['transformers', 'safetensors', 'qwen3', 'text-generation', 'license:apache-2.0'],
    lastModified: new Date('2025-07-26T03:46:27Z'),
  },
  {
    id: 'Qwen/Qwen3-8B',
    ...text,
    files: [
      ...configFiles('qwen3', qwen3(36, 4096)),
      ...safetensors({ bytes: 16_381_470_720, layers: 36, shardBytes: 4 * GB }),
    ],
    downloads: 4_930_118,
    likes: 774,
    tags: ['transformers', 'safetensors', 'qwen3', 'text-generation', 'license:apache-2.0'],
    lastModified: new Date('2025-07-26T03:49:13Z'),
  },
  {
    id: 'Qwen/Qwen2.5-7B-Instruct',
    ...text,
    files: [
      ...configFiles('qwen2', { num_hidden_layers: 28, num_key_value_heads: 4, head_dim: 128 }),
      ...safetensors({ bytes: 15_231_233_024, layers: 28, shardBytes: 4 * GB }),
    ],
    downloads: 7_018_442,
    likes: 1_021,
    tags: ['transformers', 'safetensors', 'qwen2', 'text-generation', 'license:apache-2.0'],
    lastModified: new Date('2025-01-12T02:10:10Z'),
  },
  {
    id: 'openai/gpt-oss-20b',
    ...text,
    // Two more copies of the weights, for other runtimes; the index tells which ones count.
    files: [
      ...configFiles('gpt_oss', { num_hidden_layers: 24, num_key_value_heads: 8, head_dim: 64, sliding_window: 128 }),
      ...safetensors({ bytes: 13_761_264_768, layers: 24 }),
      { path: 'original/config.json', text: '{"num_hidden_layers": 24}\n' },
      { path: 'original/model.safetensors', bytes: 13_761_300_984 },
      { path: 'metal/model.bin', bytes: 13_750_886_400 },
    ],
    downloads: 6_204_551,
    likes: 3_902,
    tags: ['transformers', 'safetensors', 'gpt_oss', 'mxfp4', 'license:apache-2.0'],
    lastModified: new Date('2025-08-26T17:25:47Z'),
  },
  {
    id: 'mistralai/Mistral-Small-3.2-24B-Instruct-2506',
    ...text,
    library: 'vllm',
    // The same weights twice, and the second copy is at the top too.
    files: [
      ...configFiles('mistral3', { num_hidden_layers: 40, num_key_value_heads: 8, head_dim: 128 }),
      ...safetensors({ bytes: 48_022_792_280, layers: 40 }),
      { path: 'consolidated.safetensors', bytes: 48_022_842_360 },
      { path: 'tekken.json', bytes: 19_399_895 },
    ],
    downloads: 371_440,
    likes: 506,
    tags: ['vllm', 'safetensors', 'mistral3', 'license:apache-2.0'],
    lastModified: new Date('2025-07-28T15:34:30Z'),
  },
  {
    id: 'google/gemma-3-27b-it',
    ...text,
    pipelineTag: 'image-text-to-text',
    gated: 'manual',
    files: [
      ...configFiles('gemma3', { text_config: { num_hidden_layers: 62, num_key_value_heads: 16, head_dim: 128 } }),
      ...safetensors({ bytes: 54_864_812_256, layers: 62 }),
      { path: 'tokenizer.model', bytes: 4_689_074 },
    ],
    downloads: 1_120_207,
    likes: 1_633,
    tags: ['transformers', 'safetensors', 'gemma3', 'license:gemma'],
    lastModified: new Date('2025-03-21T20:28:59Z'),
  },
  {
    id: 'ggml-org/gemma-3-4b-it-GGUF',
    pipelineTag: 'image-text-to-text',
    files: [
      { path: '.gitattributes', text: '*.gguf filter=lfs diff=lfs merge=lfs -text\n' },
      { path: 'README.md', text: '# gemma-3-4b-it, quantized\n' },
      { path: 'gemma-3-4b-it-Q4_K_M.gguf', bytes: 2_489_757_856 },
      { path: 'gemma-3-4b-it-Q8_0.gguf', bytes: 4_130_226_336 },
      { path: 'mmproj-model-f16.gguf', bytes: 851_251_104 },
    ],
    downloads: 94_018,
    likes: 57,
    tags: ['gguf', 'license:gemma'],
    lastModified: new Date('2025-04-18T09:12:44Z'),
  },
  {
    id: 'acme/support-assistant-70b-fp8',
    ...text,
    // Its index is the one of the model before its quantization.
    files: [
      ...configFiles('llama', { num_hidden_layers: 80, num_key_value_heads: 8, head_dim: 128 }),
      ...safetensors({ bytes: 72_681_857_024, layers: 80, claimedBytes: 141_107_412_992 }),
    ],
    downloads: 1_204,
    likes: 3,
    tags: ['transformers', 'safetensors', 'llama', 'fp8'],
    lastModified: new Date('2026-05-11T12:00:00Z'),
  },
  {
    id: 'acme/support-assistant-8b',
    ...text,
    private: true,
    files: [
      ...configFiles('llama', { num_hidden_layers: 32, num_key_value_heads: 8, head_dim: 128 }),
      { path: 'pytorch_model-00001-of-00002.bin', bytes: 9_976_576_392 },
      { path: 'pytorch_model-00002-of-00002.bin', bytes: 6_083_999_218 },
      { path: 'pytorch_model.bin.index.json', text: '{"metadata": {"total_size": 16060522496}, "weight_map": {}}\n' },
    ],
    downloads: 12,
    tags: ['transformers', 'pytorch', 'llama'],
    lastModified: new Date('2026-02-03T08:30:00Z'),
  },
];

function qwen3(layers: number, hidden: number) {
  return {
    architectures: ['Qwen3ForCausalLM'],
    num_hidden_layers: layers,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    head_dim: 128,
    hidden_size: hidden,
    max_position_embeddings: 40_960,
  };
}
