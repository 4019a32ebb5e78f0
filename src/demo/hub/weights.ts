import type { ModelFile } from './content.ts';

/** The weights of a model and what belongs to them. */
export interface WeightFiles {
  /** Bytes of its tensors. */
  readonly bytes: number;
  readonly layers: number;
  /** Of one file at most; five billion when absent. */
  readonly shardBytes?: number;
  /** What the index claims where that is not what there is. */
  readonly claimedBytes?: number;
}

/** In front of the tensors of a file is a list of them: bytes for each. */
const headerBytes = 120;
const parts = ['input_layernorm', 'mlp.down_proj', 'mlp.gate_proj', 'mlp.up_proj', 'post_attention_layernorm'].concat(
  ['k_proj', 'o_proj', 'q_proj', 'v_proj'].map(part => `self_attn.${part}`),
);

/** Safetensors in as many files as it takes, with the index of them when there is more than one. */
export function safetensors({ bytes, layers, shardBytes = 5_000_000_000, claimedBytes }: WeightFiles): ModelFile[] {
  const tensors = Array.from({ length: layers }, (_, layer) =>
    parts.map(part => `model.layers.${layer}.${part}.weight`),
  );
  const names = ['model.embed_tokens.weight', ...tensors.flat(), 'model.norm.weight', 'lm_head.weight'];
  const count = Math.ceil(bytes / shardBytes);
  if (count === 1) return [{ path: 'model.safetensors', bytes: bytes + names.length * headerBytes }];
  const shard = (place: number) => `model-${number(place + 1)}-of-${number(count)}.safetensors`;
  const perShard = Math.ceil(names.length / count);
  const map = Object.fromEntries(names.map((name, place) => [name, shard(Math.floor(place / perShard))]));
  const index = { metadata: { total_size: claimedBytes ?? bytes }, weight_map: map };
  const files = Array.from({ length: count }, (_, place) => ({
    path: shard(place),
    bytes: Math.floor(bytes / count) + (place === 0 ? bytes % count : 0) + perShard * headerBytes,
  }));
  return [...files, { path: 'model.safetensors.index.json', text: `${JSON.stringify(index, null, 2)}\n` }];
}

const number = (place: number) => String(place).padStart(5, '0');

/** What a model of this architecture has beside its weights. */
export function configFiles(type: string, config: Readonly<Record<string, unknown>>): ModelFile[] {
  const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  return [
    { path: '.gitattributes', text: '*.safetensors filter=lfs diff=lfs merge=lfs -text\n' },
    { path: 'README.md', text: `---\nlibrary_name: transformers\n---\n\n# A model of the ${type} architecture\n` },
    { path: 'config.json', text: json({ model_type: type, torch_dtype: 'bfloat16', ...config }) },
    { path: 'generation_config.json', text: json({ do_sample: true, temperature: 0.6, top_p: 0.95 }) },
    { path: 'tokenizer_config.json', text: json({ model_max_length: config.max_position_embeddings ?? 4096 }) },
    { path: 'tokenizer.json', bytes: 11_422_654 },
  ];
}
