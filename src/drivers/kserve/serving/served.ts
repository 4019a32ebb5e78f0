/** The objects that serve models, as far as models, nodes and the memory they take are concerned. */
import { z } from 'zod';
import type { LoadedModel, Model, Target } from '../../../domain.ts';
import { managedByLabel, modelAnnotation } from '../../../kubernetes/ownership.ts';
import type { KubernetesObject, Resource } from '../../../kubernetes/resource.ts';
import { createKept } from '../../../live/kept.ts';
import { isHubUri, parseReference } from '../hub/reference.ts';
import { directoryLabel, presetLabel } from '../labels.ts';
import type { Served } from '../nodes/reservations.ts';
import { detailsOf, onlyPresetServing, type ServingPreset } from '../presets.ts';
import type { KserveSettings } from '../settings.ts';
import { nodeOf, speakingPods } from '../timeline/pod.ts';
import type { Timeline } from '../timeline.ts';
import { addressOf } from './address.ts';

export const llmInferenceServices: Resource = {
  group: 'serving.kserve.io',
  version: 'v1alpha2',
  plural: 'llminferenceservices',
  kind: 'LLMInferenceService',
  namespaced: true,
};

export const llmInferenceServiceConfigs: Resource = {
  group: 'serving.kserve.io',
  version: 'v1alpha2',
  plural: 'llminferenceserviceconfigs',
  kind: 'LLMInferenceServiceConfig',
  namespaced: true,
};

/** Of the pods that serve. */
export const servingPods = 'app.kubernetes.io/part-of=llminferenceservice';

export interface ServedModel extends Served {
  /** Of the object. */
  readonly name: string;
  readonly namespace: string;
  /** Repository of its weights; the object's name when nothing tells it. */
  readonly model: string;
  /** The model as its server calls it. */
  readonly servedName: string;
  /** Where its weights come from. */
  readonly uri: string | undefined;
  /** Directory of its weights in the cache. */
  readonly directory: string;
  readonly preset: string | undefined;
  /** The preset that it names itself. */
  readonly labelledPreset: string | undefined;
  readonly createdAt: Date | undefined;
  readonly ready: 'True' | 'False' | 'Unknown' | undefined;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly managedBy: string | undefined;
  readonly gpus: number | undefined;
  /** URLs in the order in which they count. */
  readonly published: readonly unknown[];
}

const text = z.string().min(1).optional().catch(undefined);
const texts = z.record(z.string(), z.string()).catch({});
const amounts = z.record(z.string(), z.union([z.string(), z.number()])).catch({});
/** Whatever of it is not as it should be is as good as not there. */
const lenient = <S extends z.ZodRawShape>(shape: S) => z.looseObject(shape).optional().catch(undefined);
const items = <S extends z.ZodRawShape>(shape: S) => z.array(lenient(shape)).catch([]);

const serving = z.looseObject({
  metadata: z.looseObject({
    namespace: text,
    labels: texts,
    annotations: texts,
    creationTimestamp: text,
    deletionTimestamp: text,
  }),
  spec: lenient({
    model: lenient({ name: text, uri: text }),
    template: lenient({
      containers: items({ name: text, resources: lenient({ requests: amounts, limits: amounts }) }),
    }),
  }),
  status: lenient({
    url: z.unknown().optional(),
    addresses: items({ url: z.unknown().optional() }),
    conditions: items({ type: text, status: text, reason: text, message: text }),
  }),
});

export interface ServedFacts {
  readonly objects: readonly KubernetesObject[];
  /** In their order. */
  readonly pods: readonly KubernetesObject[];
  readonly presets: readonly ServingPreset[];
  readonly gpuResource: string;
}

/** All of them, by name. */
export const servedModels = (facts: ServedFacts): readonly ServedModel[] => createServedReader()(facts);

/** The same for who reads again and again: an object that did not change is not read again. */
export function createServedReader(): (facts: ServedFacts) => readonly ServedModel[] {
  const read = createKept<Known & { readonly object: KubernetesObject }, ServedModel>({
    key: ({ object }) => object.metadata.name,
    from: ({ object, presets, gpuResource, node }) => [object, presets, gpuResource, node],
    make: ({ object, ...known }) => readServed(object, known),
  });
  return ({ objects, pods, presets, gpuResource }) => {
    const speaking = speakingPods(pods);
    const known = objects.map(object => {
      const node = nodeOf(speaking.get(object.metadata.name));
      return { object, presets, gpuResource, node };
    });
    return read(known).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  };
}

/** One object, without what its pods say. */
export const readService = (
  object: KubernetesObject,
  {
    presets,
    settings: { gpuResource },
  }: { readonly presets: readonly ServingPreset[]; readonly settings: Pick<KserveSettings, 'gpuResource'> },
): ServedModel => readServed(object, { presets, gpuResource, node: undefined });

interface Known {
  readonly presets: readonly ServingPreset[];
  readonly gpuResource: string;
  readonly node: string | undefined;
}

function readServed(object: KubernetesObject, { presets, gpuResource, node }: Known): ServedModel {
  const { name } = object.metadata;
  const { metadata, spec, status } = serving.parse(object);
  const named = (wanted: string | undefined) => presets.find(preset => preset.name === wanted);
  const { uri, name: servedName } = spec?.model ?? {};
  const label = metadata.labels[presetLabel];
  const told = metadata.annotations[modelAnnotation] || servedName || named(label)?.model;
  // A preset that is only guessed by the name of the object.
  const guessed = told === undefined && label === undefined ? named(name) : undefined;
  const stored = uri && isHubUri(uri) ? parseReference(uri).repository : undefined;
  const model = told ?? guessed?.model ?? stored ?? name;
  const ready = status?.conditions.find(each => each?.type === 'Ready');
  const main = spec?.template?.containers.find(each => each?.name === 'main')?.resources;
  const gpus = Number(main?.requests[gpuResource] ?? main?.limits[gpuResource]);
  const created = new Date(metadata.creationTimestamp ?? '');
  return {
    name,
    namespace: metadata.namespace ?? '',
    model,
    servedName: servedName ?? model,
    uri,
    directory: metadata.labels[directoryLabel] || name,
    preset: label ?? guessed?.name,
    labelledPreset: label,
    node,
    deleting: metadata.deletionTimestamp !== undefined || undefined,
    createdAt: Number.isNaN(created.getTime()) ? undefined : created,
    ready: (['True', 'False', 'Unknown'] as const).find(each => each === ready?.status),
    reason: ready?.reason,
    message: ready?.message,
    managedBy: metadata.labels[managedByLabel],
    gpus: Number.isSafeInteger(gpus) && gpus >= 0 ? gpus : undefined,
    published: [status?.url, ...(status?.addresses ?? []).map(each => each?.url)],
  };
}

interface Place {
  readonly backend: string;
  readonly target: Target | undefined;
  readonly presets: readonly ServingPreset[];
}

export const presetOf = ({ preset, model }: ServedModel, presets: readonly ServingPreset[]) =>
  presets.find(({ name }) => name === preset) ?? (preset ? undefined : onlyPresetServing(presets, model));

/** A served model as a listed one whose weights nobody looked at. */
export function servedAsModel(served: ServedModel, { backend, target, presets }: Place): Model {
  const preset = presetOf(served, presets);
  return {
    backend,
    target,
    name: served.model,
    sizeBytes: preset?.weightsBytes,
    modifiedAt: served.createdAt,
    node: served.node,
    path: served.name,
    downloaded: false,
    ...detailsOf(preset),
  };
}

/** A served model as one in memory, or on its way there. `notes`: what is not known of it, in words. */
export function servedAsLoaded(
  served: ServedModel,
  { backend, target, presets, gatewayEndpoint }: Place & { readonly gatewayEndpoint: string | undefined },
  { status, phase, reason, message, node, steps }: Timeline,
  notes: readonly string[],
): LoadedModel {
  const preset = presetOf(served, presets);
  return {
    backend,
    target,
    name: served.model,
    instance: served.name,
    sizeBytes: preset?.weightsBytes,
    contextLength: preset?.contextLength,
    endpoint: addressOf({ ...served, gatewayEndpoint }),
    node,
    status,
    reason,
    message: [message, ...notes].filter(Boolean).join('; ') || undefined,
    preset: preset?.name,
    resource: served.name,
    kind: llmInferenceServices.kind,
    gpus: served.gpus,
    managedBy: served.managedBy,
    phase,
    steps,
  };
}
