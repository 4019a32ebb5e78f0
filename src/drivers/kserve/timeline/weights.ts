/** How the weights come to the node: an init container of KServe downloads them into the cache. */
import { formatDuration } from '../units.ts';
import { type Container, lacksImage, type PodView, type Termination } from './pod.ts';
import { done, failed, inProgress, type Stage } from './steps.ts';
import { joined } from './words.ts';

const initializer = 'storage-initializer';
/** Nothing was downloaded by one that took no longer, in milliseconds. */
const cachedWithin = 15_000;
/** A download that takes longer stalls, in milliseconds. */
const stalledAfter = 30 * 60_000;

/** @param bound when the pod got its node */
export function weightsStage(pod: PodView, bound: number | undefined, now: number): Stage {
  const container = pod.initContainers.find(({ name }) => name === initializer);
  if (!container) {
    return done(
      bound,
      bound,
      pod.initializes ? undefined : `no ${initializer}: the runtime fetches the weights itself`,
    );
  }
  if (container.terminated) return ended(container.terminated);
  if (container.running) return running(container, container.running.startedAt, now);
  const waiting = container.waiting ?? {};
  return lacksImage(waiting) ? failed(bound, waiting) : inProgress(bound, waiting);
}

function ended({ exitCode, reason, message, startedAt, finishedAt }: Termination): Stage {
  if (exitCode !== 0) {
    const words = `${initializer} exited ${exitCode ?? 'with an unknown code'}: ${message ?? 'no message'}`;
    return failed(startedAt, { reason: reason ?? 'Error', message: words });
  }
  if (startedAt === undefined || finishedAt === undefined) return done(startedAt, finishedAt);
  const took = finishedAt - startedAt;
  const cached = took <= cachedWithin;
  const rounded = formatDuration(Math.round(took / 100) * 100);
  const words = `the cache claim already held the weights (${initializer} finished in ${rounded})`;
  return { ...done(startedAt, finishedAt, cached ? words : undefined), cached };
}

function running({ restarts, lastTerminated }: Container, startedAt: number | undefined, now: number): Stage {
  const stalled = (message: string) => failed(startedAt, { reason: 'DownloadStalled', message });
  if (restarts > 0) {
    const last = lastTerminated
      ? joined('last exit', String(lastTerminated.exitCode ?? 'unknown'), lastTerminated.reason, lastTerminated.message)
      : 'no termination recorded';
    return stalled(`${initializer} restarted ${restarts}× (${last})`);
  }
  const took = startedAt === undefined ? 0 : now - startedAt;
  if (took > stalledAfter) {
    const rounded = formatDuration(Math.round(took / 60_000) * 60_000);
    return stalled(`${initializer} running for ${rounded} without finishing`);
  }
  const message = `${initializer} downloading the weights into the cache claim`;
  return inProgress(startedAt, { reason: 'DownloadingWeights', message });
}
