/** The cache of a cluster's models: what lies in it, what is on record of it, and what takes from it. */
import { type Call, outliving } from '../../call.ts';
import { type InventoryRefresh, type Model, phrase, type Target } from '../../domain.ts';
import { backendError, messageOf } from '../../errors.ts';
import type { KubernetesClient } from '../../kubernetes/client.ts';
import type { KubernetesObject } from '../../kubernetes/resource.ts';
import { derive } from '../../live/derive.ts';
import { createListeners, type Source, unlessAborted } from '../../live/source.ts';
import type { RemovePlan } from '../driver.ts';
import type { CacheContent } from './fit.ts';
import { type Agents, placeWords } from './inventory/agent.ts';
import { createCacheIndex } from './inventory/cacheIndex.ts';
import { createCounts, type PlaceCount } from './inventory/counts.ts';
import { type Count, holdsModel } from './inventory/entry.ts';
import { cachedModels } from './inventory/listing.ts';
import { type CacheRecords, recordsToWrite, recordToForget } from './inventory/records.ts';
import { parseScan, scanOutputLimit } from './inventory/scanOutput.ts';
import { checkRemovable, removeJob, scanJob } from './inventory/toolJobs.ts';
import type { JobCluster } from './jobs/follow.ts';
import { runTool } from './jobs/toolRun.ts';
import type { CacheLocation } from './nodes/cacheLocation.ts';
import type { CacheCount } from './nodes.ts';
import type { ServingPreset } from './presets.ts';
import type { ServedModel } from './serving/served.ts';
import type { KserveSettings } from './settings.ts';
import { readValue, unanswered } from './world/seen.ts';

/** What is around the cache. */
export interface CacheSurroundings {
  readonly settings: KserveSettings;
  readonly presets: readonly ServingPreset[];
  readonly served: readonly ServedModel[];
  /** Absent when the cache is off, or nobody knows where its claim lives. */
  readonly location: CacheLocation | undefined;
  /** Why something of the cache is not known. */
  readonly notes?: { readonly cache: readonly string[] };
}

export interface InventoryOptions extends JobCluster {
  readonly client: JobCluster['client'] & Pick<KubernetesClient, 'replace'>;
  readonly backend: string;
  readonly target: Target | undefined;
  readonly around: Source<CacheSurroundings>;
  readonly settings: Source<KserveSettings>;
  readonly nodes: Source<readonly KubernetesObject[]>;
  /** For the inventory mode daemonset. */
  readonly agents: Agents;
  /** The gateway's own, for what nobody asked for. */
  readonly call: Call;
}

/** The cache at one moment. */
export interface CacheView {
  readonly places: readonly PlaceCount[];
  readonly records: CacheRecords;
  readonly refresh: InventoryRefresh;
  /** Of the claim as a node has it mounted; undefined when nothing is known of it. */
  countOn(node: string): CacheCount | undefined;
  /** Of the claim on a node, or as a whole. */
  contentOn(node: string | undefined): CacheContent;
  /** The models in it, and the served ones that are not. */
  modelsWith(around: Pick<CacheSurroundings, 'presets' | 'served'>): readonly Model[];
}

/**
 * Who reads it has outdated counts made anew: a pod takes as long as the inventory timeout allows, so who has less time gets
 * the last count. Who listens is told each change, and sees a first count, and another after `invalidate`.
 */
export interface Inventory extends Source<CacheView> {
  /** To be called after a load, a deletion and a download. */
  invalidate(): void;
  /** The same, and begins to count at once where that is allowed. Never waits for it: answers whether it began. */
  rescan(call: Call): Promise<InventoryRefresh>;
  /**
   * Removes a directory and what is on record of it. It goes on when the caller leaves, and who asks for the same
   * meanwhile waits for it. Throws `invalid_request` for a directory that must not be removed, else `backend_error`.
   */
  remove(call: Call, directory: string, node: string | undefined): Promise<void>;
  /** What `remove` would do; it throws for the same directories. */
  planRemove(call: Call, directory: string, node: string | undefined): Promise<RemovePlan>;
  /** Forgets what is on record of an object that was unloaded, if that is worth nothing any more. Never rejects. */
  unloaded(call: Call, served: Pick<ServedModel, 'name' | 'directory'>): Promise<void>;
}

/** A removal prints a line or two. */
const removalOutputLimit = 64 * 1024;

export function createInventory(options: InventoryOptions): Inventory {
  const { client, watches, around, settings, nodes, agents, call: own, backend, target } = options;
  const cluster: JobCluster = { client, watches };
  const counts = createCounts({ around, nodes, count, call: own });
  const index = createCacheIndex({ client, watches, settings, call: own });
  const listeners = createListeners(begin, () => stop());
  /** Removals under way, by what they remove. */
  const removals = new Map<string, Promise<void>>();
  let stop = () => {};

  const view = derive<[readonly PlaceCount[], CacheRecords], CacheView>(
    [counts, index.records],
    ([{ value: places = [] }, { value: records = new Map() }]) => viewOf({ backend, target }, places, records),
  );

  function count(call: Call, settings: KserveSettings, node: string | undefined): Promise<Count> {
    return settings.inventory.mode === 'daemonset'
      ? agents.count(call, settings, node)
      : countByPod(cluster, call, settings, node);
  }

  /** Puts on record what is served now and is not yet. */
  async function note(call: Call): Promise<void> {
    const { value } = around.current ?? {};
    if (!value) return;
    const { settings, served, location } = value;
    const news = (known: CacheRecords) => recordsToWrite(known, served, settings, location, new Date());
    if (news(index.records.current?.value ?? new Map()).length > 0) await index.write(call, settings, news);
  }

  function begin() {
    const noteNow = () => void note(own);
    const stops = [view.subscribe(listeners.notify), around.subscribe(noteNow)];
    stop = () => {
      for (const each of stops) each();
    };
    noteNow();
  }

  return {
    get current() {
      return view.current;
    },
    async read(call) {
      const seen = await view.read(call);
      void note(call);
      return seen;
    },
    subscribe: listeners.add,
    invalidate: counts.invalidate,

    async rescan(call) {
      const { value, error } = await around.read(call);
      if (value && !value.settings.cache.enabled) {
        return { refreshing: false, reason: phrase('no-claim', 'none') };
      }
      if (value?.location) return counts.recount(call);
      const problem = value?.notes?.cache.join('; ') || error?.message || unanswered;
      return { refreshing: false, reason: phrase('claim-unlocated', 'unlocated', { problem }) };
    },

    async remove(call, directory, node) {
      checkRemovable(directory);
      const settings = await readValue(options.settings, call);
      const key = JSON.stringify([settings.namespace, settings.cache.claim, directory, node]);
      const removing = async () => {
        const job = removeJob(settings, directory, node);
        const detached = outliving(call, settings.inventory.timeout);
        try {
          await runTool(cluster, detached, { job, outputLimit: removalOutputLimit });
        } catch (error) {
          const what = `remove ${directory} from the cache on ${placeWords(node)}: ${messageOf(error)}`;
          throw backendError(what, { cause: error });
        } finally {
          counts.invalidate();
        }
        await index.forget(detached, settings, known => (known.has(directory) ? directory : undefined));
      };
      call.signal.throwIfAborted();
      let removal = removals.get(key);
      if (!removal) {
        removal = removing().finally(() => removals.delete(key));
        removals.set(key, removal);
      }
      await unlessAborted(removal, call.signal);
    },

    async planRemove(call, directory, node) {
      const settings = await readValue(options.settings, call);
      const { namespace, cache } = settings;
      const where = `claim ${namespace}/${cache.claim}${node ? ` on ${node}` : ''}`;
      const record = { kind: 'Record', name: directory, where: `ConfigMap ${namespace}/${cache.indexConfigMap}` };
      const isOnRecord = index.records.current?.value?.has(directory);
      return {
        manifests: [removeJob(settings, directory, node)],
        deletes: [{ kind: 'Directory', name: directory, where }, ...(isOnRecord ? [record] : [])],
      };
    },

    async unloaded(call, served) {
      const { value } = around.current ?? {};
      if (!value) return;
      const { settings, location } = value;
      await index.forget(call, settings, known => recordToForget(known, served, settings, location));
    },
  };
}

async function countByPod(cluster: JobCluster, call: Call, settings: KserveSettings, node: string | undefined) {
  try {
    const job = scanJob(settings, node);
    const counted = parseScan(await runTool(cluster, call, { job, outputLimit: scanOutputLimit }));
    if ('problem' in counted) throw backendError(counted.problem);
    return counted.value;
  } catch (error) {
    throw backendError(`scan cache on ${placeWords(node)}: ${messageOf(error)}`, { cause: error });
  }
}

function viewOf(
  from: Pick<InventoryOptions, 'backend' | 'target'>,
  places: readonly PlaceCount[],
  records: CacheRecords,
): CacheView {
  const placeOf = (node: string) => places.find(place => isOn(place, node));
  const reason = places.map(({ error, reason }) => error ?? reason).find(each => each !== undefined);
  const known = places.flatMap(({ node, entries }) => (entries ? [{ node, entries }] : []));
  return {
    places,
    records,
    refresh: { refreshing: places.some(({ refreshing }) => refreshing), reason },
    countOn(node) {
      const place = placeOf(node);
      if (!place) return undefined;
      const { entries = [], scannedAt, error, reason } = place;
      return {
        models: entries.filter(holdsModel).length,
        bytesUsed: entries.reduce((sum, { bytes }) => sum + bytes, 0),
        scannedAt,
        // That nothing was counted needs its reason beside it.
        error: error ?? (scannedAt ? undefined : reason),
      };
    },
    contentOn(node) {
      const asked = known.filter(place => node === undefined || isOn(place, node));
      const entries = asked.length > 0 ? asked.flatMap(place => place.entries) : undefined;
      return { entries, records: [...records.values()] };
    },
    modelsWith: ({ presets, served }) => cachedModels({ ...from, places: known, records, presets, served }),
  };
}

const isOn = (place: { readonly node: string | undefined }, node: string) =>
  place.node === undefined || place.node === node;
