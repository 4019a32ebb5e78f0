import { z } from 'zod';
import type { LoadedModel, Model } from '../../domain.ts';

/**
 * The documents of LM Studio's management API (`/api/v1`, since 0.4.0), read forgivingly: unknown fields pass, a field that
 * is not as expected is unknown, an entry without a key is left out, and the rest of the list stands. `undefined` = this is
 * not that document.
 */

const text = z.string().min(1).optional().catch(undefined);
const bytes = z.int().nonnegative().optional().catch(undefined);
const tokens = z.int().positive().optional().catch(undefined);
const rows = z.array(z.unknown()).optional().catch(undefined);
const any = z.unknown().optional();

const instance = z.object({
  id: text,
  config: z.object({ context_length: tokens }).optional().catch(undefined),
});

const entry = z.object({
  key: z.string().refine(key => key.trim() !== ''),
  type: text,
  architecture: text,
  quantization: z.object({ name: text }).optional().catch(undefined),
  size_bytes: bytes,
  params_string: text,
  loaded_instances: rows,
  max_context_length: tokens,
  format: text,
  capabilities: z.object({ vision: any, trained_for_tool_use: any, reasoning: any }).optional().catch(undefined),
  variants: rows,
});

/** A copy of a model in memory. */
interface Instance {
  /** The key, the key with a number, or free text of a person; absent when the server gave none. */
  readonly id?: string | undefined;
  /** Tokens. */
  readonly contextLength?: number | undefined;
}

/** An entry of the library, as far as it could be read. */
export type Entry = Omit<z.infer<typeof entry>, 'loaded_instances' | 'variants'> & {
  readonly instances: readonly Instance[];
  /** `key@quant` of the files behind the one key. */
  readonly variants: readonly string[];
};

const list = z.object({ models: z.array(z.unknown()) });

/** The library of `GET /api/v1/models`. */
export function readEntries(document: unknown): Entry[] | undefined {
  const found = list.safeParse(document);
  if (!found.success) return undefined;
  return found.data.models.flatMap(row => {
    const { data } = entry.safeParse(row);
    if (!data) return [];
    const { loaded_instances = [], variants = [], ...facts } = data;
    return [{ ...facts, instances: loaded_instances.flatMap(readInstance), variants: variants.filter(isText) }];
  });
}

function readInstance(row: unknown): Instance[] {
  const { data } = instance.safeParse(row);
  return data ? [{ id: data.id, contextLength: data.config?.context_length }] : [];
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** An entry as a model. It is on disk, or it would not be in the library. */
export function modelOf(backend: string, row: Entry): Model {
  return {
    backend,
    name: row.key,
    sizeBytes: row.size_bytes,
    format: row.format,
    family: row.architecture,
    parameterSize: row.params_string,
    quantization: row.quantization?.name,
    contextLength: row.max_context_length,
    capabilities: capabilitiesOf(row),
    downloaded: true,
  };
}

function capabilitiesOf({ type, capabilities }: Entry): string[] {
  // The older spelling is that of `/api/v0`.
  if (type === 'embedding' || type === 'embeddings') return ['embedding'];
  const can = ['completion'];
  if (capabilities?.trained_for_tool_use === true) can.push('tools');
  if (capabilities?.vision === true) can.push('vision');
  if (capabilities?.reasoning !== undefined && capabilities.reasoning !== null) can.push('thinking');
  return can;
}

/**
 * What an entry has in memory, one row per instance, all under the name of the model. The server does not say what an
 * instance takes, so its size is that of the files.
 */
export function loadedOf(backend: string, node: string, row: Entry): LoadedModel[] {
  return row.instances.map(({ id, contextLength = row.max_context_length }) => ({
    backend,
    name: row.key,
    // The first copy usually goes by the model's own name.
    instance: id === row.key ? undefined : id,
    sizeBytes: row.size_bytes,
    contextLength,
    status: 'loaded',
    node,
  }));
}

/** A download as the server tells it. */
export interface Download {
  /** What to ask for it by; absent when there is nothing to follow. */
  readonly id?: string | undefined;
  /** `downloading`, `paused`, `completed`, `failed`, `already_downloaded`, or a word of the future. */
  readonly state: string;
  readonly bytesCompleted?: number | undefined;
  readonly bytesTotal?: number | undefined;
  readonly bytesPerSecond?: number | undefined;
  /** Why it failed. */
  readonly error?: string | undefined;
}

/** Fractions happen; what is no amount at all is ignored. */
const amount = z.number().nonnegative().max(Number.MAX_SAFE_INTEGER).transform(Math.trunc).optional().catch(undefined);

const download = z.object({
  job_id: text,
  status: z.string().min(1),
  downloaded_bytes: amount,
  total_size_bytes: amount,
  bytes_per_second: amount,
});

/** The answer to the start of a download, and to every question after it. */
export function readDownload(document: unknown): Download | undefined {
  const { data } = download.safeParse(document);
  return (
    data && {
      id: data.job_id,
      state: data.status,
      bytesCompleted: data.downloaded_bytes,
      bytesTotal: data.total_size_bytes,
      bytesPerSecond: data.bytes_per_second,
      error: complaintIn(document)?.text,
    }
  );
}

const named = z.object({ instance_id: z.string().min(1) });

/** Whether the answer to a load or an unload names the instance, which is the only proof that it was done. */
export const namesInstance = (document: unknown): boolean => named.safeParse(document).success;

/** What the server says went wrong. */
export interface Complaint {
  readonly text: string;
  /** `model_not_found`, `invalid_request`, …; absent where the error is plain text. */
  readonly type?: string | undefined;
  readonly code?: string | undefined;
}

const failing = z.object({ error: any });
const complaint = z.object({ message: text, type: text, code: text });

/** The `error` of a document of any status, unless it is null: `{"error": "text"}` or `{"error": {"message", "type", …}}`. */
export function complaintIn(document: unknown): Complaint | undefined {
  const error = failing.safeParse(document).data?.error;
  if (error === undefined || error === null) return undefined;
  if (isText(error)) return { text: error.trim() || 'no reason given' };
  const { message = JSON.stringify(error), type, code } = complaint.safeParse(error).data ?? {};
  return { text: message, type, code };
}
