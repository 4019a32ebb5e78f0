/** How a download stands, as a function of its Job, its pods and what its container wrote. */
import type { PullProgress } from '../../../domain.ts';
import type { JobSeen } from '../jobs/follow.ts';
import type { JobEnd } from '../jobs/job.ts';
import { lastLinesOf, linesOf, safeLine } from '../jobs/log.ts';
import { cannotStart, failedContainer, type PodView } from '../jobs/pod.ts';
import { type DownloadPlan, downloadContainer, plannedBy } from './job.ts';

export type DownloadState =
  | { readonly at: 'underway' | 'done'; readonly progress: PullProgress }
  /** `hopeless`: the Job goes on, but nothing will come of it. */
  | { readonly at: 'failed' | 'hopeless'; readonly reason: string };

/** The log of a container, or why it could not be read. */
export type LogRead = { readonly text: string } | { readonly problem: string };

/** Of a log, these many last lines are looked at. */
export const logLines = 40;
const failureLines = 5;

/** Whose log says how the download stands; undefined while nobody has written anything. */
export function logWanted({ job, pods: [pod] }: JobSeen): { pod: string; container: string } | undefined {
  if (!pod || !job || job.end?.succeeded) return undefined;
  if (job.end) return { pod: pod.name, container: failedContainer(pod)?.name ?? downloadContainer };
  return pod.phase === 'Running' ? { pod: pod.name, container: downloadContainer } : undefined;
}

/**
 * `ref` names the Job, also when it is gone. `before` are the bytes that were there when it was last looked at: they do not
 * get less.
 */
export function downloadState(
  { job, pods: [pod] }: JobSeen,
  log: LogRead | undefined,
  ref: { readonly name: string; readonly namespace: string },
  before = 0,
): DownloadState {
  if (!job) return { at: 'failed', reason: `download Job ${ref.namespace}/${ref.name} disappeared` };
  const plan = plannedBy(job);
  const total = plan?.bytesTotal ?? 0;
  if (job.end?.succeeded) {
    const bytes = total || before;
    return { at: 'done', progress: progressOf('downloaded', bytes, bytes, plan) };
  }
  if (job.end) return { at: 'failed', reason: failureOf(job.end, log) };
  const hopeless = pod && cannotStart(pod);
  if (hopeless) return { at: 'hopeless', reason: `download pod cannot start: ${hopeless}` };
  const written = Math.max(before, lastProgress(log) ?? 0);
  const completed = total > 0 ? Math.min(written, total) : written;
  return { at: 'underway', progress: progressOf(statusOf(pod), completed, total, plan) };
}

/** What is said of a download that was just asked for. */
export const justCreated = (plan: DownloadPlan): PullProgress =>
  progressOf('download job created', 0, plan.bytesTotal ?? 0, plan);

const progressOf = (
  status: string,
  bytesCompleted: number,
  bytesTotal: number,
  plan: DownloadPlan | undefined,
): PullProgress => ({ status, bytesCompleted, bytesTotal, node: plan?.node, preset: plan?.preset });

/** After a pod that failed there comes another, or the Job is over, too. */
function statusOf(pod: PodView | undefined): string {
  if (!pod || pod.phase === 'Failed') return 'waiting for the download pod';
  return pod.phase === 'Running' || pod.phase === 'Succeeded' ? 'downloading' : 'starting the download pod';
}

/** Tools may leave a line of theirs unfinished before one of ours. */
const progressLine = /PROGRESS (\d{1,15})\s*$/;

function lastProgress(log: LogRead | undefined): number | undefined {
  if (!log || 'problem' in log) return undefined;
  const found = linesOf(log.text)
    .slice(-logLines)
    .map(line => progressLine.exec(line)?.[1])
    .findLast(bytes => bytes !== undefined);
  return found === undefined ? undefined : Number(found);
}

function failureOf({ reason, message }: JobEnd, log: LogRead | undefined): string {
  const text = log && 'text' in log ? log.text : '';
  const stalled = linesOf(text).findLast(line => line.startsWith('DOWNLOAD STALLED: '));
  if (stalled) return safeLine(stalled);
  const what = ['download failed:', reason, message].filter(Boolean).join(' ');
  const words = log && 'problem' in log ? `its log cannot be read (${log.problem})` : lastLinesOf(text, failureLines);
  return words === '' ? what : `${what}: ${words}`;
}
