import type { Job } from './downloads/pulls.ts';
import type { Features } from './features.ts';
import { type Memory, poolOf, type Resident, statusOf } from './memory.ts';
import {
  checkpointOf,
  type Entry,
  fileKey,
  labelsOf,
  publicName,
  recipeOf,
  type State,
  slotTypes,
  typeOf,
} from './models.ts';

/** One row of the list of models. */
export function modelRow(state: State, entry: Entry, features: Features): Record<string, unknown> {
  const { facts, downloaded } = entry;
  const checkpoint = checkpointOf(entry);
  const size = sizeOf(entry, features);
  const row = {
    id: features.publicNames ? publicName(state, entry) : entry.id,
    object: 'model',
    created: 1234567890,
    owned_by: 'lemonade',
    checkpoint,
    checkpoints: { main: checkpoint },
    components: facts.components ?? [],
    recipe: recipeOf(entry),
    recipe_options: {},
    ...(features.downloadedFlag ? { downloaded } : {}),
    ...(features.storage ? { update_available: false } : {}),
    suggested: true,
    source: 'huggingface',
    ...(features.registrySource ? { registry_source: 'huggingface' } : {}),
    ...(features.downloadedFlag ? { labels: labelsOf(entry) } : {}),
    ...(size > 0 ? { size } : {}),
    ...(features.maxContextWindow && facts.maxContextWindow ? { max_context_window: facts.maxContextWindow } : {}),
    ...(features.contextLength && facts.contextLength ? { context_length: facts.contextLength } : {}),
    ...facts.row,
  };
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
}

/** In GB as the catalog says, or in GiB as the disk has it, under one name. */
export function sizeOf({ bytes, downloaded, pulled }: Entry, features: Features): number {
  const measured = downloaded && (features.measuresAll || (pulled && features.measuresPulled));
  const size = bytes / (measured ? 2 ** 30 : 1e9);
  return Number(size.toFixed(size < 1 ? 3 : size < 10 ? 2 : 1));
}

/** The files of a model, as its own route lists them. */
export const fileList = (state: State, entry: Entry) => ({
  model_id: publicName(state, entry),
  files: entry.files.map((file, place) => ({
    name: file.name,
    role: file.name.startsWith('mmproj') ? 'mmproj' : place === 0 ? 'main' : 'other',
    size_bytes: file.bytes,
    exists: state.files.has(fileKey(entry, file)),
  })),
});

export function healthDocument(memory: Memory, version: string, residents: Resident[], coming: Entry | undefined) {
  const { state, features, maxModels } = memory;
  const latest = [...residents].sort((a, b) => b.lastUse - a.lastUse)[0];
  const perType = (count: (type: string) => number) =>
    Object.fromEntries([...slotTypes].sort().map(type => [type, count(type)]));
  const rows = residents.map(resident => residentRow(memory, resident));
  return {
    status: 'ok',
    version,
    model_loaded: latest ? publicName(state, latest.entry) : null,
    ...(features.allModelsLoaded ? { all_models_loaded: coming ? [...rows, comingRow(memory, coming)] : rows } : {}),
    max_models: perType(() => maxModels),
    ...(features.residency
      ? { pinned_models: perType(type => residents.filter(each => each.pinned && typeOf(each.entry) === type).length) }
      : {}),
    telemetry: { enabled: false },
    update_check_done: true,
    websocket_port: 9000,
  };
}

interface Seen {
  readonly status: string;
  readonly device: string;
  readonly contextLength: number;
  readonly pinned: boolean;
  readonly streaming: boolean;
  readonly lastUse: number;
}

const residentRow = (memory: Memory, resident: Resident) =>
  memoryRow(memory, resident.entry, {
    status: statusOf(resident),
    device: resident.entry.facts.device ?? 'gpu',
    contextLength: resident.contextLength,
    pinned: resident.pinned,
    streaming: resident.streams > 0,
    lastUse: resident.lastUse,
  });

const comingRow = (memory: Memory, entry: Entry) =>
  memoryRow(memory, entry, {
    status: 'loading',
    device: 'none',
    contextLength: memory.contextLength,
    pinned: false,
    streaming: false,
    lastUse: memory.clock.now(),
  });

function memoryRow({ state, features }: Memory, entry: Entry, seen: Seen) {
  const type = typeOf(entry);
  const away = ['loading', 'evicting', 'unloaded'].includes(seen.status);
  const process = { backend_url: 'http://127.0.0.1:8001/v1', last_use: seen.lastUse };
  const about = {
    model_name: features.publicNames ? publicName(state, entry) : entry.id,
    checkpoint: checkpointOf(entry),
    type,
    device: seen.device,
    recipe: recipeOf(entry),
    recipe_options: { ctx_size: seen.contextLength },
  };
  if (!features.residency) return { ...about, ...process };
  return {
    ...about,
    status: seen.status,
    backend_health: away ? 'stopped' : seen.status === 'in_use' ? 'busy' : 'ready',
    backend_alive: true,
    loaded: seen.status !== 'loading' && seen.status !== 'unloaded',
    is_busy: seen.status === 'in_use',
    is_streaming: seen.streaming,
    pinned: seen.pinned,
    pid: 25339,
    ...process,
    residency_class: 'standard',
    slot_pool: poolOf(type),
    watchdog_reset: false,
  };
}

/** One row of the list of downloads. */
export function jobRow({ entry, status, running, last, completedBytes, error }: Job) {
  const sofar = completedBytes + last.bytes_downloaded;
  return {
    id: `model:${entry.id}`,
    model_name: entry.id,
    type: 'model',
    status,
    running,
    complete: status === 'completed',
    file: last.file,
    file_index: last.file_index,
    total_files: last.total_files,
    bytes_downloaded: last.bytes_downloaded,
    bytes_total: last.bytes_total,
    bytes_previously_downloaded: last.bytes_previously_downloaded,
    completed_files_bytes: completedBytes,
    cumulative_bytes_downloaded: sofar,
    overall_bytes_downloaded: sofar,
    percent: last.percent,
    total_download_size: last.total_download_size ?? 0,
    ...(error === undefined ? {} : { error }),
  };
}
