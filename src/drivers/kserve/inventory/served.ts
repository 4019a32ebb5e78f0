/** A served object as far as the cache is concerned. */
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { parseReference } from '../hub/reference.ts';
import { fieldsOf, textOf, timeOf } from '../jobs/fields.ts';
import { directoryLabel, modelAnnotation, presetLabel } from '../labels.ts';
import type { Served } from '../nodes/reservations.ts';
import { dateOf } from './entry.ts';

export interface ServedObject extends Served {
  readonly name: string;
  /** Repository; the object's name when it tells none. */
  readonly model: string;
  /** Where its weights come from. */
  readonly uri: string | undefined;
  /** Of the cache. */
  readonly directory: string;
  readonly createdAt: Date | undefined;
}

/** What an LLMInferenceService serves; `node` is where its pod is. */
export function readServed(object: KubernetesObject, node?: string | undefined): ServedObject {
  const { metadata, spec } = object as KubernetesObject & { spec?: unknown };
  const labels = fieldsOf(metadata.labels);
  const { uri: source, name: served } = fieldsOf(fieldsOf(spec).model);
  const uri = textOf(source);
  const createdAt = timeOf(metadata.creationTimestamp);
  return {
    name: metadata.name,
    model:
      textOf(fieldsOf(metadata.annotations)[modelAnnotation]) ??
      textOf(served) ??
      (uri?.startsWith('hf://') ? parseReference(uri).repository : metadata.name),
    uri,
    preset: textOf(labels[presetLabel]),
    directory: textOf(labels[directoryLabel]) ?? metadata.name,
    node,
    createdAt: createdAt === undefined ? undefined : dateOf(createdAt),
    deleting: textOf(metadata.deletionTimestamp) !== undefined,
  };
}
