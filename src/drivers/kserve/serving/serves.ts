/** Where everything that is served is on its way: told anew when something of it changes, and when time alone does. */
import type { Call } from '../../../call.ts';
import type { Read } from '../../../config/values.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import { events, type KubernetesObject, nodes, pods, type Resource } from '../../../kubernetes/resource.ts';
import { located, type Watches } from '../../../kubernetes/watches.ts';
import { createCell } from '../../../live/cell.ts';
import { derive } from '../../../live/derive.ts';
import { follow } from '../../../live/follow.ts';
import { createKept } from '../../../live/kept.ts';
import { lookups } from '../../../live/lookups.ts';
import { optional } from '../../../live/optional.ts';
import { overheard } from '../../../live/overheard.ts';
import { passed } from '../../../live/passed.ts';
import { keepEntries } from '../../../live/rows.ts';
import type { Source } from '../../../live/source.ts';
import { warm } from '../estimates/lesson.ts';
import type { Agents } from '../inventory/agent.ts';
import { fieldsOf, textOf } from '../jobs/fields.ts';
import type { KserveSettings } from '../settings.ts';
import { eventView, latestOf } from '../timeline/events.ts';
import { deathsOf, isUnreported, nodeOf, restartsOf, speakingPods } from '../timeline/pod.ts';
import { nominatedClaim, poolOfClaim } from '../timeline/scheduling/nomination.ts';
import { deathOf, isUnplaced, type LogQuestion, momentsOf } from '../timeline/wanted.ts';
import { type ServeFacts, type Timeline, timeline } from '../timeline.ts';
import type { Surroundings, World } from '../world.ts';
import type { Heard } from './announcer.ts';
import { llmInferenceServices, presetOf, servingPods } from './served.ts';
import { downloadedBytes } from './serves/bytes.ts';
import { type Karpenter, karpenterOf, noKarpenter, readOf, unreadKarpenter } from './serves/karpenter.ts';

export interface ServesOptions {
  readonly world: World;
  readonly client: Pick<KubernetesClient, 'logs' | 'now'>;
  readonly watches: Watches;
  readonly agents: Agents;
  /** The gateway's own. */
  readonly call: Call;
  /** Hears how everything stands, for as long as somebody follows it. */
  readonly announce: (heard: Heard) => void;
}

/** One served model on its way. */
export interface Serve {
  readonly timeline: Timeline;
  /** Of the object. */
  readonly uid: string;
  /** The NodePool of its node, `warm` for a node of none; absent while nobody knows. */
  readonly pool: string | undefined;
  /** How often containers of its pod were started again. */
  readonly restarts: number;
  /** Uid of the pod that speaks for it; undefined while none does. */
  readonly pod: string | undefined;
  /** How often the containers that are at work died. */
  readonly deaths: number;
  /**
   * Its pods were read, its node speaks of the one that it has, and the log of a runtime that died was asked for: what is told
   * is no guess for want of that.
   */
  readonly isWhole: boolean;
}

/** By the name of the object. */
export type Serves = ReadonlyMap<string, Serve>;

const notRead = createCell(unreadKarpenter);

/** What a part takes longer than, in milliseconds, is told as missing. */
const patienceMs = 3_000;
/** A log that could not be read is asked for again after this, in milliseconds. */
const logRetryMs = 30_000;

export const createServes = (options: ServesOptions): Source<Serves> =>
  follow(options.world.settings, settings => servesBy(options, settings));

type Objects = readonly KubernetesObject[];

function servesBy(
  { world, client, watches, agents, call, announce }: ServesOptions,
  settings: KserveSettings,
): Source<Serves> {
  const { namespace, gpuResource, scaleUpTimeout } = settings;
  const watch = (resource: Resource, selection = {}): Source<Objects> => watches.of(call, located(resource), selection);
  const part = (resource: Resource, selection = {}) => optional(watch(resource, selection), patienceMs);

  const objects = part(llmInferenceServices, { namespace });
  const servers = part(pods, { namespace, labelSelector: servingPods });
  /** Those that speak: of others nothing has to be asked. */
  const speaking = derive<[Objects], Objects>([servers], ([{ value = [] }]) => [...speakingPods(value).values()]);

  const waiting = derive<[Objects], boolean>([speaking], ([{ value = [] }]) => value.some(isUnplaced));
  const karpenter = follow<boolean, Karpenter>(waiting, isWaiting =>
    isWaiting ? karpenterOf(watch, patienceMs) : notRead,
  );
  const logs = lookups<Objects, LogQuestion, string>(speaking, {
    wanted: pods => new Map(pods.flatMap(pod => deathOf(pod) ?? []).map(({ key, log }) => [key, log])),
    look: async (call, { pod, namespace, ...options }) => client.logs(call, pod, namespace, options),
    timeoutMs: patienceMs,
    staleMs: Number.POSITIVE_INFINITY,
    retryMs: logRetryMs,
    call,
  });
  const bytes = downloadedBytes({ pods: speaking, around: world.surroundings, agents, settings, patienceMs, call });

  const tell = createTeller({ gpuResource, scaleUpTimeout }, client.now);
  type Parts = [
    Objects,
    Objects,
    Objects,
    Objects,
    Karpenter,
    Surroundings,
    ReadonlyMap<string, Read<string>>,
    ReadonlyMap<string, number>,
    number,
  ];
  const serves = derive<Parts, Serves>(
    [
      objects,
      servers,
      part(events, { namespace, fieldSelector: 'involvedObject.kind=Pod' }),
      part(nodes),
      karpenter,
      world.surroundings,
      logs,
      bytes,
      passed(speaking, pods => pods.flatMap(pod => momentsOf(pod, scaleUpTimeout)), client.now),
    ],
    ([objects, servers, events, nodes, karpenter, around, logs, bytes], before) =>
      keepEntries(
        before,
        tell({
          objects: objects.value ?? [],
          pods: readOf(servers),
          events: readOf(events),
          nodes: readOf(nodes),
          karpenter: karpenter.value ?? unreadKarpenter,
          around: around.value,
          logs: logs.value ?? new Map(),
          bytes: bytes.value ?? new Map(),
        }),
      ),
  );
  return overheard(serves, serves => announce({ namespace, serves }));
}

/** Everything that serves are told from, as it was last read. */
interface Scene {
  readonly objects: Objects;
  readonly pods: Read<Objects>;
  readonly events: Read<Objects>;
  readonly nodes: Read<Objects>;
  readonly karpenter: Karpenter;
  readonly around: Surroundings | undefined;
  readonly logs: ReadonlyMap<string, Read<string>>;
  /** Of weights on their node, by the uid of the pod that downloads them. */
  readonly bytes: ReadonlyMap<string, number>;
}

/** Tells each serve from its own part of the scene, and again only when that part changed or its time came. */
function createTeller(settings: ServeFacts['settings'], clock: () => number): (scene: Scene) => Serves {
  const kept = createKept<Subject, Serve>({
    key: ({ facts }) => facts.object.metadata.name,
    from: ({ facts, moment }) => [...partsOf(facts), moment],
    make: ({ facts, now }) => told(facts, now),
  });
  return scene => {
    const now = clock();
    const subjects = subjectsIn(scene, settings, now);
    const serves = kept(subjects);
    return new Map(subjects.map(({ facts }, at) => [facts.object.metadata.name, serves[at] as Serve]));
  };
}

function told(facts: ServeFacts, now: number): Serve {
  const { object, pods, nodes, events, log } = facts;
  const [pod] = 'value' in pods ? pods.value : [];
  const [node] = 'value' in nodes ? nodes.value : [];
  return {
    timeline: onClock(timeline(facts, now), Math.round((now - Date.now()) / 1000) * 1000),
    uid: object.metadata.uid ?? '',
    pool: node ? (node.metadata.labels?.[poolLabel] ?? warm) : nominatedPool('value' in events ? events.value : []),
    restarts: pod ? restartsOf(pod) : 0,
    pod: pod?.metadata.uid,
    deaths: pod ? deathsOf(pod) : 0,
    isWhole: 'value' in pods && !(pod && (isUnreported(pod) || (log === undefined && deathOf(pod)))),
  };
}

/** With what its times are to be compared with, where that is not our clock: in whole seconds, as its times are. */
function onClock(told: Timeline, aheadMs: number): Timeline {
  if (aheadMs === 0) return told;
  return { ...told, steps: told.steps.map(step => (step.state === 'inProgress' ? { ...step, aheadMs } : step)) };
}

/** Of the nodes that Karpenter started. */
const poolLabel = 'karpenter.sh/nodepool';

function nominatedPool(events: Objects): string | undefined {
  const claim = nominatedClaim(latestOf(events.map(eventView), 'Nominated')?.message);
  return claim === undefined ? undefined : poolOfClaim(claim);
}

interface Subject {
  readonly facts: ServeFacts;
  readonly now: number;
  /** The last of its own moments that has passed. */
  readonly moment: number;
}

function subjectsIn(scene: Scene, settings: ServeFacts['settings'], now: number): Subject[] {
  const { around } = scene;
  const speaking = 'value' in scene.pods ? speakingPods(scene.pods.value) : undefined;
  const aboutPods = 'value' in scene.events ? Map.groupBy(scene.events.value, subjectOf) : undefined;
  const machines = 'value' in scene.nodes ? Map.groupBy(scene.nodes.value, ({ metadata }) => metadata.name) : undefined;
  const cache: ServeFacts['cache'] = around?.location
    ? { value: around.location }
    : { problem: around?.notes.cache[0] ?? 'nobody said where the cache is' };
  const servedOf = new Map(around?.served.map(each => [each.name, each]));

  return scene.objects.map(object => {
    const { name } = object.metadata;
    const pod = speaking?.get(name);
    const isWaiting = pod !== undefined && isUnplaced(pod);
    const death = pod && deathOf(pod);
    const served = servedOf.get(name);
    const node = nodeOf(pod);
    const facts: ServeFacts = {
      object,
      pods: narrowed(scene.pods, () => (pod ? [pod] : [])),
      events: narrowed(scene.events, () => aboutPods?.get(pod?.metadata.uid ?? '') ?? []),
      nodes: narrowed(scene.nodes, () => machines?.get(node ?? '') ?? []),
      log: death && scene.logs.get(death.key),
      ...(isWaiting ? scene.karpenter : noKarpenter),
      cache,
      settings,
      weightsBytes: served && presetOf(served, around?.presets ?? [])?.weightsBytes,
      bytesOnNode: scene.bytes.get(pod?.metadata.uid ?? ''),
    };
    const moments = pod ? momentsOf(pod, settings.scaleUpTimeout).filter(moment => moment <= now) : [];
    return { facts, now, moment: Math.max(0, ...moments) };
  });
}

/** All that a timeline is told from, thing by thing. */
function partsOf({ object, cache, log, weightsBytes, bytesOnNode, settings: _, ...lists }: ServeFacts): unknown[] {
  const things = Object.values(lists).flatMap<unknown>(read =>
    'value' in read ? [read.value.length, ...read.value] : [read.problem],
  );
  return [object, 'value' in cache ? cache.value : cache.problem, log, weightsBytes, bytesOnNode, ...things];
}

const narrowed = (read: Read<Objects>, some: () => Objects): Read<Objects> =>
  'value' in read ? { value: some() } : read;

const subjectOf = (event: KubernetesObject) => textOf(fieldsOf(fieldsOf(event).involvedObject).uid) ?? '';
