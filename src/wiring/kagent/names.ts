/** Names of ModelConfigs and their Secrets. They are how agents refer to a model, so the same model has the same name for ever. */
import { cutLabel, hashOf, longLabelOf, maxLabelLength, shortLabel, slugOf } from '../../kubernetes/names.ts';

/** The name for a reference, with a prefix (`mm` and `mm-` are the same) where one is configured. */
export function nameOf(reference: string, prefix = ''): string {
  const before = slugOf(prefix);
  const name = longLabelOf(reference);
  return shortLabel(before === '' ? name : `${before}-${name}`, reference);
}

/** The name for the object that serves a model: its own, by the rules of `nameOf` where a prefix is configured. */
export const nameOfObject = (object: string, prefix = ''): string =>
  slugOf(prefix) === '' ? object : nameOf(object, prefix);

/** The name for a reference whose first name is taken by another backend's model. */
export function nameOnBackend(name: string, backend: string, reference: string): string {
  const suffix = `-${slugOf(backend)}`;
  if (name.length + suffix.length <= maxLabelLength) return name + suffix;
  // The end of a long name is what tells it from its siblings, so what is cut off is said anew.
  const end = `-${hashOf(reference)}${suffix}`.slice(0, maxLabelLength - 1);
  return cutLabel(name, maxLabelLength - end.length) + end;
}

/** The name of the Secret that holds what a ModelConfig shows instead of a key. */
export function placeholderNameOf(modelConfig: string): string {
  const suffix = '-api-key';
  const tooLong = modelConfig.length + suffix.length > maxLabelLength;
  return (tooLong ? cutLabel(modelConfig, maxLabelLength - suffix.length) : modelConfig) + suffix;
}
