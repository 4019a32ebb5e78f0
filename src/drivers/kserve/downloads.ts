/** Downloads into the cache: Jobs that go on without this process, and are found again by the next one. */
import { type Call, cancelled, outliving } from '../../call.ts';
import type { PullProgress } from '../../domain.ts';
import { backendError, conflict, GatewayError, messageOf, unavailable, unlessMissing } from '../../errors.ts';
import { jobs, type KubernetesObject } from '../../kubernetes/resource.ts';
import { located } from '../../kubernetes/watches.ts';
import type { Source } from '../../live/source.ts';
import { until } from '../../live/until.ts';
import type { PullPlan } from '../driver.ts';
import { endedByLeaving } from '../progress.ts';
import { type DownloadPlan, downloadJob, downloadJobName, plannedBy } from './downloads/job.ts';
import { downloadState, justCreated, type LogRead, logLines, logWanted } from './downloads/state.ts';
import { followJob, isRefused, type JobCluster, type JobSeen } from './jobs/follow.ts';
import { type JobView, readJob } from './jobs/job.ts';
import { removeDetached } from './jobs/removal.ts';
import { ownSelector } from './labels.ts';
import type { KserveSettings } from './settings.ts';
import { readValue } from './world/seen.ts';

export interface DownloadsOptions extends JobCluster {
  readonly settings: Source<KserveSettings>;
  /** What is in the cache is another now. */
  changed(): void;
}

/** A download that runs in the cluster. */
interface UnfinishedDownload extends DownloadPlan {
  readonly job: KubernetesObject;
}

/**
 * A download ends when everything is there, and throws `backend_error` with what its Job or its log say when it is not.
 * Its Job is removed when the last who follows it cancels, and when its pod cannot start; who leaves, or stops, leaves it running.
 */
export interface Downloads {
  /**
   * Creates the Job, or joins the one that downloads the same; one that is over gives way. Throws `conflict` when somebody
   * else's has its name, or when it downloads something else into the same directory.
   */
  start(call: Call, plan: DownloadPlan): AsyncIterable<PullProgress>;
  /** What `start` would do. Throws the same conflicts. */
  plan(call: Call, plan: DownloadPlan): Promise<Pick<PullPlan, 'manifests' | 'joins' | 'deletes'>>;
  /** Those that this gateway began and that are not over, by whichever process. */
  unfinished(call: Call): Promise<readonly UnfinishedDownload[]>;
  follow(call: Call, download: UnfinishedDownload): AsyncIterable<PullProgress>;
  /** Throws `conflict` while something is downloaded into a directory: it must not be taken away under it. */
  refuseDuring(call: Call, directory: string): Promise<void>;
}

/** For a Job that is over to go, in milliseconds. */
const goingMs = 30_000;
/** For creating one, in milliseconds. */
const creatingMs = 30_000;
/** Others may create, finish or remove the same Job meanwhile. */
const attempts = 3;
/** Who may not look any more waits this long for their rights to come back, in milliseconds. */
const refusedMs = 60_000;
/** Without any news it is looked at after this, in milliseconds. */
const idleMs = 30_000;

export function createDownloads({ client, watches, settings, changed }: DownloadsOptions): Downloads {
  const cluster: JobCluster = { client, watches };
  /** How many follow a Job, by its uid: one of them who cancels takes it from nobody else. */
  const followers = new Map<string, number>();

  async function obtain(call: Call, settings: KserveSettings, plan: DownloadPlan) {
    const wanted = downloadJob(settings, plan);
    const { name, namespace } = wanted.metadata;
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const made = await create(call, wanted);
      if (made) return { job: made, isNew: true };
      const found = await unlessMissing(client.get(call, jobs, name, namespace));
      if (!found) continue;
      const there = readJob(found);
      if (isJoined(there, plan)) return { job: found, isNew: false };
      await removeFinished(call, there);
    }
    throw conflict(`download Job ${namespace}/${name} is created and removed by others at the same time; try again`);
  }

  /** Undefined when the name is taken. Whether it was created is known in any case, so that it can be removed. */
  async function create(call: Call, job: KubernetesObject): Promise<KubernetesObject | undefined> {
    call.signal.throwIfAborted();
    try {
      return await client.create(outliving(call, creatingMs), jobs, job);
    } catch (error) {
      if (error instanceof GatewayError && error.code === 'conflict') return undefined;
      throw error;
    }
  }

  async function removeFinished(call: Call, { name, namespace, uid, deleting }: JobView): Promise<void> {
    if (!deleting) await client.remove(call, jobs, name, namespace, { uid });
    const seen = watches.of(call, located(jobs), { namespace });
    const isGone = (all: readonly KubernetesObject[]) => !all.some(({ metadata }) => metadata.uid === uid);
    if (await until(seen, isGone, { ms: goingMs, signal: call.signal })) return;
    throw unavailable(`download Job ${namespace}/${name} is over, but still there 30s after its removal; try again`);
  }

  async function* started(call: Call, plan: DownloadPlan): AsyncGenerator<PullProgress> {
    const known = await readValue(settings, call);
    const { job, isNew } = await obtain(call, known, plan);
    yield* progress(call, known, job, isNew ? plan : undefined);
  }

  async function* followed(call: Call, { job }: UnfinishedDownload): AsyncGenerator<PullProgress> {
    yield* progress(call, await readValue(settings, call), job);
  }

  async function* progress(
    call: Call,
    settings: KserveSettings,
    job: KubernetesObject,
    created?: DownloadPlan,
  ): AsyncGenerator<PullProgress> {
    const { uid } = readJob(job);
    followers.set(uid, (followers.get(uid) ?? 0) + 1);
    try {
      call.signal.throwIfAborted();
      if (created) yield justCreated(created);
      yield* news(call, settings, job);
    } finally {
      const others = (followers.get(uid) ?? 1) - 1;
      if (others > 0) followers.set(uid, others);
      else followers.delete(uid);
      if (others === 0 && call.signal.aborted && call.signal.reason === cancelled)
        void removeDetached(client, call, job);
      changed();
    }
  }

  async function* news(call: Call, { pollInterval }: KserveSettings, job: KubernetesObject) {
    const ref = readJob(job);
    const following = await followJob(cluster, call, job);
    const log = createLogReader(call, ref.namespace, pollInterval);
    let refusedSince: number | undefined;
    let shown: PullProgress | undefined;
    try {
      for (;;) {
        let seen: JobSeen;
        try {
          seen = await following.look();
          refusedSince = undefined;
        } catch (error) {
          call.signal.throwIfAborted();
          if (!(error instanceof GatewayError)) throw error;
          refusedSince = isRefused(error) ? (refusedSince ?? Date.now()) : undefined;
          if (Date.now() - (refusedSince ?? Date.now()) >= refusedMs) throw cannotFollow(ref, error);
          await following.change(pollInterval);
          continue;
        }
        const state = downloadState(seen, await log(seen), ref, shown?.bytesCompleted);
        if (state.at === 'hopeless') void removeDetached(client, call, job);
        if (!('progress' in state)) throw backendError(state.reason);
        if (!isSame(state.progress, shown)) yield state.progress;
        if (state.at === 'done') return;
        shown = state.progress;
        await following.change(logWanted(seen) ? pollInterval : idleMs);
      }
    } finally {
      following.stop();
    }
  }

  /** Reads a log at most so often, but for that of a download that is over. */
  function createLogReader(call: Call, namespace: string, everyMs: number) {
    let last: { readonly key: string; readonly at: number; readonly read: LogRead } | undefined;
    return async (seen: JobSeen): Promise<LogRead | undefined> => {
      const wanted = logWanted(seen);
      if (!wanted) return undefined;
      const key = JSON.stringify(wanted);
      if (last?.key === key && !seen.job?.end && Date.now() - last.at < everyMs) return last.read;
      const options = { container: wanted.container, tailLines: logLines };
      const read = await client.logs(call, wanted.pod, namespace, options).then(
        text => ({ text }),
        error => {
          call.signal.throwIfAborted();
          return { problem: messageOf(error) };
        },
      );
      last = { key, at: Date.now(), read };
      return read;
    };
  }

  return {
    start: (call, plan) => endedByLeaving(call, bounded => started(bounded, plan)),
    follow: (call, download) => endedByLeaving(call, bounded => followed(bounded, download)),

    async plan(call, plan) {
      const wanted = downloadJob(await readValue(settings, call), plan);
      const { name, namespace } = wanted.metadata;
      const found = await unlessMissing(client.get(call, jobs, name, namespace));
      if (found && isJoined(readJob(found), plan)) return { manifests: [], joins: name, deletes: [] };
      return { manifests: [wanted], deletes: found ? [{ kind: 'Job', namespace, name }] : [] };
    },

    async unfinished(call) {
      const { namespace } = await readValue(settings, call);
      const { items } = await client.list(call, jobs, { namespace, labelSelector: ownSelector('download') });
      return items.flatMap(job => {
        const view = readJob(job);
        const plan = view.end || view.deleting ? undefined : plannedBy(view);
        return plan ? [{ ...plan, job }] : [];
      });
    },

    async refuseDuring(call, directory) {
      const { namespace } = await readValue(settings, call);
      const found = await unlessMissing(client.get(call, jobs, downloadJobName(directory), namespace));
      const there = found && readJob(found);
      if (!there || there.end || there.deleting) return;
      throw conflict(
        `${directory} is being downloaded by Job ${namespace}/${there.name}; cancel the download, or wait for it`,
      );
    },
  };
}

function cannotFollow({ namespace, name }: JobView, error: GatewayError): GatewayError {
  const what = `download Job ${namespace}/${name} goes on, but cannot be followed: ${error.message}`;
  return new GatewayError(error.code, what, { cause: error });
}

/** Whether the Job of that name is joined; else it is over, and gives way. Throws `conflict` when it does neither. */
function isJoined(there: JobView, plan: DownloadPlan): boolean {
  const { managed, namespace, name, end, deleting } = there;
  if (!managed) {
    throw conflict(`Job ${namespace}/${name} exists and is not one of model-manager's; remove it to download`);
  }
  if (end || deleting) return false;
  checkSame(there, plan);
  return true;
}

/** Two downloads into one directory would be in each other's way. */
function checkSame(running: JobView, wanted: DownloadPlan): void {
  const plan = plannedBy(running);
  if (!plan) return;
  const what = ({ repository, revision = 'main' }: DownloadPlan) =>
    `${repository}${revision === 'main' ? '' : `:${revision}`}`;
  const isOther = what(plan).toLowerCase() !== what(wanted).toLowerCase();
  const isElsewhere = wanted.node !== undefined && plan.node !== undefined && wanted.node !== plan.node;
  if (!isOther && !isElsewhere) return;
  const where = plan.node ? ` on ${plan.node}` : '';
  throw conflict(
    `${what(plan)} is being downloaded into ${wanted.directory}${where} by Job ` +
      `${running.namespace}/${running.name}; wait for it, or cancel it`,
  );
}

const isSame = (one: PullProgress, other: PullProgress | undefined) =>
  other !== undefined &&
  one.status === other.status &&
  one.bytesCompleted === other.bytesCompleted &&
  one.bytesTotal === other.bytesTotal;
