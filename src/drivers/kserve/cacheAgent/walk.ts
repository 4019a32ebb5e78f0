/** Counting a folder that other people write to: no link is followed, and what vanishes meanwhile was not there. */
import { type Dirent, constants as flags } from 'node:fs';
import { lstat, open, opendir, realpath, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { parsedOrUndefined } from '../../../kubernetes/errors.ts';
import {
  type CacheEntry,
  type Count,
  dateOf,
  isModelFile,
  type Marker,
  markerFolder,
  printable,
  readMarker,
  sortedEntries,
} from '../inventory/entry.ts';

/** Folders that are read at the same time, and files of each that are looked at. */
const foldersAtOnce = 8;
const filesAtOnce = 32;
/** Longer markers are none, in bytes. */
const markerLimit = 64 * 1024;
const mostWarnings = 100;

/** What is counted of a directory at the top. */
interface Sum {
  readonly name: string;
  bytes: number;
  files: number;
  hasModel: boolean;
}

interface Folder {
  readonly path: string;
  readonly sum: Sum;
  readonly isTop: boolean;
}

/** The directories at the top of a folder. Rejects when it cannot be read itself; what cannot below is a warning. */
export async function countFolder(root: string): Promise<Count> {
  const base = await realpath(root);
  const warnings = createWarnings(base);
  const sums: Sum[] = [];
  for await (const dirent of await opendir(base)) {
    if (!dirent.isDirectory() || dirent.name.startsWith('.')) continue;
    sums.push({ name: dirent.name, bytes: 0, files: 0, hasModel: false });
  }
  const folders = sums.map(sum => ({ path: join(base, sum.name), sum, isTop: true }));
  await readAll(folders, folder => readFolder(folder, base, warnings));
  const entries: CacheEntry[] = [];
  for (const sum of sums) {
    const entry = await entryOf(sum, base, warnings);
    if (entry) entries.push(entry);
  }
  return { entries: sortedEntries(entries), warnings: warnings.all() };
}

/** Reads folders and those in them, some at a time, the last found first: so few are ever waiting. */
function readAll(waiting: Folder[], read: (folder: Folder) => Promise<readonly Folder[]>): Promise<void> {
  return new Promise((resolve, reject) => {
    let running = 0;
    const next = () => {
      while (running < foldersAtOnce) {
        const folder = waiting.pop();
        if (!folder) break;
        running++;
        read(folder).then(found => {
          running--;
          waiting.push(...found);
          next();
        }, reject);
      }
      if (running === 0) resolve();
    };
    next();
  });
}

async function readFolder({ path, sum, isTop }: Folder, base: string, warnings: Warnings): Promise<Folder[]> {
  const found: Folder[] = [];
  let looking: Promise<void>[] = [];
  try {
    for await (const dirent of await opendir(path, { bufferSize: 256 })) {
      const inside = join(path, dirent.name);
      if (dirent.isDirectory()) found.push({ path: inside, sum, isTop: false });
      else if (dirent.isFile()) looking.push(addFile(inside, sum, warnings));
      if (isTop && isModelFile(dirent.name)) looking.push(noteModel(inside, dirent, sum, base));
      if (looking.length < filesAtOnce) continue;
      await Promise.all(looking);
      looking = [];
    }
  } catch (error) {
    warnings.add(path, error);
  }
  await Promise.all(looking);
  return found;
}

async function addFile(path: string, sum: Sum, warnings: Warnings): Promise<void> {
  try {
    const { size } = await lstat(path);
    sum.bytes += size;
    sum.files++;
  } catch (error) {
    warnings.add(path, error);
  }
}

/** A link counts as the file that it leads to, as long as that is in the cache. */
async function noteModel(path: string, dirent: Dirent, sum: Sum, base: string): Promise<void> {
  if (dirent.isFile()) sum.hasModel = true;
  if (!dirent.isSymbolicLink()) return;
  const target = await realpath(path).catch(() => '');
  if (!target.startsWith(base + sep)) return;
  const seen = await stat(target).catch(() => undefined);
  if (seen?.isFile()) sum.hasModel = true;
}

async function entryOf({ name, ...sum }: Sum, base: string, warnings: Warnings): Promise<CacheEntry | undefined> {
  const path = join(base, name);
  try {
    const { mtimeMs } = await lstat(path);
    const marker = await markerOf(name, base, warnings);
    const mtime = dateOf(Math.floor(mtimeMs / 1000) * 1000);
    return { dir: printable(name), ...sum, mtime, ...(marker && { marker }) };
  } catch (error) {
    warnings.add(path, error);
    return undefined;
  }
}

/** Only a plain file is read: a link leads elsewhere, and a pipe would never end. */
async function markerOf(name: string, base: string, warnings: Warnings): Promise<Marker | undefined> {
  const path = join(base, markerFolder, `${name}.json`);
  try {
    const folder = await lstat(join(base, markerFolder));
    if (!folder.isDirectory()) return undefined;
    const file = await open(path, flags.O_RDONLY | flags.O_NOFOLLOW | flags.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) return undefined;
      const { buffer, bytesRead } = await file.read(Buffer.alloc(markerLimit), 0, markerLimit, 0);
      const marker = readMarker(parsedOrUndefined(buffer.toString('utf8', 0, bytesRead)));
      if (!marker) warnings.say(`${markerFolder}/${name}.json names no model`);
      return marker;
    } finally {
      await file.close();
    }
  } catch (error) {
    warnings.add(path, error);
    return undefined;
  }
}

type Warnings = ReturnType<typeof createWarnings>;

function createWarnings(base: string) {
  const said: string[] = [];
  let left = 0;
  function say(text: string) {
    if (said.length < mostWarnings) said.push(printable(text));
    else left++;
  }
  return {
    say,
    /** What is gone is no failure; a name that has no characters cannot be looked up, and is. */
    add(path: string, error: unknown) {
      const { code } = error as { code?: string };
      if (code === 'ENOENT' && !path.includes('\ufffd')) return;
      say(`cannot read ${relative(base, path)}: ${code ?? error}`);
    },
    all: (): readonly string[] => (left > 0 ? [...said, `and ${left} more`] : said),
  };
}
