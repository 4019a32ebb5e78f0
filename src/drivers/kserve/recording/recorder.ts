/** Puts a serve on record while it happens. */
import type { Call } from '../../../call.ts';
import { ConfigError } from '../../../config/settings.ts';
import { messageOf } from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import type { Watches } from '../../../kubernetes/watches.ts';
import type { DiscoveryRef } from '../discovery.ts';
import { presetsIn } from '../presets.ts';
import { type ContainerLog, changesBetween, type Denied, type Recording, type State } from '../recording.ts';
import { servedModels } from '../serving/served.ts';
import type { KserveSettings } from '../settings.ts';
import { speakingPods } from '../timeline/pod.ts';
import { deathOf } from '../timeline/wanted.ts';
import { type Timeline, timeline } from '../timeline.ts';
import { cleaned } from './clean.ts';
import { type Course, courseAfter, endingOf } from './ending.ts';
import { factsOf } from './facts.ts';
import { masked } from './mask.ts';
import { relevantObjects } from './relevant.ts';
import { openSources, type Sight } from './sources.ts';

export interface RecorderOptions {
  readonly client: Pick<KubernetesClient, 'logs' | 'now'>;
  readonly watches: Watches;
  /** Until its signal aborts. */
  readonly call: Call;
  readonly settings: KserveSettings;
  readonly discovery: DiscoveryRef;
  /** Of the object, or the model that it serves. */
  readonly reference: string;
  /** Told when there is nothing to record yet. */
  waiting(): void;
  /** Told each time that the timeline says something else. */
  told(recording: Recording, told: Timeline): void;
}

/** Why it ended, and what is on record; nothing when the object was never seen. */
export interface Recorded {
  readonly recording: Recording | undefined;
  readonly ending: 'ready' | 'failed' | 'gone' | 'stopped';
}

/** Changes that come within this become one instant, in milliseconds. */
const gatherMs = 250;
/** Without a change the timeline is looked at this often: some of it is told by the clock. In milliseconds. */
const lookMs = 1_000;
/** What has not answered by then is on record as not read, in milliseconds. */
const patienceMs = 5_000;

/** Rejects with a `ConfigError` when served models cannot be seen, or several objects serve the one that is meant. */
export async function recordServe(options: RecorderOptions): Promise<Recorded> {
  const { client, watches, call, settings, reference } = options;
  const { signal } = call;
  let wake = Promise.withResolvers<void>();
  const sources = openSources(watches, call, { ...settings, discovery: options.discovery }, () => wake.resolve());
  const readLog = createLogReader(options);
  const patientUntil = Date.now() + patienceMs;
  let name: string | undefined;
  let recording: Recording | undefined;
  let state: State | undefined;
  let last: Timeline | undefined;
  let isWaiting = false;
  let course: Course | undefined;

  /** Puts what is different on record. Returns how it ended, if it did. */
  async function take(): Promise<Recorded['ending'] | undefined> {
    if (!sources.answered && Date.now() < patientUntil) return undefined;
    const sight = sources.look();
    if (sight.problem && !recording) throw new ConfigError([`nothing can be recorded: ${sight.problem}`]);
    name ??= nameOf(sight, reference, settings);
    const object = sight.served.find(({ metadata }) => metadata.name === name);
    if (!object) {
      if (recording) return 'gone';
      if (!isWaiting) options.waiting();
      isWaiting = true;
      return undefined;
    }
    const { log, denied } = await readLog(sight.seen.pods, object.metadata.name);
    const next: State = {
      objects: relevantObjects(object, sight.seen).map(cleaned),
      denied: [...sight.denied, ...denied],
      log,
    };
    // As the objects have it, and never back.
    const at = Math.max(client.now(), recording?.instants.at(-1)?.at ?? 0);
    recording ??= begun(object, sight, settings);
    const now = timeline(factsOf(recording, next), at);
    course = courseAfter(course, now, at);
    const ending = endingOf(course, at);
    const changes = changesBetween(state, next);
    // Some messages count the minutes: without a change only what they mean is news.
    if (!changes && coarse(now) === coarse(last)) return ending;
    const isNews = wordsOf(now) !== wordsOf(last);
    recording = { ...recording, instants: [...recording.instants, { at, ...(changes ?? { objects: [], gone: [] }) }] };
    state = next;
    last = now;
    if (isNews) options.told(recording, now);
    return ending;
  }

  try {
    for (;;) {
      // Also when it was stopped: what changed last is not lost.
      const isStopped = signal.aborted;
      const ending = await take();
      if (ending || isStopped) return { recording, ending: ending ?? 'stopped' };
      await within(wake.promise, lookMs, signal);
      wake = Promise.withResolvers();
      await within(new Promise(() => {}), gatherMs, signal);
    }
  } finally {
    sources.stop();
  }
}

/** What is told in a line: times alone are no news. */
const wordsOf = (told: Timeline | undefined) =>
  told && JSON.stringify([coarse(told), told.steps.map(({ message }) => message)]);

/** Where it is, and why in a word. */
const coarse = (told: Timeline | undefined) =>
  told && JSON.stringify([told.phase, told.steps.map(({ state, reason }) => [state, reason])]);

/** Resolves with the promise, after so long, or when the signal aborts. */
function within(news: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { once: true });
    void news.then(end);
  });
}

/** The object that is meant; undefined while there is none. */
function nameOf({ served, seen }: Sight, reference: string, settings: KserveSettings): string | undefined {
  if (served.some(({ metadata }) => metadata.name === reference)) return reference;
  const { presets } = presetsIn(seen.presets, settings);
  const models = servedModels({ objects: served, pods: [], presets, gpuResource: settings.gpuResource });
  const serving = models.filter(({ model }) => model.toLowerCase() === reference.toLowerCase());
  if (serving.length > 1) {
    const names = serving.map(({ name }) => name).join(', ');
    throw new ConfigError([`several objects serve ${reference}; name one of ${names}`]);
  }
  return serving[0]?.name;
}

function begun(object: KubernetesObject, { seen }: Sight, settings: KserveSettings): Recording {
  const { namespace, gpuResource, scaleUpTimeout, cache, gatewayEndpoint } = settings;
  const { presets } = presetsIn(seen.presets, settings);
  const [served] = servedModels({ objects: [object], pods: [], presets, gpuResource });
  const weightsBytes = presets.find(({ name }) => name === served?.preset)?.weightsBytes;
  return {
    object: object.metadata.name,
    namespace,
    settings: {
      gpuResource,
      scaleUpTimeout,
      ...(cache.enabled && { cacheClaim: cache.claim }),
      ...(cache.nodes.length > 0 && { cacheNodes: cache.nodes }),
      ...(gatewayEndpoint !== undefined && { gatewayEndpoint: masked(gatewayEndpoint) }),
      ...(weightsBytes !== undefined && { weightsBytes }),
    },
    instants: [],
  };
}

/** Reads what a runtime wrote before it died, once each time that it does. */
function createLogReader({ client, call, settings: { namespace } }: RecorderOptions) {
  let known: { readonly key: string; readonly log: ContainerLog | undefined; readonly denied: readonly Denied[] } = {
    key: '',
    log: undefined,
    denied: [],
  };
  return async (pods: readonly KubernetesObject[], object: string) => {
    const pod = speakingPods(pods).get(object);
    const death = pod && deathOf(pod);
    if (!death) return { log: undefined, denied: [] };
    if (death.key === known.key || call.signal.aborted) return known;
    const { key } = death;
    const { pod: name, namespace: _, ...question } = death.log;
    try {
      const text = await client.logs(call, name, namespace, question);
      const { container, previous } = question;
      known = { key, log: { pod: name, container, previous, text: masked(text) }, denied: [] };
    } catch (error) {
      if (call.signal.aborted) return known;
      // A runtime that is back may have no log of its last run yet or any more: that is what is on record then.
      const message = masked(messageOf(error));
      known = { key, log: undefined, denied: [{ resource: 'pods/log', namespace, message }] };
    }
    return known;
  };
}
