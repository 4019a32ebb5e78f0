import { pointerBytes, type StoredFile } from './content.ts';
import type { Commit, Repo, TreeEntry } from './models.ts';

/** A repository in the answer to a search. The Hub leaves out who made it, when, and whether it is gated, unless asked. */
export function searchRow(repo: Repo, full: boolean): object {
  const { model, key, createdAt, lastModified } = repo;
  const main = repo.commits.get('main');
  return {
    _id: key,
    id: model.id,
    likes: model.likes ?? 0,
    private: model.private ?? false,
    downloads: model.downloads ?? 0,
    tags: model.tags ?? [],
    pipeline_tag: model.pipelineTag,
    library_name: model.library,
    createdAt: createdAt.toISOString(),
    modelId: model.id,
    ...(full && {
      author: ownerOf(model.id),
      gated: model.gated ?? false,
      lastModified: lastModified.toISOString(),
      sha: main?.sha,
    }),
  };
}

/** A repository by itself, at a commit. */
export function repositoryDocument(repo: Repo, { sha, files }: Commit, withBlobs: boolean): object {
  return {
    ...searchRow(repo, true),
    disabled: false,
    sha,
    siblings: [...files.values()].map(file => ({
      rfilename: file.path,
      ...(withBlobs && { size: file.bytes, blobId: file.oid, ...lfsOf(file) }),
    })),
    spaces: [],
    usedStorage: [...files.values()].reduce((total, { bytes }) => total + bytes, 0),
  };
}

export function treeRow(entry: TreeEntry): object {
  const { path } = entry;
  if ('directory' in entry) return { type: 'directory', oid: '0'.repeat(40), size: 0, path };
  const { oid, bytes, sha256 } = entry;
  const lfs = sha256 === undefined ? {} : { lfs: { oid: sha256, size: bytes, pointerSize: pointerBytes } };
  return { type: 'file', oid, size: bytes, ...lfs, path };
}

const lfsOf = ({ sha256, bytes }: StoredFile) =>
  sha256 === undefined ? {} : { lfs: { sha256, size: bytes, pointerSize: pointerBytes } };

const ownerOf = (id: string) => id.split('/')[0];
