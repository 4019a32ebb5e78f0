import { type Downloader, type Job, standingOf } from './downloads.ts';
import type { Features } from './features.ts';
import type { Instance } from './instances.ts';
import { type EmulatedModel, isEmbedding } from './models.ts';

const publisherOf = ({ name, publisher }: EmulatedModel) =>
  publisher ?? (name.includes('/') ? name.replace(/\/.*/s, '') : 'lmstudio-community');

const has = ({ capabilities }: EmulatedModel, capability: string) => capabilities?.includes(capability) ?? false;

/** One entry of the list of models, with its instances. */
export function modelEntry(model: EmulatedModel, instances: readonly Instance[], features: Features) {
  const embeds = isEmbedding(model);
  const { family = null, quantization = null, bitsPerWeight = 4, variants } = model;
  const entry = {
    type: embeds ? 'embedding' : 'llm',
    publisher: publisherOf(model),
    key: model.name,
    display_name: model.displayName ?? model.name.replace(/^.*\//s, ''),
    ...(embeds ? {} : { architecture: family }),
    quantization: quantization === null ? null : { name: quantization, bits_per_weight: bitsPerWeight },
    size_bytes: model.bytes,
    params_string: model.parameterSize ?? null,
    loaded_instances: instances
      .filter(each => each.model.name === model.name)
      .map(({ id, config }) => ({ id, config })),
    max_context_length: model.contextLength ?? 4096,
    format: model.format === undefined ? 'gguf' : model.format,
    ...(embeds ? {} : { capabilities: capabilitiesOf(model, features), description: null }),
    ...(variants && features.variants ? { variants, selected_variant: variants[0] } : {}),
    ...model.row,
  };
  return Object.fromEntries(Object.entries(entry).filter(([, value]) => value !== undefined));
}

const capabilitiesOf = (model: EmulatedModel, features: Features) => ({
  vision: has(model, 'vision'),
  trained_for_tool_use: has(model, 'tools'),
  ...(has(model, 'thinking') && features.variants
    ? { reasoning: { allowed_options: ['off', 'on'], default: 'on' } }
    : {}),
});

/** The same model as releases before the management API list it. */
export function oldModelEntry(model: EmulatedModel, instances: readonly Instance[]) {
  const loaded = instances.find(each => each.model.name === model.name);
  return {
    id: model.name,
    object: 'model',
    type: isEmbedding(model) ? 'embeddings' : has(model, 'vision') ? 'vlm' : 'llm',
    publisher: publisherOf(model),
    arch: model.family ?? null,
    compatibility_type: model.format ?? 'gguf',
    quantization: model.quantization ?? null,
    state: loaded ? 'loaded' : 'not-loaded',
    max_context_length: model.contextLength ?? 4096,
    ...(loaded ? { loaded_context_length: loaded.config.context_length } : {}),
  };
}

/** Where a download stands, as a poll is told. */
export function jobDocument(downloader: Downloader, job: Job) {
  const { status, bytes, bytesPerSecond, estimatedCompletion, completedAt, error } = standingOf(downloader, job);
  const date = (ms: number) => new Date(ms).toISOString();
  return {
    job_id: job.id,
    status,
    ...(bytesPerSecond === undefined ? {} : { bytes_per_second: bytesPerSecond }),
    ...(estimatedCompletion === undefined ? {} : { estimated_completion: date(estimatedCompletion) }),
    total_size_bytes: job.published.model.bytes,
    downloaded_bytes: bytes,
    started_at: date(job.startedAt),
    ...(completedAt === undefined ? {} : { completed_at: date(completedAt) }),
    ...(error === undefined ? {} : { error }),
  };
}

/** What the one who starts a download is told. */
export const startedDocument = ({ id, published, startedAt }: Job) => ({
  job_id: id,
  status: 'downloading',
  total_size_bytes: published.model.bytes,
  started_at: new Date(startedAt).toISOString(),
});
