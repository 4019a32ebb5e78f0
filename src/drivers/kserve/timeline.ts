/** Where a served model is on its way from its creation to its first answer. */
import { oneOf, type ServingPhase, type Step, say } from '../../domain.ts';
import { type EventView, eventView } from './timeline/events.ts';
import type { ServeFacts } from './timeline/facts.ts';
import { imageStage } from './timeline/image.ts';
import { loadingStage } from './timeline/loading.ts';
import { type ObjectView, objectView } from './timeline/object.ts';
import { type PodView, podView, podWords, type Reason, saysNothing, speakingPods } from './timeline/pod.ts';
import { placing } from './timeline/scheduling.ts';
import { allSteps, done, endOf, inProgress, type Name, type Stage } from './timeline/steps.ts';
import { weightsStage } from './timeline/weights.ts';
import { joined } from './timeline/words.ts';

export type { ServeFacts } from './timeline/facts.ts';

export interface Timeline {
  readonly status: 'Ready' | 'NotReady' | 'Pending' | 'Terminating';
  readonly phase: ServingPhase;
  /** One word, and that word with what it means. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** Where its pod is. */
  readonly node?: string | undefined;
  /** All of them, in their order. */
  readonly steps: readonly Step[];
}

/** @param now milliseconds since the epoch */
export function timeline(facts: ServeFacts, now: number): Timeline {
  const object = objectView(facts.object);
  const speaking = 'value' in facts.pods ? speakingPods(facts.pods.value).get(object.name) : undefined;
  const pod = speaking && podView(speaking);
  const stages = failedByOwnAccount(pod ? podStages(pod, object, facts, now) : podlessStages(object), object);
  const steps = allSteps(withWeights(stages, facts.weightsBytes));
  const { reason, message } = wordsOf(object, pod, steps);
  return {
    status: statusOf(object, pod),
    phase: phaseOf(object, steps),
    reason,
    message,
    node: pod?.node,
    steps,
  };
}

type Stages = Readonly<Partial<Record<Name, Stage>>>;

function podlessStages({ status, readyAt, createdAt }: ObjectView): Stages {
  if (status !== 'Ready') {
    return { scheduling: inProgress(createdAt, say('WaitingForPod', 'waiting')) };
  }
  const over = done(readyAt, readyAt);
  return {
    scheduling: over,
    nodeStarting: over,
    downloadingWeights: over,
    pullingImage: over,
    loading: over,
    routing: over,
    ready: over,
  };
}

/** One step after the other, until one is not done. */
function podStages(pod: PodView, object: ObjectView, facts: ServeFacts, now: number): Stages {
  const events = eventsOf(pod, facts);
  const { scheduling, nodeStarting } = placing(pod, events, facts, now);
  const placed = { scheduling, nodeStarting };
  if (nodeStarting?.state !== 'done') return placed;
  const downloadingWeights = weightsStage(pod, endOf(nodeStarting), facts, now);
  const weighed = { ...placed, downloadingWeights };
  if (downloadingWeights.state !== 'done') return weighed;
  const pullingImage = imageStage(pod, events, endOf(downloadingWeights));
  const pulled = { ...weighed, pullingImage };
  if (pullingImage.state !== 'done') return pulled;
  const loading = loadingStage(pod, { events, log: facts.log }, endOf(pullingImage));
  const loaded = { ...pulled, loading };
  if (loading.state !== 'done') return loaded;
  const { containersReadyAt } = pod;
  if (object.status !== 'Ready') return { ...loaded, routing: inProgress(containersReadyAt, object) };
  const { readyAt } = object;
  return { ...loaded, routing: done(containersReadyAt, readyAt), ready: done(readyAt, readyAt) };
}

/** Its events, or none when nobody could read them: then the pod tells alone. */
const eventsOf = ({ uid }: PodView, { events }: ServeFacts): readonly EventView[] =>
  'value' in events && uid !== undefined ? events.value.map(eventView).filter(each => each.uid === uid) : [];

const isUnderWay = ({ state }: Stage) => state === 'inProgress' || state === 'failed';

/** An object that gave up fails the step that it was at. */
function failedByOwnAccount(stages: Stages, { failed, reason, message }: ObjectView): Stages {
  if (!failed) return stages;
  const entries = Object.entries(stages).map(([name, stage]) =>
    stage?.state === 'inProgress' ? [name, { ...stage, state: 'failed', reason, message }] : [name, stage],
  );
  return Object.fromEntries(entries);
}

/** How large the weights are is known from the start. */
const withWeights = (stages: Stages, bytesTotal: number | undefined): Stages => ({
  ...stages,
  downloadingWeights: { ...(stages.downloadingWeights ?? { state: 'pending' }), bytesTotal },
});

function phaseOf({ deleting }: ObjectView, steps: readonly Step[]): ServingPhase {
  if (deleting) return 'terminating';
  if (steps.some(({ state }) => state === 'failed')) return 'failed';
  return steps.find(({ state }) => state === 'inProgress')?.name ?? 'ready';
}

function statusOf({ deleting, status }: ObjectView, pod: PodView | undefined): Timeline['status'] {
  if (deleting) return 'Terminating';
  return status !== 'Ready' && pod?.phase === 'Pending' ? 'Pending' : status;
}

/** Such as a pod without a node waits for better than the pod itself says. */
const isOfNode = oneOf('CapacityUnavailable', 'NodeLaunching', 'NodeStarting');

/** The pod's say before the object's, while neither is ready. */
function wordsOf(object: ObjectView, pod: PodView | undefined, steps: readonly Step[]): Reason {
  const own = { reason: object.reason, message: object.message };
  if (!pod || object.status === 'Ready' || object.deleting) return own;
  const step = steps.find(isUnderWay);
  const told = step && { reason: step.reason, message: joined(step.reason, step.message) };
  if (pod.phase !== 'Pending') return step?.state === 'failed' && !object.failed && told ? told : own;
  if (pod.node === undefined && told && isOfNode(told.reason)) return told;
  const words = podWords(pod);
  if (!saysNothing(words)) return { reason: words.reason, message: joined(words.reason, words.message) };
  return told ?? {};
}
