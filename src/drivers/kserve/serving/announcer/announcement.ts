/** What is said at a served object of where it is on its way, in the form of Kubernetes Events. */
import { createHash } from 'node:crypto';
import { oneOf, type Step } from '../../../../domain.ts';
import { oneLine } from '../../../../kubernetes/errors.ts';
import { apiVersionOf, type KubernetesObject, type Resource } from '../../../../kubernetes/resource.ts';
import { redacted } from '../../../../secrets.ts';
import type { Timeline } from '../../timeline.ts';

/** A served object, as far as it is spoken of. */
export interface Announced {
  readonly timeline: Pick<Timeline, 'phase' | 'steps'>;
  /** Of the object. */
  readonly uid: string;
  /** Uid of the pod that speaks for it. */
  readonly pod: string | undefined;
  /** How often the containers that are at work died. */
  readonly deaths: number;
}

/** One thing to say of a served object. */
export interface Announcement {
  readonly type: 'Normal' | 'Warning';
  /** Phase, or the step that failed: what is said again while it stays the same is nothing new. */
  readonly at: string;
  /** Two that say the same of one object have the same, whichever gateway says it. */
  readonly id: string;
  /** One word in CamelCase, 128 characters at most. */
  readonly reason: string;
  /** One line without secrets, 1,024 bytes at most. */
  readonly note: string;
  /** When the phase began, in milliseconds since the epoch; undefined where nobody knows, and of failures. */
  readonly since: number | undefined;
  /** How often it happened; 1 or more. */
  readonly count: number;
}

/** What is to be said of a served object as it is now. */
export function announcementOf({ timeline, uid, pod, deaths }: Announced): Announcement {
  const { phase, steps } = timeline;
  const broken = phase === 'terminating' ? undefined : steps.find(isBroken);
  if (broken) return failureOf(broken, { uid, pod, deaths });
  const step = steps.find(({ name }) => name === phase);
  const since = step?.since?.getTime();
  const reason = camelCase(phase);
  return {
    type: 'Normal',
    at: phase,
    id: idOf(uid, phase, since),
    reason,
    note: step?.message ? lineOf(withWord(step.message, step.reason, reason)) : usualNotes[phase],
    since,
    count: 1,
  };
}

/** A runtime that died and is started again has failed as well: whoever waits for it wants to know. */
const isBroken = ({ state, reason }: Step) => state === 'failed' || (state === 'inProgress' && isDeath(reason));
const isDeath = oneOf('CrashLoop');

/** Of one step and one pod there is one failure, however often it happens: what begins anew each time is no part of it. */
function failureOf(step: Step, { uid, pod, deaths }: Omit<Announced, 'timeline'>): Announcement {
  const at = `${step.name} failed`;
  const isWord = step.reason !== undefined && /^[A-Za-z][A-Za-z0-9]{0,127}$/.test(step.reason);
  return {
    type: 'Warning',
    at,
    id: idOf(uid, at, pod),
    reason: isWord && step.reason ? step.reason : 'Failed',
    note: lineOf(step.message ?? step.reason ?? `${at} without a word`),
    since: undefined,
    count: Math.max(1, deaths),
  };
}

/** For phases whose steps say nothing. */
const usualNotes: Readonly<Record<Timeline['phase'], string>> = {
  scheduling: 'the pod waits for a node',
  nodeStarting: 'the node is starting',
  downloadingWeights: 'the weights are on their way to the node',
  pullingImage: 'the image of the runtime is on its way to the node',
  loading: 'the runtime loads the model',
  routing: 'the runtime is ready; requests are not routed to it yet',
  ready: 'the model is ready for requests',
  failed: 'the model cannot come up',
  terminating: 'the model is being taken away',
};

/** A message with the word of its step, where the Event does not have that already. */
const withWord = (message: string, word: string | undefined, reason: string) =>
  word === undefined || word === reason || message.startsWith(word) ? message : `${word}: ${message}`;

const mostBytes = 1_024;

/** Cut where it is too long, between characters. */
function lineOf(text: string): string {
  const line = oneLine(redacted(text), mostBytes);
  const bytes = Buffer.from(line);
  if (bytes.length <= mostBytes) return line;
  // A character that is not all there waits for more, and is not decoded.
  return `${new TextDecoder().decode(bytes.subarray(0, mostBytes - 3), { stream: true })}…`;
}

const camelCase = (phase: string) => `${phase.charAt(0).toUpperCase()}${phase.slice(1)}`;

const idOf = (...parts: readonly (string | number | undefined)[]) =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16);

/** Who says it. */
const reporter = 'model-manager';

interface Place {
  readonly resource: Resource;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Names of objects have no more characters. */
const longestName = 253;

/** The Event of an announcement. A phase has the time at which it began, a failure `now`. */
export function eventOf(said: Announcement, { resource, namespace, name, uid }: Place, now: number): KubernetesObject {
  const { type, reason, note: message, count } = said;
  const at = timeOf(said.since ?? now);
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name.slice(0, longestName - said.id.length - 1)}.${said.id}`, namespace },
    involvedObject: { apiVersion: apiVersionOf(resource), kind: resource.kind, namespace, name, uid },
    type,
    reason,
    message,
    count,
    firstTimestamp: at,
    lastTimestamp: at,
    source: { component: reporter },
    reportingComponent: reporter,
    reportingInstance: '',
  };
  return event;
}

/** What changes of an Event when the same happens again. */
export function repeatOf({ reason, note: message, count }: Announcement, now: number): object {
  return { reason, message, count, lastTimestamp: timeOf(now) };
}

/** Events have whole seconds. */
const timeOf = (ms: number) => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
