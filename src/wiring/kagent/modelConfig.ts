import type { ModelConfigRef } from '../../domain.ts';
import { hostNameOf } from '../../drivers/address.ts';
import { managedByLabel, manager, modelAnnotation, ownKey } from '../../kubernetes/ownership.ts';
import { apiVersionOf, type KubernetesObject, type Resource } from '../../kubernetes/resource.ts';
import { readinessOf } from './readiness.ts';
import { isRecord, textOf } from './values.ts';

/** Anybody can write one, so nothing of it is what its schema says before it was looked at. */
export interface ModelConfig extends KubernetesObject {
  readonly spec?: unknown;
  readonly status?: unknown;
}

export const kagentGroup = 'kagent.dev';

export const modelConfigsOf = (version: string): Resource<ModelConfig> => ({
  group: kagentGroup,
  version,
  plural: 'modelconfigs',
  kind: 'ModelConfig',
  namespaced: true,
});

/** Which backend's model an object of ours is about. */
export const backendLabel = ownKey('backend');

/** A ModelConfig as far as it could be read. */
export interface Row {
  /** `managed` says whether it is ours, `backend` which backend's, if it says so. */
  readonly ref: ModelConfigRef;
  /** The reference that its annotation names. */
  readonly annotated: string | undefined;
  /** Host of its endpoint, in lower case. */
  readonly host: string | undefined;
  /** On its way out: it is there until its finalizers are done. */
  readonly leaving: boolean;
}

/** Reads an object that was asked for as `resource`. One that is broken is not ready, in words that say what is wrong. */
export function rowOf(object: ModelConfig, resource: Resource<ModelConfig>, namespace: string): Row {
  const { metadata, apiVersion, spec, status } = object;
  const given = isRecord(spec) ? spec : {};
  const annotated = entryOf(metadata.annotations, modelAnnotation);
  const endpoint = fieldOf(given.openAI, 'baseUrl') ?? fieldOf(given.ollama, 'host');
  const providerModel = textOf(given.model);
  const problem = problemOf(spec);
  return {
    ref: {
      name: metadata.name,
      namespace: textOf(metadata.namespace) ?? namespace,
      apiVersion: textOf(apiVersion) ?? apiVersionOf(resource),
      provider: textOf(given.provider),
      model: annotated ?? providerModel,
      ...(problem ? { ready: false, message: problem } : readinessOf(status, object.metadata.generation)),
      managed: isOurs(object),
      providerModel,
      endpoint,
      apiKeyPassthrough: given.apiKeyPassthrough === true || undefined,
      apiKeySecret: textOf(given.apiKeySecret),
      backend: entryOf(metadata.labels, backendLabel),
    },
    annotated,
    host: endpoint && hostNameOf(endpoint).toLowerCase(),
    leaving: metadata.deletionTimestamp !== undefined,
  };
}

/** Only what is ours is ever changed or removed. */
export const isOurs = ({ metadata }: KubernetesObject) => entryOf(metadata.labels, managedByLabel) === manager;

const entryOf = (map: unknown, key: string) => (isRecord(map) ? textOf(map[key]) : undefined);
const fieldOf = (part: unknown, field: string) => (isRecord(part) ? textOf(part[field]) : undefined);

function problemOf(spec: unknown): string | undefined {
  if (spec === undefined) return 'malformed: it has no spec';
  if (!isRecord(spec)) return 'malformed: its spec is not an object';
  if (textOf(spec.model) === undefined) return 'malformed: its spec.model names no model';
  const part = ['openAI', 'ollama'].find(each => spec[each] !== undefined && !isRecord(spec[each]));
  return part && `malformed: its spec.${part} is not an object`;
}
