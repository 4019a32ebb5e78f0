import type { SearchResult } from '../../../domain.ts';
import type { HubFile, ShardIndex } from './weights.ts';

/** What the Hub says of a repository. */
export interface Repository {
  /** As the Hub spells it. */
  readonly id: string;
  /** Its terms have to be accepted first, by a click or by asking. */
  readonly gated: boolean;
  readonly private: boolean;
}

/** A repository that a search found; which backend searched and which presets serve it is not the Hub's to say. */
export type Hit = Omit<SearchResult, 'backend' | 'presets'>;

/** The answer to `/api/models/<repository>`; undefined when it is none. */
export function readRepository(document: unknown): Repository | undefined {
  if (!isObject(document)) return undefined;
  const id = textIn(document.id) ?? textIn(document.modelId);
  return id === undefined ? undefined : { id, gated: isGated(document.gated), private: document.private === true };
}

/** The answer to `/api/models/<repository>/tree/<revision>`; undefined when it is none. Directories are left out. */
export function readFiles(document: unknown): HubFile[] | undefined {
  if (!Array.isArray(document)) return undefined;
  return document.filter(isObject).flatMap(({ type, path, size, lfs }) => {
    if (type !== 'file' || typeof path !== 'string' || path === '') return [];
    // The size beside `lfs` can be the one of the pointer.
    return [{ path, bytes: bytesIn(isObject(lfs) ? lfs.size : size) }];
  });
}

/** The content of `model.safetensors.index.json`; undefined when it says neither a total nor a shard. */
export function readIndex(document: unknown): ShardIndex | undefined {
  if (!isObject(document)) return undefined;
  const { metadata, weight_map: map } = document;
  const total = isObject(metadata) ? metadata.total_size : undefined;
  const shards = isObject(map) ? Object.values(map).filter(file => typeof file === 'string') : [];
  // Some writers have it as 8.04e9, and a few with a fraction.
  const bytes = typeof total === 'number' ? bytesIn(Math.round(total)) : undefined;
  const totalBytes = bytes === 0 ? undefined : bytes;
  return totalBytes === undefined && shards.length === 0 ? undefined : { totalBytes, shards: [...new Set(shards)] };
}

/** The answer to a search; undefined when it is none. */
export function readHits(document: unknown): Hit[] | undefined {
  if (!Array.isArray(document)) return undefined;
  return document.filter(isObject).flatMap(row => {
    const id = textIn(row.id) ?? textIn(row.modelId);
    if (id === undefined) return [];
    const [owner, name] = id.split('/');
    return [
      {
        id,
        // Left out of searches.
        author: textIn(row.author) ?? (name === undefined ? undefined : owner),
        downloads: bytesIn(row.downloads),
        likes: bytesIn(row.likes),
        gated: isGated(row.gated),
        private: row.private === true,
        pipelineTag: textIn(row.pipeline_tag),
        library: textIn(row.library_name),
        tags: Array.isArray(row.tags) ? row.tags.filter(tag => typeof tag === 'string') : undefined,
        lastModified: dateIn(row.lastModified),
      },
    ];
  });
}

/**
 * The query of the next page, `?…`, by a `Link` header; undefined on the last one. Just the query: behind a mirror the
 * address in the header may still be that of the Hub.
 */
export function nextQueryOf(link: string | undefined): string | undefined {
  for (const [, address = '', parameters = ''] of (link ?? '').matchAll(/<([^<>]*)>([^<]*)/g)) {
    if (!/;\s*rel="?next\b/i.test(parameters)) continue;
    const query = address.indexOf('?');
    return query < 0 ? undefined : address.slice(query).replace(/#.*$/s, '');
  }
  return undefined;
}

/** `auto` and `manual` say how access is given; older Hubs say `true`. */
const isGated = (gated: unknown) => gated === true || (typeof gated === 'string' && gated !== '');
const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textIn = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
const bytesIn = (value: unknown) =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;

function dateIn(value: unknown): Date | undefined {
  const date = typeof value === 'string' ? new Date(value) : undefined;
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date;
}
