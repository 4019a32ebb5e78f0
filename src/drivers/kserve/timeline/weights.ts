/** How the weights come to the node: an init container of KServe downloads them into the cache. */
import { phrase, say } from '../../../domain.ts';
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
    return done(bound, bound, pod.initializes ? undefined : phrase('DownloadingWeights', 'byRuntime'));
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
  const completed = formatBytes(bytesCompleted);
  const words =
    total === undefined
      ? phrase('DownloadingWeights', 'bytes', { completed })
      : phrase('DownloadingWeights', 'bytesOf', { completed, total: formatBytes(total) });
  return { ...stage, bytesCompleted, message: `${stage.message}${words}` };
}

function ended({ exitCode, reason, message, startedAt, finishedAt }: Termination): Stage {
  if (exitCode !== 0) {
    const words = say('Error', 'downloadExited', {
      code: exitCode ?? phrase('Error', 'exitUnknown'),
      message: message ?? phrase('Error', 'noMessage'),
    });
    return failed(startedAt, { ...words, reason: reason ?? words.reason });
  }
  if (startedAt === undefined || finishedAt === undefined) return done(startedAt, finishedAt);
  const took = finishedAt - startedAt;
  const cached = took <= cachedWithin;
  const duration = formatDuration(Math.round(took / 100) * 100);
  const words = phrase('DownloadingWeights', 'cached', { duration });
  return { ...done(startedAt, finishedAt, cached ? words : undefined), cached };
}

function running({ restarts, lastTerminated }: Container, startedAt: number | undefined, now: number): Stage {
  if (restarts > 0) {
    const last = lastTerminated ? exitWords(lastTerminated) : phrase('DownloadStalled', 'noExit');
    return failed(startedAt, say('DownloadStalled', 'restarted', { count: restarts, last }));
  }
  const took = startedAt === undefined ? 0 : now - startedAt;
  if (took > stalledAfter) {
    const duration = formatDuration(Math.round(took / 60_000) * 60_000);
    return failed(startedAt, say('DownloadStalled', 'unfinished', { duration }));
  }
  return inProgress(startedAt, say('DownloadingWeights', 'downloading'));
}

function exitWords({ exitCode, reason, message }: Termination): string {
  const exit = phrase('DownloadStalled', 'lastExit', { code: exitCode ?? 'unknown' });
  return joined(exit, reason, message) ?? exit;
}
