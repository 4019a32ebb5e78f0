/** Running a pod that does one thing and ends: its output is what it printed. */
import type { Call } from '../../../call.ts';
import { backendError, messageOf } from '../../../errors.ts';
import { jobs, type KubernetesObject } from '../../../kubernetes/resource.ts';
import { formatDuration } from '../units.ts';
import { type Following, followJob, type JobCluster, type JobSeen } from './follow.ts';
import { lastLinesOf } from './log.ts';
import { cannotStart, failedContainer, type PodView, waitingWords } from './pod.ts';
import { removeDetached } from './removal.ts';

export interface ToolRun {
  readonly job: KubernetesObject;
  /** Bytes of the output that are read. */
  readonly outputLimit: number;
}

/** Of the output of a pod that failed. */
const failureLines = 20;
/** At the latest after this it is looked at, in milliseconds. */
const lookMs = 1_000;

/**
 * Creates the Job and resolves to its output; the Job is removed. It has until the call's deadline. Rejects with what went
 * wrong, in words.
 */
export async function runTool(cluster: JobCluster, call: Call, { job, outputLimit }: ToolRun): Promise<string> {
  const allowedMs = Math.round((call.deadline - Date.now()) / 100) * 100;
  const created = await cluster.client.create(call, jobs, job);
  let seen: JobSeen | undefined;
  let following: Following | undefined;
  try {
    following = await followJob(cluster, call, created);
    for (;;) {
      seen = await following.look();
      const pod = podOf(seen);
      if (pod) return await outputOf(cluster, call, pod, created, outputLimit);
      await following.change(lookMs);
    }
  } catch (error) {
    if (call.signal.reason?.name !== 'TimeoutError') throw error;
    const [pod] = seen?.pods ?? [];
    const doing = pod ? `its pod is ${waitingWords(pod)}` : 'it has no pod';
    throw backendError(`no result within ${formatDuration(allowedMs)}: ${doing}`, { cause: error });
  } finally {
    following?.stop();
    void removeDetached(cluster.client, call, created);
  }
}

/** The pod that is through, if one is. Throws why none will be. */
function podOf({ job, pods: [pod] }: JobSeen): PodView | undefined {
  const hopeless = pod && cannotStart(pod);
  if (hopeless) throw backendError(`pod cannot start: ${hopeless}`);
  if (pod?.phase === 'Succeeded' || pod?.phase === 'Failed') return pod;
  if (!job) throw backendError('its Job was removed before it was through');
  if (!job.end || pod) return undefined;
  const { succeeded, reason, message } = job.end;
  if (succeeded) throw backendError('its pod was removed before its output was read');
  throw backendError(['its Job failed:', reason, message].filter(Boolean).join(' '));
}

async function outputOf(
  { client }: JobCluster,
  call: Call,
  pod: PodView,
  { metadata: { namespace = '' } }: KubernetesObject,
  limitBytes: number,
): Promise<string> {
  const succeeded = pod.phase === 'Succeeded';
  const container = 'tool';
  if (succeeded) return client.logs(call, pod.name, namespace, { container, limitBytes });
  const output = await client.logs(call, pod.name, namespace, { container, tailLines: failureLines }).then(
    text => lastLinesOf(text, failureLines),
    error => `(its log cannot be read: ${messageOf(error)})`,
  );
  const ended = failedContainer(pod)?.terminated;
  const words = [
    pod.reason ?? ended?.reason,
    ended && `(exit ${ended.exitCode})`,
    pod.message ?? ended?.message,
    output,
  ];
  throw backendError(['pod failed:', ...words].filter(Boolean).join(' '));
}
