import type { Model } from '../../domain.ts';

/**
 * References are `[host/][namespace/]model[:tag]`. The server fills in what is missing and lists the shortest form, but
 * always with a tag: `registry.ollama.ai/library/gemma3`, `library/gemma3` and `gemma3` are all listed as `gemma3:latest`.
 */
const defaultHost = 'registry.ollama.ai';
const defaultNamespace = 'library';
const defaultTag = 'latest';

/** The spelling the server lists a reference under, its case kept. `hf.co` and `huggingface.co` stay different. */
export const canonicalName = (reference: string): string => shortest(withoutSource(reference.trim()));

/** The listed model a reference names: the exact one, else the only one that differs in case, as the server looks up. */
export function findModel(models: readonly Model[], reference: string): Model | undefined {
  const literal = reference.trim();
  if (literal === '') return undefined;
  const wanted = canonicalName(literal);
  const exact = models.find(({ name }) => name === literal) ?? models.find(({ name }) => shortest(name) === wanted);
  if (exact) return exact;
  const [only, ...others] = models.filter(({ name }) => isNamed(name, wanted));
  return others.length === 0 ? only : undefined;
}

/** Whether a reference names the model that is listed under this name, for the server, which ignores case. */
export function isNamed(listed: string, reference: string): boolean {
  return equalFold(shortest(listed), canonicalName(reference));
}

/** Whether the name itself says that the model runs at ollama.com: tag `cloud`, or one that ends in `-cloud`. */
export function isCloudName(reference: string): boolean {
  return /^(.*-)?cloud$/i.test(split(reference.trim()).tag);
}

function shortest(name: string): string {
  const { path, tag } = split(name);
  const parts = path.split('/');
  if (parts.length === 3 && equalFold(parts[0], defaultHost)) parts.shift();
  if (parts.length === 2 && equalFold(parts[0], defaultNamespace)) parts.shift();
  return `${parts.join('/')}:${tag || defaultTag}`;
}

/** The tag is what follows the last colon after the last slash; a colon before that belongs to a host's port. */
function split(reference: string): { path: string; tag: string } {
  const colon = reference.indexOf(':', reference.lastIndexOf('/') + 1) < 0 ? -1 : reference.lastIndexOf(':');
  return colon < 0
    ? { path: reference, tag: '' }
    : { path: reference.slice(0, colon), tag: reference.slice(colon + 1).trim() };
}

/** `model:tag:cloud` is listed as `model:tag-cloud`; `:local` only says where to look and is not part of the name. */
function withoutSource(reference: string): string {
  const { path, tag } = split(reference);
  if (equalFold(tag, 'local')) return path;
  return equalFold(tag, 'cloud') && split(path).tag !== '' ? `${path}-cloud` : reference;
}

const equalFold = (a: string | undefined, b: string) => a?.toLowerCase() === b.toLowerCase();
