import type { Logger } from 'pino';
import { createCall } from '../../call.ts';
import type { Job } from '../../domain.ts';
import { GatewayError, messageOf, unlessMissing } from '../../errors.ts';
import type { KubernetesClient } from '../../kubernetes/client.ts';
import { type ConfigMap, configMaps, type Lease, leases } from '../../kubernetes/resource.ts';
import { unlessAborted } from '../../live/source.ts';
import { type Claim, isFinished, lost } from '../store.ts';
import { heldBy, leaseName, leaseSeconds, released, renewed } from './lease.ts';
import { readRecord, recordName, recordOf } from './record.ts';
import { createWriter } from './writer.ts';

/** Where jobs are kept, and as whom. */
export interface Place {
  readonly client: KubernetesClient;
  readonly namespace: string;
  /** This process among the replicas. */
  readonly holder: string;
  readonly log: Logger;
}

/** A job that this replica works on. */
export interface Holding {
  readonly key: string;
  /** As it is now, whatever is on record. */
  readonly job: Job;
  readonly claim: Claim;
  /** Has the work stop. */
  stop(reason: Error): void;
  /** Resolves when it is on record how it is, or after 5 s. */
  settled(): Promise<void>;
  end(): void;
}

export interface HoldingOptions extends Place {
  readonly key: string;
  readonly job: Job;
  readonly lease: Lease;
  readonly record: ConfigMap;
  /** The job has changed, or it is no longer ours. */
  readonly onChange: (holding: Holding, isOurs: boolean) => void;
}

/** Progress is on record at most this often, in milliseconds. */
const recordMs = 3_000;
/** A Lease is renewed this often, in milliseconds: two renewals may fail before it lapses. */
const renewMs = (leaseSeconds * 1000) / 3;
/** A request of this process's own takes no longer, in milliseconds. */
const requestMs = 8_000;
/** What is not on record after this long, in milliseconds, is not waited for when the process stops. */
const settleMs = 5_000;

/** The call of what a replica does for itself. */
export const ownCall = (log: Logger) => createCall({ log, timeoutMs: requestMs });

export const isConflict = (error: unknown) => error instanceof GatewayError && error.code === 'conflict';

/**
 * Holds a job: keeps its Lease, and on record how it is. While the API server is away the work goes on: nobody else can
 * take it over meanwhile, and whoever comes first afterwards has it.
 */
export function hold({ client, namespace, holder, log, key, onChange, ...given }: HoldingOptions): Holding {
  const stop = new AbortController();
  const { id } = given.job;
  let { job, lease, record } = given;
  let isOver = false;
  let isLost = false;
  /** Why it could not be written since it last was: each reason is told once. */
  const told = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let renewal = Promise.resolve();

  const writer = createWriter<Job>({ write, onFailure: failed, intervalMs: recordMs, retryMs: recordMs });

  function failed(error: unknown) {
    const reason = messageOf(error);
    if (!told.has(reason)) log.warn({ job: id, error: reason }, 'cannot put a job on record');
    told.add(reason);
  }

  async function write(next: Job) {
    record = await recorded(next);
    told.clear();
    if (isFinished(next)) return letGo();
    if (!hasEnded(record)) return;
    await letGo();
    lose();
  }

  /**
   * Over whatever was written meanwhile, which is a request to stop, or by somebody who has taken it over. What has ended
   * stays so: whoever it was taken from may have come to its end before the first word of who has it now.
   */
  async function recorded(next: Job): Promise<ConfigMap> {
    const call = ownCall(log);
    for (;;) {
      try {
        return await client.replace(call, configMaps, recordOf({ job: next, key }, namespace, record));
      } catch (error) {
        if (!isConflict(error) && !isMissing(error)) throw error;
        await confirm();
        if (isLost) throw error;
        const there = await unlessMissing(client.get(call, configMaps, recordName(id), namespace));
        if (!there) return client.create(call, configMaps, recordOf({ job: next, key }, namespace));
        if (hasEnded(there)) return there;
        record = there;
      }
    }
  }

  /** Removes the Lease, unless somebody else has it by now. */
  async function letGo() {
    end();
    await renewal;
    const { uid, resourceVersion } = lease.metadata;
    try {
      await client.remove(ownCall(log), leases, leaseName(key), namespace, { uid, resourceVersion });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }

  /** Somebody else has it: nothing of ours is written any more. */
  function lose() {
    isLost = true;
    end();
    writer.end();
    stop.abort(lost);
    onChange(holding, false);
  }

  /** Finds out whether it still is ours. */
  async function confirm() {
    const call = ownCall(log);
    const there = await unlessMissing(client.get(call, leases, leaseName(key), namespace));
    if (there && there.spec?.holderIdentity !== holder) lose();
    else if (there) lease = there;
    else lease = await client.create(call, leases, heldBy(holder, key, id, namespace));
  }

  async function renew() {
    try {
      lease = await client.replace(ownCall(log), leases, renewed(lease));
    } catch (error) {
      if (isConflict(error) || isMissing(error)) await confirm().catch(failed);
      else failed(error);
    }
    keep();
  }

  function keep() {
    if (isOver) return;
    timer = setTimeout(() => {
      renewal = renew();
    }, renewMs).unref();
  }

  function end() {
    isOver = true;
    clearTimeout(timer);
  }

  /** Free for somebody else, by the version of the last renewal. */
  async function release() {
    await renewal;
    await client.replace(ownCall(log), leases, released(lease));
  }

  const settled = () =>
    // What could not be written was told; who stops waits no longer for it.
    unlessAborted(writer.settled(), AbortSignal.timeout(settleMs)).catch(() => {});

  const holding: Holding = {
    key,
    get job() {
      return job;
    },
    claim: {
      job,
      signal: stop.signal,
      put(next) {
        if (isOver) return;
        const isUrgent = next.phase !== job.phase;
        job = isFinished(next) ? asRead(next) : next;
        writer.put(job, isUrgent);
        onChange(holding, true);
      },
      async giveBack() {
        await settled();
        writer.end();
        if (isOver) return;
        end();
        await unlessAborted(release(), AbortSignal.timeout(settleMs)).catch(failed);
        onChange(holding, false);
      },
    },
    stop: reason => stop.abort(reason),
    settled,
    end() {
      end();
      writer.end();
    },
  };

  /** As it will be read: then nothing has changed when its record shows. */
  function asRead(next: Job): Job {
    const read = readRecord(recordOf({ job: next, key }, namespace));
    return 'problem' in read ? next : read.job;
  }

  keep();
  return holding;
}

function hasEnded(record: ConfigMap): boolean {
  const read = readRecord(record);
  return !('problem' in read) && isFinished(read.job);
}

const isMissing = (error: unknown) => error instanceof GatewayError && error.code === 'not_found';
