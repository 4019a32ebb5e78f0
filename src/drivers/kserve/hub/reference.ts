import { labelOf } from '../../../kubernetes/names.ts';

/** A repository of the Hub as people and presets name it. */
export interface Reference {
  /** `owner/name`; or what was written where that should be, such as the name of a preset. */
  readonly repository: string;
  /** A branch, a tag or a commit. */
  readonly revision?: string | undefined;
}

const scheme = 'hf://';

/** Takes `hf://owner/name[:revision|@revision]` apart, with or without its scheme. Whether the parts are any good is not asked. */
export function parseReference(text: string): Reference {
  const trimmed = text.trim();
  const name = trimmed.startsWith(scheme) ? trimmed.slice(scheme.length) : trimmed;
  const place = Math.max(name.lastIndexOf(':'), name.lastIndexOf('@'));
  if (place < name.lastIndexOf('/') || place < 0) return { repository: name };
  const revision = name.slice(place + 1);
  return { repository: name.slice(0, place), ...(revision !== '' && { revision }) };
}

export const isHubUri = (uri: string): boolean => uri.startsWith(scheme);

/** Whether it can be a repository of the Hub: `owner/name`. What is none never becomes part of a path. */
export function isRepository(text: string): boolean {
  const parts = text.split('/');
  return parts.length === 2 && parts.every(part => /^[\w.-]{1,96}$/.test(part) && !/^\.{1,2}$/.test(part));
}

/** Whether it can be a branch, a tag or a commit, such as `main` or `refs/pr/3`. */
export const isRevision = (text: string): boolean =>
  /^\w[\w./+-]{0,254}$/.test(text) && !text.includes('..') && !text.includes('//');

/** Whether it is a commit: what it names never changes. */
export const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision);

/** The directory that the weights of a model have in the cache: the name of its preset, or one made from its repository. */
export const directoryOf = (repository: string, preset?: string | undefined): string => preset ?? labelOf(repository);
