/**
 * Names of ModelConfigs and their Secrets: labels of DNS, so at most 63 of `a-z`, `0-9` and `-`. They are how agents refer
 * to a model, so the same model has the same name for ever.
 */
const maxLength = 63;
/** What is left of a long name: beside it are a dash and eight digits that tell it from others of the same beginning. */
const cutLength = 54;

/** The name for a reference, with a prefix (`mm` and `mm-` are the same) where one is configured. */
export function nameOf(reference: string, prefix = ''): string {
  const slug = slugOf(reference) || 'model';
  const named = /^[0-9]/.test(slug) ? `m-${slug}` : slug;
  const before = slugOf(prefix);
  const name = before === '' ? named : `${before}-${named}`;
  return name.length > maxLength ? `${cut(name, cutLength)}-${hashOf(reference)}` : name;
}

/** The name for the object that serves a model: its own, by the rules of `nameOf` where a prefix is configured. */
export const nameOfObject = (object: string, prefix = ''): string =>
  slugOf(prefix) === '' ? object : nameOf(object, prefix);

/** The name for a reference whose first name is taken by another backend's model. */
export function nameOnBackend(name: string, backend: string, reference: string): string {
  const suffix = `-${slugOf(backend)}`;
  if (name.length + suffix.length <= maxLength) return name + suffix;
  // The end of a long name is what tells it from its siblings, so what is cut off is said anew.
  const end = `-${hashOf(reference)}${suffix}`.slice(0, maxLength - 1);
  return cut(name, maxLength - end.length) + end;
}

/** The name of the Secret that holds what a ModelConfig shows instead of a key. */
export function placeholderNameOf(modelConfig: string): string {
  const suffix = '-api-key';
  const name =
    modelConfig.length + suffix.length > maxLength ? cut(modelConfig, maxLength - suffix.length) : modelConfig;
  return name + suffix;
}

const normal = (text: string) => text.trim().toLowerCase();

const slugOf = (text: string) =>
  normal(text)
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');

const cut = (name: string, length: number) => name.slice(0, length).replace(/-+$/, '');

/** FNV-1a of 32 bits, as eight hex digits. */
function hashOf(reference: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(normal(reference))) hash = Math.imul(hash ^ byte, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
