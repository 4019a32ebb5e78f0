/**
 * Tells Kubernetes where served objects are on their way, as Events at them. Nothing waits for it: what cannot be written is
 * left out.
 */
import { type Call, outliving } from '../../../call.ts';
import { asGatewayError, GatewayError } from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import { events } from '../../../kubernetes/resource.ts';
import { type Announced, type Announcement, announcementOf, eventOf, repeatOf } from './announcer/announcement.ts';
import { llmInferenceServices } from './served.ts';

export interface AnnouncerOptions {
  readonly client: Pick<KubernetesClient, 'create' | 'patch' | 'now'>;
  /** As whom the Events are written. */
  readonly call: Call;
}

/** What is served in a namespace, by the name of the object. */
export interface Heard {
  readonly namespace: string;
  readonly serves: ReadonlyMap<string, Announced & { readonly isWhole: boolean }>;
}

/** Events of one object in a minute at most: what comes beyond is left out. */
export const mostInMinute = 12;
/** What has not been written yet, of all objects. */
const mostWaiting = 200;
/** After a refusal nothing is tried for so long, in milliseconds. */
const refusedMs = 10 * 60_000;
/** One write takes no longer, in milliseconds. */
const writeMs = 10_000;
/** For so long Kubernetes keeps Events: what began before is no news to who sees it first, in milliseconds. */
const newsMs = 60 * 60_000;

/** What was said of one object. */
interface Told {
  last: Pick<Announcement, 'at' | 'id' | 'count'> | undefined;
  /** When Events of the last minute were given to be written, in milliseconds since the epoch. */
  readonly times: number[];
}

/** Takes all that is served, whenever any of it changes. Returns at once, and never throws. */
export function createAnnouncer({ client, call }: AnnouncerOptions): (heard: Heard) => void {
  let told = new Map<string, Told>();
  let refusedUntil = Number.NEGATIVE_INFINITY;
  /** Whether the last write failed: that is logged once, until one is done. */
  let isFailing = false;
  let waiting = 0;
  let writing = Promise.resolve();

  function failed(error: unknown): void {
    const failure = asGatewayError(error, call.requestId);
    if (failure.code === 'forbidden' || failure.code === 'unauthenticated') refusedUntil = client.now() + refusedMs;
    if (isFailing) return;
    isFailing = true;
    call.log.warn({ error: failure.message }, 'Events of served models cannot be written');
  }

  async function write(said: Announcement, namespace: string, name: string, uid: string): Promise<void> {
    if (client.now() < refusedUntil) return;
    const now = client.now();
    const event = eventOf(said, { resource: llmInferenceServices, namespace, name, uid }, now);
    const work = outliving(call, writeMs);
    try {
      const isThere = said.count > 1 && (await patched(work, event.metadata.name, namespace, repeatOf(said, now)));
      if (!isThere) await created(work, event);
      isFailing = false;
    } catch (error) {
      failed(error);
    }
  }

  async function patched(work: Call, name: string, namespace: string, patch: object): Promise<boolean> {
    try {
      await client.patch(work, events, name, namespace, patch);
      return true;
    } catch (error) {
      // The first ones were never written, or Kubernetes has forgotten them.
      if (error instanceof GatewayError && error.code === 'not_found') return false;
      throw error;
    }
  }

  async function created(work: Call, event: ReturnType<typeof eventOf>): Promise<void> {
    try {
      await client.create(work, events, event);
    } catch (error) {
      // Another gateway, or this one before it was started again, has said it.
      if (!(error instanceof GatewayError && error.details?.reason === 'AlreadyExists')) throw error;
    }
  }

  return ({ namespace, serves }) => {
    const now = client.now();
    const left = new Map<string, Told>();
    for (const [name, serve] of serves) {
      const { uid } = serve;
      const known = told.get(uid) ?? { last: undefined, times: [] };
      left.set(uid, known);
      if (!serve.isWhole || now < refusedUntil) continue;
      const said = announcementOf(serve);
      const isNews = isNewsAfter(known.last, said, now);
      if (isNews && !hasRoom(known.times, now)) continue;
      known.last = said;
      if (!isNews || waiting >= mostWaiting) continue;
      known.times.push(now);
      waiting++;
      writing = writing.then(() => write(said, namespace, name, uid)).finally(() => waiting--);
    }
    told = left;
  };
}

function isNewsAfter(last: Told['last'], said: Announcement, now: number): boolean {
  if (said.type === 'Warning') return said.id !== last?.id || said.count > last.count;
  if (last) return said.at !== last.at;
  return said.since !== undefined && said.since > now - newsMs;
}

/** Whether one more may be written of an object; what is older than a minute is dropped. */
function hasRoom(times: number[], now: number): boolean {
  while (times[0] !== undefined && times[0] <= now - 60_000) times.shift();
  return times.length < mostInMinute;
}
