/** What the pod that looks at the cache prints, one directory on a line. */
import type { Read } from '../../../config/values.ts';
import { parsedOrUndefined } from '../../../kubernetes/errors.ts';
import { type CacheEntry, type Count, dateOf, type Marker, printable, readMarker, sortedEntries } from './entry.ts';

/** More is not read. */
export const scanOutputLimit = 8 * 1024 * 1024;

/**
 * `DIR <name> <bytes> <files> <mtime> <hasModel>` and `MARKER <name> <JSON>` between tabs, then `END`. Whatever else is
 * between them is not the script's; of a directory that is named twice the first line counts.
 */
export function parseScan(output: string): Read<Count> {
  const entries = new Map<string, CacheEntry>();
  const markers = new Map<string, Marker>();
  let strange = 0;
  for (const line of linesOf(output)) {
    if (line === 'END' && output.length <= scanOutputLimit) return { value: counted(entries, markers, strange) };
    const [word, name = '', ...fields] = line.split('\t');
    if (word === 'DIR') {
      const entry = entryIn(name, fields);
      if (!entry) strange++;
      else if (!entries.has(entry.dir)) entries.set(entry.dir, entry);
    } else if (word === 'MARKER') {
      const marker = readMarker(parsedOrUndefined(fields.join('\t')));
      if (marker) markers.set(printable(name), marker);
      else strange++;
    }
  }
  return { problem: 'scan output truncated (no END line)' };
}

function* linesOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end < 0 ? text.length : end);
    yield line.endsWith('\r') ? line.slice(0, -1) : line;
    if (end < 0) return;
    at = end + 1;
  }
}

function counted(entries: Map<string, CacheEntry>, markers: Map<string, Marker>, strange: number): Count {
  const marked = [...entries.values()].map(entry => {
    const marker = markers.get(entry.dir);
    return marker ? { ...entry, marker } : entry;
  });
  return {
    entries: sortedEntries(marked),
    warnings: strange > 0 ? [`${strange} lines about the cache could not be read`] : [],
  };
}

/** Without the last column, it is as before that was there: then every directory counted as a model. */
function entryIn(name: string, [bytes, files, mtime, hasModel = '1']: readonly string[]): CacheEntry | undefined {
  const counts = [bytes, files].map(countOf);
  const [size, number] = counts;
  if (name === '' || name.startsWith('.') || name.includes('/') || size === undefined || number === undefined) {
    return undefined;
  }
  if (hasModel !== '0' && hasModel !== '1') return undefined;
  return {
    dir: printable(name),
    bytes: size,
    files: number,
    mtime: /^-?\d{1,12}$/.test(mtime ?? '') ? dateOf(Number(mtime) * 1000) : undefined,
    hasModel: hasModel === '1',
  };
}

function countOf(text = ''): number | undefined {
  const count = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(count) ? count : undefined;
}
