/** Following one Job and its pods by the watches of its namespace, which everybody shares. */
import type { Call } from '../../../call.ts';
import { type GatewayError, unavailable, unlessMissing } from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import type { Reflector } from '../../../kubernetes/reflector.ts';
import { jobs, type KubernetesObject, pods } from '../../../kubernetes/resource.ts';
import { located, type Watches } from '../../../kubernetes/watches.ts';
import { unlessAborted } from '../../../live/source.ts';
import { unanswered } from '../world/seen.ts';
import { type JobView, readJob } from './job.ts';
import { type PodView, podsOf } from './pod.ts';

/** The cluster as Jobs need it. */
export interface JobCluster {
  readonly client: Pick<KubernetesClient, 'get' | 'list' | 'create' | 'remove' | 'logs'>;
  readonly watches: Watches;
}

/** What is known of a Job at one moment. */
export interface JobSeen {
  /** Absent when it is gone. */
  readonly job: JobView | undefined;
  /** The newest first. */
  readonly pods: readonly PodView[];
}

export interface Following {
  /** The newest that is known. Throws what nothing can be seen for. */
  look(): Promise<JobSeen>;
  /** Resolves after the next change that concerns it, or so many milliseconds. Rejects when the call's signal aborts. */
  change(ms: number): Promise<void>;
  stop(): void;
}

/** Follows a Job as it was read or created. */
export async function followJob(
  { client, watches }: JobCluster,
  call: Call,
  created: KubernetesObject,
): Promise<Following> {
  const { namespace, uid, name } = readJob(created);
  const jobsSeen = watches.of(call, located(jobs), { namespace });
  const podsSeen = watches.of(call, located(pods), { namespace });
  const bell = createBell([jobsSeen, podsSeen]);
  try {
    // What was written just now is to be among what is seen.
    await Promise.all([jobsSeen.read(call), podsSeen.read(call)]);
    await unlessAborted(jobsSeen.seen(created, call.signal), call.signal);
  } catch (error) {
    bell.stop();
    throw error;
  }

  /** A watch may be behind: that a Job is gone is true only when the server says so. */
  async function findJob(): Promise<KubernetesObject | undefined> {
    const isIt = ({ metadata }: KubernetesObject) => metadata.name === name && metadata.uid === uid;
    const seen = shownBy(jobsSeen).find(isIt);
    if (seen) return seen;
    const found = await unlessMissing(client.get(call, jobs, name, namespace));
    return found && isIt(found) ? found : undefined;
  }

  /** Nor need the watch of the pods have come as far as that of the Jobs, when this one is over. */
  async function findPods(job: JobView | undefined): Promise<readonly PodView[]> {
    const seen = podsOf(shownBy(podsSeen), { name, uid });
    if (seen.length > 0 || !job?.end) return seen;
    const { items } = await client.list(call, pods, { namespace, labelSelector: `job-name=${name}` });
    return podsOf(items, { name, uid });
  }

  return {
    async look() {
      const found = await findJob();
      const job = found && readJob(found);
      return { job, pods: await findPods(job) };
    },
    change: ms => bell.ring(ms, call.signal),
    stop: bell.stop,
  };
}

/** What a watch shows; what is outdated is better than nothing. Throws why there is nothing. */
function shownBy(reflector: Reflector<KubernetesObject>): readonly KubernetesObject[] {
  const { value, error } = reflector.current ?? {};
  if (value && !(error && isRefused(error))) return value;
  throw error ?? unavailable(unanswered);
}

/** Waiting does not help. */
export const isRefused = ({ code }: GatewayError) => code === 'forbidden' || code === 'unauthenticated';

/** Rings once for all that changed since it was last heard. */
function createBell(sources: readonly Pick<Reflector<KubernetesObject>, 'subscribe'>[]) {
  let isRung = false;
  let waiting: PromiseWithResolvers<void> | undefined;
  const stops = sources.map(source =>
    source.subscribe(() => {
      isRung = true;
      waiting?.resolve();
    }),
  );
  return {
    async ring(ms: number, signal: AbortSignal): Promise<void> {
      signal.throwIfAborted();
      if (!isRung) {
        waiting = Promise.withResolvers();
        const timer = setTimeout(waiting.resolve, ms);
        await unlessAborted(waiting.promise, signal).finally(() => clearTimeout(timer));
      }
      isRung = false;
    },
    stop() {
      for (const stop of stops) stop();
    },
  };
}
