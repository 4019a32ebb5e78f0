/** Running a pod that does one thing and ends: its output is what it printed. */
import { type Call, createCall } from '../../../call.ts';
import { backendError, messageOf } from '../../../errors.ts';
import { jobs, type KubernetesObject } from '../../../kubernetes/resource.ts';
import { formatDuration } from '../units.ts';
import { type Following, followJob, type JobCluster, type JobSeen } from './follow.ts';
import { lastLinesOf } from './log.ts';
import { cannotStart, failedContainer, type PodView, waitingWords } from './pod.ts';
import { removeDetached } from './removal.ts';

export interface ToolRun {
  readonly job: KubernetesObject;
  /** Milliseconds until it must be over. */
  readonly timeoutMs: number;
  /** Bytes of the output that are read. */
  readonly outputLimit: number;
}

/** Of the output of a pod that failed. */
const failureLines = 20;
/** At the latest after this it is looked at, in milliseconds. */
const lookMs = 1_000;

/** Creates the Job and resolves to its output; the Job is removed. Rejects with what went wrong, in words. */
export async function runTool(cluster: JobCluster, call: Call, run: ToolRun): Promise<string> {
  const { caller, requestId, log } = call;
  const bounded = createCall({ caller, requestId, log, signal: call.signal, timeoutMs: run.timeoutMs });
  const created = await cluster.client.create(bounded, jobs, run.job);
  let seen: JobSeen | undefined;
  let following: Following | undefined;
  try {
    following = await followJob(cluster, bounded, created);
    for (;;) {
      seen = await following.look();
      const pod = podOf(seen);
      if (pod) return await outputOf(cluster, bounded, pod, created, run.outputLimit);
      await following.change(lookMs);
    }
  } catch (error) {
    if (!bounded.signal.aborted || call.signal.aborted) throw error;
    const pod = seen?.pods[0];
    const doing = pod ? `its pod is ${waitingWords(pod)}` : 'it has no pod';
    throw backendError(`no result within ${formatDuration(run.timeoutMs)}: ${doing}`, { cause: error });
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
