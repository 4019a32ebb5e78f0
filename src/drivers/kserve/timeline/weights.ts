/** How the weights come to the node: an init container of KServe downloads them into the cache. */
import { formatBytes, formatDuration } from '../units.ts';
import type { ServeFacts } from './facts.ts';
import { type Container, lacksImage, type PodView, type Termination } from './pod.ts';
import { done, failed, inProgress, type Stage } from './steps.ts';
import { joined } from './words.ts';

const initializer = 'storage-initializer';
/** Nothing was downloaded by one that took no longer, in milliseconds. */
const cachedWithin = 15_000;
/** A download that takes longer stalls, in milliseconds. */
export const stalledAfter = 30 * 60_000;

export const initializerOf = ({ initContainers }: PodView) => initContainers.find(({ name }) => name === initializer);

/** @param bound when the pod got its node */
export function weightsStage(
  pod: PodView,
  bound: number | undefined,
  { bytesOnNode, weightsBytes }: Bytes,
  now: number,
): Stage {
  const container = initializerOf(pod);
  if (!container) {
    return done(
      bound,
      bound,
      pod.initializes ? undefined : `no ${initializer}: the runtime fetches the weights itself`,
    );
  }
  if (container.terminated) return ended(container.terminated);
  if (container.running) {
    const stage = running(container, container.running.startedAt, now);
    return stage.state === 'inProgress' ? withBytes(stage, bytesOnNode, weightsBytes) : stage;
  }
  const waiting = container.waiting ?? {};
  return lacksImage(waiting) ? failed(bound, waiting) : inProgress(bound, waiting);
}

type Bytes = Pick<ServeFacts, 'bytesOnNode' | 'weightsBytes'>;

/** What lies there may be more than the weights: a repository has other files too. */
function withBytes(stage: Stage, onNode: number | undefined, total: number | undefined): Stage {
  if (onNode === undefined) return stage;
  const bytesCompleted = total === undefined ? onNode : Math.min(onNode, total);
  const words = [formatBytes(bytesCompleted), ...(total === undefined ? [] : [formatBytes(total)])].join(' of ');
  return { ...stage, bytesCompleted, message: `${stage.message}: ${words}` };
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
