import { createHash } from 'node:crypto';
import { commitId, type ModelFile, type StoredFile, storedFile } from './content.ts';

/** A repository with a model in it. */
export interface HubModel {
  /** `owner/name` */
  readonly id: string;
  /** At `main`. */
  readonly files: readonly ModelFile[];
  /** Other branches and tags. */
  readonly revisions?: Readonly<Record<string, readonly ModelFile[]>>;
  /** Everybody sees its files, and only who accepted its terms can read them. */
  readonly gated?: 'auto' | 'manual';
  /** Nobody else sees it. */
  readonly private?: boolean;
  readonly downloads?: number;
  readonly likes?: number;
  readonly pipelineTag?: string;
  readonly library?: string;
  readonly tags?: readonly string[];
  readonly lastModified?: Date;
}

/** One state of a repository. */
export interface Commit {
  readonly sha: string;
  /** By path. */
  readonly files: ReadonlyMap<string, StoredFile>;
}

export interface Repo {
  readonly model: HubModel;
  /** Its id in the database, and in addresses of its large files. */
  readonly key: string;
  readonly createdAt: Date;
  readonly lastModified: Date;
  /** By the name of a branch or tag, and by its own. */
  readonly commits: ReadonlyMap<string, Commit>;
}

export function toRepo(model: HubModel, now: number): Repo {
  const commits = new Map<string, Commit>();
  for (const [revision, files] of Object.entries({ main: model.files, ...model.revisions })) {
    const commit = toCommit(model.id, files);
    commits.set(revision, commit);
    commits.set(commit.sha, commit);
  }
  const { lastModified = new Date(now) } = model;
  const key = createHash('sha1').update(model.id).digest('hex').slice(0, 24);
  return { model, key, createdAt: lastModified, lastModified, commits };
}

function toCommit(id: string, files: readonly ModelFile[]): Commit {
  const stored = files.map(file => storedFile(id, file)).sort((a, b) => (a.path < b.path ? -1 : 1));
  return { sha: commitId(id, stored), files: new Map(stored.map(file => [file.path, file])) };
}

/** A file of a tree, or a directory. */
export type TreeEntry = StoredFile | { readonly path: string; readonly directory: true };

/** What is directly in a directory ('' is the top), or everywhere below it; directories before what is in them. */
export function treeOf(commit: Commit, directory: string, recursive: boolean): TreeEntry[] {
  const start = directory === '' ? '' : `${directory}/`;
  const entries = new Map<string, TreeEntry>();
  for (const file of commit.files.values()) {
    if (!file.path.startsWith(start)) continue;
    const parts = file.path.slice(start.length).split('/');
    for (let depth = 1; depth < parts.length && (recursive || depth === 1); depth++) {
      const path = start + parts.slice(0, depth).join('/');
      entries.set(path, { path, directory: true });
    }
    if (recursive || parts.length === 1) entries.set(file.path, file);
  }
  return [...entries.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Repositories with all the words in their names, in the order a search asks for; the most of it first. */
export function matching(repos: Iterable<Repo>, search: string, sort: string | null): Repo[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [...repos].filter(({ model }) => words.every(word => model.id.toLowerCase().includes(word)));
  const by: Record<string, (repo: Repo) => number> = {
    downloads: ({ model }) => model.downloads ?? 0,
    likes: ({ model }) => model.likes ?? 0,
    lastModified: ({ lastModified }) => lastModified.getTime(),
    createdAt: ({ createdAt }) => createdAt.getTime(),
  };
  const rank = by[sort ?? ''] ?? by.likes;
  return rank ? found.sort((a, b) => rank(b) - rank(a)) : found;
}
