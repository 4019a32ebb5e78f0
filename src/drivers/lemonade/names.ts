import type { Model } from '../../domain.ts';
import { invalidRequest } from '../../errors.ts';

/**
 * Ids are free text without tags, and their case counts. A model that a person registered is called `user.X`, one from a
 * folder of the host `extra.X`; since 10.3 the server lists them as `X`, except where a model of its catalog has that name.
 */
const publicName = (reference: string) => reference.replace(/^(?:user|extra)\./, '');

/**
 * The name of a model, as every request that changes something has to carry it: without one, an unload lets go of all models
 * of the host, and a delete fails in words that help nobody. Throws `invalid_request` for a blank one.
 */
export function named(model: string): string {
  if (model.trim() === '') throw invalidRequest('a model reference is required');
  return model;
}

export const canonicalName = (reference: string): string => reference.trim();

/** The listed model a reference names: the one of exactly that name, else the only one that differs in case. */
export function findModel(models: readonly Model[], reference: string): Model | undefined {
  const wanted = canonicalName(reference);
  if (wanted === '') return undefined;
  const exact = models.find(({ name }) => name === wanted) ?? models.find(model => isOwn(model, wanted));
  if (exact) return exact;
  const [only, ...others] = models.filter(
    model => fold(model.name) === fold(wanted) || isOwn({ ...model, name: fold(model.name) }, fold(wanted)),
  );
  return others.length === 0 ? only : undefined;
}

/**
 * Whether a reference with a prefix names this model by its public name. Only for models of the host's own: `user.X` must
 * not reach the `X` of the catalog, least of all to delete it.
 */
function isOwn({ name, capabilities }: Model, reference: string): boolean {
  const bare = publicName(reference);
  return bare !== reference && bare === name && capabilities?.includes('custom') === true;
}

/** Whether a model that was asked for by this reference may be listed under this name. */
export const mayBeListedAs = (reference: string, listed: string) =>
  listed === reference || listed === publicName(reference);

const fold = (name: string) => name.toLowerCase();
