import { cancelled, createCall } from '../call.ts';
import type { Job } from '../domain.ts';
import { conflict, messageOf, unlessMissing } from '../errors.ts';
import { type ConfigMap, configMaps, type Lease, leases } from '../kubernetes/resource.ts';
import { located, type Watches } from '../kubernetes/watches.ts';
import { keepRows } from '../live/rows.ts';
import { unlessAborted } from '../live/source.ts';
import { createAbsence } from './kubernetes/absence.ts';
import { type Holding, hold, isConflict, ownCall, type Place } from './kubernetes/holding.ts';
import { heldBy, jobOf, leaseName } from './kubernetes/lease.ts';
import { cancelledRecord, jobSelector, type Record, readRecord, recordName, recordOf } from './kubernetes/record.ts';
import { type Claim, createJobList, isFinished, type JobStore, type RetentionOptions } from './store.ts';

export interface KubernetesStoreOptions extends RetentionOptions, Place {
  readonly watches: Watches;
}

/** Between two looks at whether somebody has died, while there is work of others, in milliseconds. */
const lookMs = 1_000;
/** Between two looks at a job that somebody else is just beginning, in milliseconds. */
const beginningMs = 100;
/** After a job could not be taken over for another reason than that somebody else did, in milliseconds. */
const restMs = 5_000;
/** What is kept no longer is removed this often, in milliseconds. */
const pruneMs = 60_000;

interface Successor {
  readonly isWanted: (job: Job, alone: number) => boolean;
  readonly take: (claim: Claim) => void;
}

/**
 * Jobs that all replicas share: a ConfigMap for each, and a Lease for each work that is done, so that no two do the same.
 * The replica that works on a job writes it, the others watch. What its holder leaves undone, another takes over.
 */
export function createKubernetesStore({ watches, retentionMs, now, ...place }: KubernetesStoreOptions): JobStore {
  const { client, namespace, holder, log } = place;
  const jobs = createJobList({ retentionMs, now });
  const holdings = new Map<string, Holding>();
  const absence = createAbsence();
  const readings = new WeakMap<ConfigMap, Record | undefined>();
  const taking = new Set<string>();
  const keep = keepRows<Job>(({ id }) => id);
  const selection = { namespace, labelSelector: jobSelector };
  const records = watches.of(createCall({ log }), located(configMaps), selection);
  const holders = watches.of(createCall({ log }), located(leases), selection);
  let successor: Successor | undefined;
  let restUntil = 0;
  /** Why jobs could not be taken over since one last was: each reason is told once. */
  const told = new Set<string>();
  let timer: NodeJS.Timeout | undefined;

  const stops = [records.subscribe(look), holders.subscribe(look)];
  const pruning = setInterval(prune, pruneMs).unref();

  function read(configMap: ConfigMap): Record | undefined {
    if (readings.has(configMap)) return readings.get(configMap);
    const found = readRecord(configMap);
    const record = 'problem' in found ? undefined : found;
    if ('problem' in found)
      log.warn({ configMap: configMap.metadata.name, error: found.problem }, 'left out a job that cannot be read');
    readings.set(configMap, record);
    return record;
  }

  const onRecord = () => (records.current?.value ?? []).flatMap(configMap => read(configMap) ?? []);

  /** What is on record, and of what is held here, how that is. */
  function show() {
    const seen = new Map(onRecord().map(({ job }) => [job.id, job]));
    for (const [id, { job }] of holdings) {
      const there = seen.get(id);
      if (isFinished(job) && there && isFinished(there)) holdings.delete(id);
      else seen.set(id, job);
    }
    jobs.replace(keep(jobs.list(), [...seen.values()]));
  }

  function look() {
    for (const { job, isCancelled } of onRecord()) if (isCancelled) holdings.get(job.id)?.stop(cancelled);
    show();
    lookForWork();
  }

  /** Work that nobody does any more, for who goes on with it. */
  function lookForWork() {
    clearTimeout(timer);
    const seen = new Map((holders.current?.value ?? []).map(lease => [lease.metadata.name, lease]));
    if (!holders.current || holders.current.error) absence.forget();
    else absence.look(seen);
    const ofOthers = onRecord().filter(({ job }) => !isFinished(job) && !holdings.has(job.id));
    for (const record of ofOthers) {
      const name = leaseName(record.key);
      const alone = absence.alone(name, seen.get(name));
      const isDue = alone >= 0 && !taking.has(record.job.id) && Date.now() >= restUntil;
      if (isDue && successor && (record.isCancelled || successor.isWanted(record.job, alone)))
        void takeOver(record, seen.get(name), successor);
    }
    if (ofOthers.length > 0) timer = setTimeout(lookForWork, lookMs).unref();
  }

  async function takeOver({ job: { id }, key }: Record, seen: Lease | undefined, { take }: Successor) {
    taking.add(id);
    const call = ownCall(log);
    try {
      // Of several who try, one has the version that is the newest.
      const mine = heldBy(holder, key, id, namespace, seen);
      const lease = await (seen ? client.replace(call, leases, mine) : client.create(call, leases, mine));
      const record = await unlessMissing(client.get(call, configMaps, recordName(id), namespace));
      const found = record && read(record);
      if (!found || isFinished(found.job)) await letGo(key, lease);
      else take(holdNow(key, found.job, lease, record, found.isCancelled));
      told.clear();
    } catch (error) {
      if (isConflict(error)) return;
      restUntil = Date.now() + restMs;
      // While nothing can be written here, whoever works on it may not be able to renew its Lease either.
      absence.forget();
      const reason = messageOf(error);
      if (!told.has(reason)) log.warn({ job: id, error: reason }, 'cannot take a job over');
      told.add(reason);
    } finally {
      taking.delete(id);
    }
  }

  function holdNow(key: string, job: Job, lease: Lease, record: ConfigMap, isCancelled = false): Claim {
    const holding = hold({
      ...place,
      key,
      job,
      lease,
      record,
      onChange(changed, isOurs) {
        if (!isOurs) holdings.delete(changed.job.id);
        show();
      },
    });
    holdings.set(job.id, holding);
    if (isCancelled) holding.stop(cancelled);
    show();
    return holding.claim;
  }

  const letGo = (key: string, { metadata: { uid } }: Lease) =>
    client.remove(ownCall(log), leases, leaseName(key), namespace, { uid });

  function working(key: string): Job | undefined {
    const known = onRecord().filter(({ job }) => !holdings.has(job.id));
    return [...holdings.values(), ...known].find(each => each.key === key && !isFinished(each.job))?.job;
  }

  const recorded = async (id: string) => {
    const configMap = await unlessMissing(client.get(ownCall(log), configMaps, recordName(id), namespace));
    return configMap && { configMap, record: read(configMap) };
  };

  /** The Lease of a key, ours from now on; or the job of whoever has it, undefined while that is not on record. */
  async function acquire(key: string, id: string): Promise<{ lease: Lease } | { job: Job | undefined }> {
    try {
      return { lease: await client.create(ownCall(log), leases, heldBy(holder, key, id, namespace)) };
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
    const there = await unlessMissing(client.get(ownCall(log), leases, leaseName(key), namespace));
    const theirs = there && jobOf(there);
    const job = theirs === undefined ? undefined : (holdings.get(theirs)?.job ?? (await recorded(theirs))?.record?.job);
    if (!there || (job && !isFinished(job))) return { job };
    // Somebody died between the Lease and the record, or between the end of the job and that of the Lease.
    if (absence.alone(leaseName(key), there) < 0) return { job: undefined };
    return { lease: await client.replace(ownCall(log), leases, heldBy(holder, key, id, namespace, there)) };
  }

  /** Finished jobs that are listed no longer. */
  function prune() {
    const kept = new Set(jobs.list().map(({ id }) => id));
    for (const configMap of records.current?.value ?? []) {
      const { name, uid } = configMap.metadata;
      const job = read(configMap)?.job;
      if (!job || !isFinished(job) || kept.has(job.id)) continue;
      client
        .remove(ownCall(log), configMaps, name, namespace, { uid })
        .catch((error: unknown) => log.warn({ job: job.id, error: messageOf(error) }, 'cannot remove an old job'));
    }
    for (const [id, { job }] of holdings) if (isFinished(job) && !kept.has(id)) holdings.delete(id);
  }

  return {
    list: jobs.list,
    get: jobs.get,
    async find(call, id) {
      const known = jobs.get(id);
      if (known || !/^[0-9a-f]{16}$/.test(id)) return known;
      const there = await recorded(id);
      if (!there) return undefined;
      await records.seen(there.configMap, call.signal);
      return jobs.get(id) ?? there.record?.job;
    },
    working,
    source: jobs.source,
    isRead: () => records.current !== undefined,
    async begin(key, job) {
      const { signal } = ownCall(log);
      while (!signal.aborted) {
        const known = working(key);
        if (known) return { job: known };
        const found = await acquire(key, job.id).catch((error: unknown) => {
          if (isConflict(error)) return { job: undefined };
          throw error;
        });
        if ('lease' in found) {
          const { lease } = found;
          const record = await client
            .create(ownCall(log), configMaps, recordOf({ job, key }, namespace))
            .catch(async (error: unknown) => {
              await letGo(key, lease).catch(() => {});
              throw error;
            });
          return { job, claim: holdNow(key, job, lease, record) };
        }
        if (found.job) return { job: found.job };
        await unlessAborted(new Promise(resolve => setTimeout(resolve, beginningMs)), signal).catch(() => {});
      }
      throw conflict(`another replica has begun this ${job.type} and not said as which job; ask again`);
    },
    async cancel(id) {
      for (;;) {
        const holding = holdings.get(id);
        if (holding) return holding.stop(cancelled);
        const there = await recorded(id);
        if (!there?.record || there.record.isCancelled || isFinished(there.record.job)) return;
        try {
          await client.replace(ownCall(log), configMaps, cancelledRecord(there.configMap));
          return;
        } catch (error) {
          if (!isConflict(error)) throw error;
        }
      }
    },
    takeOver(isWanted, take) {
      successor = { isWanted, take };
      lookForWork();
      return () => {
        successor = undefined;
      };
    },
    async close() {
      for (const stop of stops) stop();
      clearTimeout(timer);
      clearInterval(pruning);
      await Promise.all([...holdings.values()].map(holding => holding.settled()));
      for (const holding of holdings.values()) holding.end();
    },
  };
}
