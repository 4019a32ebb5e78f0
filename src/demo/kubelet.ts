/**
 * An emulated machinery for Jobs over an emulated cluster: their controller, the scheduler and the nodes, as far as Jobs that
 * work on a cache of models need them. A Job gets a pod, which waits for a node that it may be on, runs, writes its log and
 * ends; one that fails gets another, as often as the Job allows; one that is over goes when its time has come.
 *
 * No shell is run: what the containers of `mm-scan-…`, `mm-pull-…` and `mm-rm-…` would do is done here, to volumes in memory.
 * A download asks the Hub that its environment names which files there are, with the token it was given, and nothing more.
 * Every other Job fails, and its log says why.
 */

import { timestamp } from './cluster/store/object.ts';
import type { Change, EmulatedCluster, KubernetesObject } from './cluster.ts';
import { type Clock, realClock } from './host/clock.ts';
import { type Exit, type Job, podFor, verdictOn } from './kubelet/jobs.ts';
import { type Pod, status } from './kubelet/pods.ts';
import { programOf } from './kubelet/programs.ts';
import { createScheduler } from './kubelet/scheduler.ts';
import { type Directory, environmentOf } from './kubelet/work.ts';

export type { Directory } from './kubelet/work.ts';

export interface KubeletOptions {
  readonly clock?: Clock;
  /** What lies in a PersistentVolume from the beginning, by its name. */
  readonly volumes?: Readonly<Record<string, readonly Directory[]>>;
  /** From a node to the first line of a log, in milliseconds; 0 when absent. */
  readonly startMs?: number;
  /** How long it takes to look through a volume, or to remove from it, in milliseconds; 0 when absent. */
  readonly workMs?: number;
  /** How fast downloads are; as fast as they are asked for when absent. */
  readonly bytesPerSecond?: number;
  /** Between two lines about a download, in milliseconds; ten seconds when absent, as its script has it. */
  readonly progressMs?: number;
}

export interface EmulatedKubelet {
  /** What lies in a PersistentVolume now, by name. */
  content(volume: string): readonly Directory[];
  /** What somebody else than a Job writes there; a directory of its name is replaced. */
  write(volume: string, directory: Directory): void;
  stop(): void;
}

type Cluster = Pick<EmulatedCluster, 'get' | 'list' | 'put' | 'update' | 'remove' | 'watch' | 'logs'>;

/** After a pod that failed the next one waits this long, and twice as long each time, in milliseconds. */
const backoffMs = 10_000;

export function startKubelet(cluster: Cluster, options: KubeletOptions = {}): EmulatedKubelet {
  const { clock = realClock, startMs = 0 } = options;
  const life = new AbortController();
  /** Those that are under way, by uid: Jobs, and pods. */
  const underway = new Map<string, AbortController>();
  const volumes = new Map(
    Object.entries(options.volumes ?? {}).map(([name, content]) => [
      name,
      new Map(content.map(each => [each.dir, each])),
    ]),
  );
  const scheduler = createScheduler(cluster);
  let pods = 0;

  function contentOf(volume: string): Map<string, Directory> {
    const content = volumes.get(volume) ?? new Map<string, Directory>();
    volumes.set(volume, content);
    return content;
  }

  function noticed(change: Change) {
    const { type, resource, object } = change;
    const { uid = '', deletionTimestamp } = object.metadata;
    scheduler.noticed(change);
    if (type === 'DELETED' || deletionTimestamp) underway.get(uid)?.abort();
    else if (resource === 'jobs.batch') begin(object as Job);
  }

  function begin(job: Job) {
    const { uid = '' } = job.metadata;
    if (underway.has(uid) || job.status?.conditions?.length) return;
    during(uid, life.signal, signal => runJob(job, signal)).catch(error => {
      // It is gone, or everything is stopped: then it is over.
      if (!isAborted(error)) throw error;
    });
  }

  /** Aborts what is done as soon as its object goes. */
  async function during<T>(uid: string, outer: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const own = new AbortController();
    underway.set(uid, own);
    try {
      return await work(AbortSignal.any([outer, own.signal]));
    } finally {
      underway.delete(uid);
    }
  }

  async function runJob(job: Job, signal: AbortSignal): Promise<void> {
    const { name, namespace } = job.metadata;
    const startTime = timestamp(clock.now());
    const say = (status: object) =>
      cluster.update<{ status?: object }>('jobs.batch', name, namespace, object => {
        object.status = { startTime, ...status };
      });
    for (let failed = 0; ; ) {
      say({ active: 1, ready: 0, failed });
      const exit = await runPod(job, signal);
      signal.throwIfAborted();
      if (exit && exit.code !== 0) failed++;
      const verdict = exit && verdictOn(job, exit, failed);
      if (verdict) {
        const { type, ...why } = verdict;
        const lastTransitionTime = timestamp(clock.now());
        const condition = { type, status: 'True', lastProbeTime: lastTransitionTime, lastTransitionTime, ...why };
        const counts = type === 'Complete' ? { succeeded: 1, completionTime: lastTransitionTime } : {};
        say({ ...counts, failed, conditions: [condition] });
        break;
      }
      if (exit) await clock.sleep(backoffMs * 2 ** (failed - 1), signal);
    }
    const { ttlSecondsAfterFinished: ttl } = job.spec;
    if (ttl === undefined) return;
    await clock.sleep(ttl * 1000, signal);
    cluster.remove('jobs.batch', name, namespace, { propagationPolicy: 'Background' });
  }

  /** How it ended; undefined when it was taken away before. */
  async function runPod(job: Job, jobSignal: AbortSignal): Promise<Exit | undefined> {
    const pod = cluster.put(podFor(job, pods++)) as unknown as Pod;
    const { uid = '', name, namespace } = pod.metadata;
    try {
      return await during(uid, jobSignal, signal => live(job, pod, signal));
    } catch (error) {
      if (!isAborted(error) || life.signal.aborted) throw error;
      // Whoever is asked to end does so at once.
      if (cluster.get<KubernetesObject>('pods', name, namespace)?.metadata.uid === uid) {
        cluster.remove('pods', name, namespace);
      }
      return undefined;
    }
  }

  async function live(job: Job, pod: Pod, signal: AbortSignal): Promise<Exit> {
    const { name, namespace } = pod.metadata;
    const change = (next: object, node?: string) =>
      cluster.update<{ spec: object; status?: object }>('pods', name, namespace, object => {
        object.status = { ...object.status, ...next };
        if (node !== undefined) object.spec = { ...object.spec, nodeName: node };
      });
    const now = () => timestamp(clock.now());
    const { node, volume } = await scheduler.place(pod, why => change(status.unschedulable(why, now())), signal);
    change(status.starting(pod, now()), node);
    await clock.sleep(startMs, signal);
    const startedAt = now();
    change(status.running(pod, startedAt));
    const content = contentOf(volume);
    const [container] = pod.spec.containers;
    const exit = await programOf(job.metadata.name)({
      env: environmentOf(container, secret => cluster.get('secrets', secret, namespace)),
      content,
      now: clock.now,
      sleep: ms => clock.sleep(ms, signal),
      print: line => {
        // What was begun before somebody took the pod away writes nothing any more.
        signal.throwIfAborted();
        cluster.logs.append(namespace ?? '', name, container.name, `${line}\n`);
      },
      signal,
      workMs: options.workMs ?? 0,
      bytesPerSecond: options.bytesPerSecond ?? Number.POSITIVE_INFINITY,
      progressMs: options.progressMs ?? 10_000,
    });
    signal.throwIfAborted();
    change(status.ended(pod, exit, startedAt, now()));
    return { code: exit, pod: name, container: container.name };
  }

  const unwatch = cluster.watch(noticed);
  for (const job of cluster.list<Job>('jobs.batch')) begin(job);

  return {
    write: (volume, directory) => void contentOf(volume).set(directory.dir, directory),
    content: volume => [...(volumes.get(volume)?.values() ?? [])].sort((a, b) => (a.dir < b.dir ? -1 : 1)),
    stop() {
      unwatch();
      life.abort();
    },
  };
}

const isAborted = (error: unknown) => error instanceof Error && error.name === 'AbortError';
