import { z } from 'zod';
import type { LoadedModel, Model } from '../../domain.ts';

/**
 * The documents of Ollama's API, read forgivingly: unknown fields pass, a field that is not as expected is unknown, an
 * entry without a name is left out, and the rest of the list stands. `undefined` = this is not that document.
 */

const text = z.string().min(1).optional().catch(undefined);
const bytes = z.int().nonnegative().optional().catch(undefined);
const tokens = z.int().positive().optional().catch(undefined);

const entry = z.object({
  name: text,
  model: text,
  size: bytes,
  digest: text,
  modified_at: text,
  details: z
    .object({ format: text, family: text, parameter_size: text, quantization_level: text, context_length: tokens })
    .optional()
    .catch(undefined),
  capabilities: z.array(z.unknown()).optional().catch(undefined),
  remote_host: text,
  remote_model: text,
  size_vram: bytes,
  context_length: tokens,
  expires_at: text,
});
/** An entry of a list, as far as it could be read. */
export type Entry = z.infer<typeof entry> & { readonly name: string };

/** Servers before 0.1.38 answer `null` for an empty list. */
const list = z.object({ models: z.array(z.unknown()).nullable() });
const version = z.object({ version: z.string().trim().min(1) });

/** The version of `GET /api/version`. */
export function readVersion(document: unknown): string | undefined {
  return version.safeParse(document).data?.version;
}

/** The entries of `GET /api/tags` and `GET /api/ps`, which share their shape. */
export function readEntries(document: unknown): Entry[] | undefined {
  const rows = list.safeParse(document);
  if (!rows.success) return undefined;
  return (rows.data.models ?? []).flatMap(row => {
    const { data } = entry.safeParse(row);
    const name = data?.name ?? data?.model;
    return data && name ? [{ ...data, name }] : [];
  });
}

/** A row of `GET /api/tags`. */
export function modelOf(backend: string, row: Entry): Model {
  const capabilities = row.capabilities?.filter(each => typeof each === 'string' && each !== '') as
    | string[]
    | undefined;
  return {
    backend,
    name: row.name,
    sizeBytes: row.size,
    digest: row.digest,
    modifiedAt: timeOf(row.modified_at),
    format: row.details?.format,
    family: row.details?.family,
    parameterSize: row.details?.parameter_size,
    quantization: row.details?.quantization_level,
    contextLength: row.details?.context_length,
    capabilities: capabilities?.length ? capabilities : undefined,
  };
}

/** A row of `GET /api/ps`; `now` in milliseconds since the epoch. */
export function loadedOf(backend: string, row: Entry, now: number): LoadedModel {
  const expires = timeOf(row.expires_at);
  // "For ever" comes as a date some 292 years ahead.
  const expiresAt = expires && expires.getTime() - now < 100 * 365.25 * 24 * 3600e3 ? expires : undefined;
  return {
    backend,
    name: row.name,
    sizeBytes: row.size,
    digest: row.digest,
    vramBytes: row.size_vram,
    contextLength: row.context_length,
    expiresAt,
    // An unloaded model stays listed, its time in the past, until the request it is answering ends.
    status: expiresAt && expiresAt.getTime() < now ? 'stopping' : 'loaded',
  };
}

/** Whether an entry of `GET /api/tags` is a stub: its weights are at ollama.com, whatever it is called here. */
export const isRemote = (row: Entry) => row.remote_host !== undefined || row.remote_model !== undefined;

/** Whether all digests are zero, as in the list a Lemonade Server answers on Ollama's path. */
export const looksLikeLemonade = (rows: readonly Entry[]) =>
  rows.length > 0 && rows.every(({ digest }) => digest !== undefined && /^(?:sha256:)?0+$/.test(digest));

/** What a Lemonade Server answers as Ollama's version; a true Ollama of that version exists as well. */
export const lemonadeVersion = '0.16.1';

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/** Go's zero time (year 1) is no time, and `Date` alone would read a date into almost any text that ends in a number. */
function timeOf(value: string | undefined): Date | undefined {
  if (value === undefined || !rfc3339.test(value)) return undefined;
  const time = new Date(value.toUpperCase());
  return Number.isNaN(time.getTime()) || time.getUTCFullYear() <= 1 ? undefined : time;
}
