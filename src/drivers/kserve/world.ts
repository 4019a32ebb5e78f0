/** Everything of the cluster that the backend goes by, watched while somebody wants to know. */
import type { Logger } from 'pino';
import type { Call } from '../../call.ts';
import type { GatewayError } from '../../errors.ts';
import {
  type ConfigMap,
  configMaps,
  type KubernetesObject,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  type Resource,
} from '../../kubernetes/resource.ts';
import { located, type Watches } from '../../kubernetes/watches.ts';
import { createCell } from '../../live/cell.ts';
import { derive } from '../../live/derive.ts';
import { follow } from '../../live/follow.ts';
import { optional } from '../../live/optional.ts';
import { keepRows, keepValue } from '../../live/rows.ts';
import type { Observation, Source } from '../../live/source.ts';
import { type Discovery, type DiscoveryDocument, type DiscoveryRef, parseDiscovery, readFailure } from './discovery.ts';
import { type CacheLocation, cacheLocation, declaredLocation, volumeOf } from './nodes/cacheLocation.ts';
import { gpusTaken } from './nodes/devices.ts';
import { type PresetList, presetsIn, type ServingPreset } from './presets.ts';
import {
  createServedReader,
  llmInferenceServiceConfigs,
  llmInferenceServices,
  type ServedModel,
  servingPods,
} from './serving/served.ts';
import { type CheckedFlags, type KserveSettings, type RegisteredKserve, settingsOf } from './settings.ts';
import { deriveSeen, missingIn, problemOf, unanswered } from './world/seen.ts';

export interface WorldOptions {
  readonly watches: Watches;
  /** The one of the driver: watches are its, whoever looks. */
  readonly call: Call;
  readonly flags: CheckedFlags;
  readonly registered?: RegisteredKserve | undefined;
  readonly discovery: DiscoveryRef;
  readonly log: Logger;
}

/** The settings, and how reading the document they come from went. */
export interface Configured {
  readonly settings: KserveSettings;
  readonly discovery: Discovery;
  /** A document is in use: the newest, or the last that could be read. */
  readonly isDiscovered: boolean;
}

/** What is known around the nodes. A part that cannot be read is absent and named in `notes`. */
export interface Surroundings {
  readonly settings: KserveSettings;
  readonly presets: readonly ServingPreset[];
  /** Why presets are not known. */
  readonly presetsError: GatewayError | undefined;
  readonly location: CacheLocation | undefined;
  readonly served: readonly ServedModel[];
  /** Devices that pods of served models have, by node; absent when they are not known. */
  readonly gpusTaken: ReadonlyMap<string, number> | undefined;
  /** What is not known, with its reason; by what suffers from it. */
  readonly notes: {
    readonly reservations: readonly string[];
    /** Of what is served, whatever its pods say. */
    readonly served: readonly string[];
    readonly cache: readonly string[];
  };
}

/** A part that is not there after this, in milliseconds, holds nothing else up. */
const patienceMs = 2_000;
/** What an answer is about is waited for longer, and no longer than leaves time to say that it is not there. */
const longPatienceMs = 4_000;
/** The object without which nothing reconciles what is served. */
export const controlPlaneConfig = 'kserve-config-llm-template';

export type World = ReturnType<typeof createWorld>;

export function createWorld({ watches, call, flags, registered, discovery: ref, log }: WorldOptions) {
  const watch = <T extends KubernetesObject>(resource: Resource<T>, selection = {}): Source<readonly T[]> =>
    watches.of(call, located(resource), selection);
  const named = <T extends KubernetesObject>(resource: Resource<T>, name: string, namespace?: string) =>
    watch(resource, { namespace, fieldSelector: `metadata.name=${name}` });
  const warn = warner(log);

  const document = named(configMaps, ref.name, ref.namespace);
  const configured = derive<[readonly ConfigMap[]], Configured>([optional(document, patienceMs)], ([seen], before) => {
    const discovery = keepValue(before?.discovery, discoveryIn(seen, ref));
    if (before && discovery === before.discovery) return before;
    if (discovery.state === 'present') warn(discovery.document.warnings);
    else if (discovery.state === 'unreadable') warn([discovery.problem]);
    if (discovery.state === 'unreadable' && before) return { ...before, discovery };
    return configuredBy(discovery, before);
  });
  const settings = derive<[Configured], KserveSettings>(
    [configured],
    ([{ value }], before) => value?.settings ?? (before as KserveSettings),
  );

  function configuredBy(discovery: Discovery, before?: Configured): Configured {
    const document: DiscoveryDocument | undefined = discovery.state === 'present' ? discovery.document : undefined;
    const next = settingsOf({ flags, registered, discovery: ref, document });
    return { settings: keepValue(before?.settings, next), discovery, isDiscovered: document !== undefined };
  }

  function presetsOf({ presets, defaultOverheadBytes }: KserveSettings): Source<PresetList> {
    const selection = { namespace: presets.namespace, labelSelector: presets.selector };
    return deriveSeen<[readonly ConfigMap[]], PresetList>(
      [watch(configMaps, selection)],
      ([{ value, error }], before) => {
        if (!value) return { error };
        const list = presetsIn(value, { defaultOverheadBytes });
        warn(list.warnings);
        const kept = keepRows<ServingPreset>(({ name }) => name)(before?.presets, list.presets);
        return { value: before?.presets === kept ? before : { ...list, presets: kept }, error };
      },
    );
  }

  /** The claim and its volume; a claim that cannot be read is an error. */
  function locationOf(settings: KserveSettings): Source<Located> {
    const { cache, namespace } = settings;
    const declared = declaredLocation(settings);
    if (!cache.enabled || declared) return createCell<Located>({ location: cache.enabled ? declared : undefined });
    const claims = named(persistentVolumeClaims, cache.claim, namespace);
    const volumeName = derive<[readonly KubernetesObject[]], { name: string }>([claims], ([{ value }], before) =>
      keepValue(before, { name: volumeOf(value?.[0]) ?? '' }),
    );
    const volume = follow<{ name: string }, readonly KubernetesObject[]>(volumeName, ({ name }) =>
      name === '' ? createCell<readonly KubernetesObject[]>([]) : named(persistentVolumes, name),
    );
    return deriveSeen<[readonly KubernetesObject[], readonly KubernetesObject[]], Located>(
      [claims, optional(volume, patienceMs)],
      ([claim, volume], before) => {
        if (!claim.value) return { error: claim.error };
        const location = cacheLocation(settings, claim.value[0], volume.value?.[0]);
        const note = location.volume === undefined ? undefined : problemOf('the volume of the cache', volume);
        return { value: keepValue(before, { location, note }), error: claim.error };
      },
    );
  }

  function around(settings: KserveSettings): Source<Surroundings> {
    const { namespace, gpuResource } = settings;
    const readServed = createServedReader();
    const parts = [
      optional(presetsOf(settings), patienceMs),
      optional(locationOf(settings), patienceMs),
      optional(watch(llmInferenceServices, { namespace }), patienceMs),
      optional(watch(pods, { namespace, labelSelector: servingPods }), patienceMs),
    ] as const;
    type Parts = [PresetList, Located, readonly KubernetesObject[], readonly KubernetesObject[]];
    return derive<Parts, Surroundings>(parts, ([presetList, cache, objects, servers], before) => {
      const presets = presetList.value?.presets ?? [];
      const isInstalled = objects.error?.code !== 'not_found';
      const served = readServed({ objects: objects.value ?? [], pods: servers.value ?? [], presets, gpuResource });
      const unknown = given(
        problemOf('presets', presetList),
        isInstalled ? problemOf('served models', objects) : undefined,
      );
      const next: Surroundings = {
        settings,
        presets: before?.presets && presets.length + before.presets.length === 0 ? before.presets : presets,
        presetsError: presetList.value ? undefined : presetList.error,
        location: cache.value?.location,
        served: keepRows<ServedModel>(({ name }) => name)(before?.served, served),
        gpusTaken: keepValue(before?.gpusTaken, servers.value && gpusTaken(servers.value, gpuResource)),
        notes: keepValue(before?.notes, {
          reservations: [...unknown, ...given(problemOf('pods of served models', servers))],
          served: unknown,
          cache: given(problemOf('the claim of the cache', cache), cache.value?.note),
        }),
      };
      const isSame = before && (Object.keys(next) as (keyof Surroundings)[]).every(key => next[key] === before[key]);
      return isSame ? before : next;
    });
  }

  return {
    ref,
    configured,
    settings,
    nodes: needed('nodes', watch(nodes)),
    /** For what goes on without them. */
    nodesSoon: optional(watch(nodes), patienceMs),
    presets: follow(settings, chosen => needed('presets', presetsOf(chosen))),
    surroundings: follow(settings, around),
    /** What is around the nodes by other settings than the current ones. */
    around,
    served: follow(settings, ({ namespace }) => needed('served models', watch(llmInferenceServices, { namespace }))),
    controlPlane: optional(named(llmInferenceServiceConfigs, controlPlaneConfig), patienceMs),
    configuredBy,
  };
}

/** What there is no answer without: that it does not come is said in time. */
const needed = <T>(what: string, source: Source<T>): Source<T> =>
  deriveSeen<[T], T>([optional(source, longPatienceMs)], ([seen]) => ({
    value: seen.value,
    error: missingIn(what, seen) ?? seen.error,
  }));

interface Located {
  readonly location: CacheLocation | undefined;
  /** What is not known of it. */
  readonly note?: string | undefined;
}

const given = (...notes: readonly (string | undefined)[]) => notes.filter(note => note !== undefined);

function discoveryIn({ value, error }: Observation<readonly ConfigMap[]>, ref: DiscoveryRef): Discovery {
  if (!value || error) {
    return {
      state: 'unreadable',
      problem: readFailure(ref, error?.message ?? unanswered),
    };
  }
  return value[0] ? parseDiscovery(value[0], ref) : { state: 'missing' };
}

/** Says each sentence once. */
function warner(log: Logger) {
  const said = new Set<string>();
  return (sentences: readonly string[]) => {
    for (const sentence of sentences) {
      if (said.has(sentence)) continue;
      // Content that keeps changing is not to fill the memory.
      if (said.size >= 1_000) said.clear();
      said.add(sentence);
      log.warn(sentence);
    }
  };
}
