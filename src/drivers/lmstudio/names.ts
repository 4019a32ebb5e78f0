import type { Model } from '../../domain.ts';
import type { Entry } from './wire.ts';

/**
 * A model is known by its key: `publisher/model`, a bare name, or either with `@quant`. What one asks to download need not
 * look like it: a link to Hugging Face ends up under a key that the server makes from the repository.
 */

/** Keys are compared as they are, so only the blanks around a reference can differ. */
export const canonicalName = (reference: string): string => reference.trim();

/** The listed model a reference names: the exact one, else the only one that differs in case. */
export const findModel = (models: readonly Model[], reference: string): Model | undefined =>
  named(models, model => model.name, reference);

function named<T>(rows: readonly T[], nameOf: (row: T) => string, reference: string): T | undefined {
  const wanted = reference.trim();
  const exact = rows.find(row => nameOf(row) === wanted);
  if (exact) return exact;
  const [only, ...others] = rows.filter(row => equalFold(nameOf(row), wanted));
  return others.length === 0 ? only : undefined;
}

/** The entry a download became, or the keys it may be under. */
export type Resolved = { readonly entry: Entry } | { readonly candidates: readonly string[] };

/**
 * Finds what a download became: the entry of that name; else the one entry that has it among its variants or as its key
 * without `@quant`; else the one entry that is new. `before` has the keys from before the download, absent when nothing
 * was downloaded.
 */
export function resolvePulled(
  entries: readonly Entry[],
  reference: string,
  before: ReadonlySet<string> | undefined,
): Resolved {
  const exact = named(entries, entry => entry.key, reference);
  if (exact) return { entry: exact };
  const alike = entries.filter(
    ({ key, variants }) =>
      variants.some(variant => equalFold(variant, reference)) || equalFold(withoutQuant(key), reference),
  );
  const isNew = ({ key }: Entry) => before !== undefined && !before.has(key);
  // Something new may also be the work of others, so a name counts for more.
  const fitting = alike.length === 1 ? alike : (alike.length > 1 ? alike : entries).filter(isNew);
  const [only, ...others] = fitting;
  if (only && others.length === 0) return { entry: only };
  const likely = [fitting, alike].find(each => each.length > 0) ?? entries.filter(resembles(reference));
  return { candidates: likely.map(({ key }) => key) };
}

/** Whether the name of an entry occurs in a reference; good enough to be named in a message, and for nothing else. */
const resembles = (reference: string) => {
  const text = reference.toLowerCase();
  return ({ key }: Entry) => text.includes(withoutQuant(key).toLowerCase().split('/').at(-1) || key);
};

const withoutQuant = (key: string) => key.replace(/@[^@/]*$/, '');
const equalFold = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
