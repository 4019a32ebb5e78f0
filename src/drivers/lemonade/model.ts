import type { LoadedModel, Model } from '../../domain.ts';
import type { LoadedEntry, ModelEntry } from './wire.ts';

/** An entry of the list, as a model of this backend. */
export function modelOf(backend: string, entry: ModelEntry): Model {
  const { id, checkpoint = '', recipe, size, context_length } = entry;
  return {
    backend,
    name: id,
    sizeBytes: bytesOf(size),
    format: formatOf(checkpoint),
    quantization: quantizationOf(checkpoint),
    contextLength: context_length,
    runtime: recipe,
    capabilities: capabilitiesOf(entry),
  };
}

/**
 * Bytes of a size in the server's "GB", of which there are two: 10^9 bytes in its catalog, 2^30 once it has measured what is
 * on disk, and the list does not say which. All are read as 10^9, as clients of the API know them, so that one list has one
 * unit; a downloaded model is then shown up to 7 % smaller than it is.
 */
function bytesOf(size: number | undefined): number | undefined {
  const bytes = Math.round((size ?? 0) * 1e9);
  return bytes > 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** A checkpoint is `org/repo:variant`, `org/repo:path/file.gguf` or a name of the recipe's own, such as `qwen3-it:4b`. */
function formatOf(checkpoint: string): string | undefined {
  if (/gguf/i.test(checkpoint)) return 'gguf';
  if (/\.safetensors/i.test(checkpoint)) return 'safetensors';
  return /[.-]onnx/i.test(checkpoint) ? 'onnx' : undefined;
}

const quantization = /(?<![a-z\d])(?:(?:ud-)?i?q\d[a-z\d_]*|(?:ud-)?bf16|(?:ud-)?f16|(?:ud-)?f32)(?![a-z\d])/gi;

function quantizationOf(checkpoint: string): string | undefined {
  const colon = checkpoint.lastIndexOf(':');
  if (!checkpoint.slice(0, Math.max(0, colon)).includes('/')) return undefined;
  // A file is named for the model first and for what was done to it last.
  return checkpoint
    .slice(colon + 1)
    .match(quantization)
    ?.at(-1);
}

const words: Readonly<Record<string, string>> = {
  chat: 'completion',
  'tool-calling': 'tools',
  reasoning: 'thinking',
  embeddings: 'embedding',
  classifier: 'classification',
};
/** Labels that advertise a model and say nothing of what it can do. */
const advertising = new Set(['hot', 'experimental', 'mtp']);
/** Labels that say what a model is for. */
const purposes = new Set([
  'chat',
  'transcription',
  'embeddings',
  'embedding',
  'reranking',
  'image',
  'tts',
  'audio-generation',
  'classification',
  'classifier',
  '3d',
]);
/** What runs language models, unless a label says that a model is for something else. */
const languageRecipes = new Set(['llamacpp', 'flm', 'vllm', 'ryzenai-llm', 'cloud', 'ds4']);

function capabilitiesOf({ labels = [], recipe = '' }: ModelEntry): readonly string[] | undefined {
  const given = labels.flatMap(label => (typeof label === 'string' ? [label.trim().toLowerCase()] : []));
  const found = new Set(
    given.filter(label => label !== '' && !advertising.has(label)).map(each => words[each] ?? each),
  );
  const chats = languageRecipes.has(recipe.toLowerCase()) && !given.some(label => purposes.has(label));
  const others = [...found].filter(word => word !== 'completion');
  const all = chats || found.has('completion') ? ['completion', ...others] : others;
  return all.length > 0 ? all : undefined;
}

/** States in which a model answers: it may be doing so, or have given memory back until the next request. */
const answering = new Set(['', 'ready', 'in_use', 'downsizing', 'downsized']);
/** States on the way in or out, whatever the process behind the model says of itself. */
const moving = new Set(['loading', 'evicting', 'unloaded']);

/** An entry of the health document, as a loaded model; `listed` is the model it is of, `node` the host's name. */
export function loadedOf(
  { backend, node }: { readonly backend: string; readonly node: string },
  entry: LoadedEntry,
  listed: Model | undefined,
): LoadedModel {
  return {
    backend,
    name: entry.model_name,
    // The server does not say what a model takes in memory; its weights are the most of it.
    sizeBytes: listed?.sizeBytes,
    contextLength: entry.recipe_options?.ctx_size ?? listed?.contextLength,
    node,
    status: statusOf(entry),
    device: deviceOf(entry.device),
    pinned: entry.pinned,
  };
}

function statusOf({ status = '', backend_health = '' }: LoadedEntry): string {
  const word = status.trim().toLowerCase();
  const there = answering.has(word) || (backend_health.trim().toLowerCase() === 'ready' && !moving.has(word));
  return there ? 'loaded' : word;
}

/** The server joins several devices with `|`, its documentation with blanks; `none` is no device. */
function deviceOf(device = ''): string | undefined {
  const devices = device.toLowerCase().split(/[|,\s]+/);
  return devices.filter(each => each !== '' && each !== 'none').join(' ') || undefined;
}
