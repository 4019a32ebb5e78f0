/**
 * Names of objects that are made from other people's words: labels of DNS, so at most 63 of `a-z`, `0-9` and `-`. The same
 * words give the same name for ever.
 */
export const maxLabelLength = 63;
/** What is left of a long name: beside it are a dash and eight digits that tell it from others of the same beginning. */
const cutLength = 54;

/** The words as one label. */
export const labelOf = (words: string): string => shortLabel(longLabelOf(words), words);

/** The same at whatever length, to be a part of a longer one. */
export function longLabelOf(words: string): string {
  const slug = slugOf(words) || 'model';
  return /^[0-9]/.test(slug) ? `m-${slug}` : slug;
}

/** A label with something before it, such as `mm-pull-` before a directory. */
export const prefixedLabel = (prefix: string, label: string): string => shortLabel(prefix + label, prefix + label);

/** The label itself, or its beginning and a hash of what it was made from. */
export const shortLabel = (label: string, words: string): string =>
  label.length > maxLabelLength ? `${cutLabel(label, cutLength)}-${hashOf(words)}` : label;

/** Everything between two words becomes one dash; '' when there are none. */
export const slugOf = (words: string): string =>
  normal(words)
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

/** The beginning, without a dash at its end. */
export const cutLabel = (label: string, length: number): string => label.slice(0, length).replace(/-+$/, '');

/** FNV-1a of 32 bits, as eight hex digits. */
export function hashOf(words: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(normal(words))) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

const normal = (words: string) => words.trim().toLowerCase();
