/** How much of the weights lies on the nodes where they are being downloaded: the agents there are asked. */
import type { Call } from '../../../../call.ts';
import type { Read } from '../../../../config/values.ts';
import type { KubernetesObject } from '../../../../kubernetes/resource.ts';
import { createCell } from '../../../../live/cell.ts';
import { derive } from '../../../../live/derive.ts';
import { lookups } from '../../../../live/lookups.ts';
import { optional } from '../../../../live/optional.ts';
import { keepEntries } from '../../../../live/rows.ts';
import type { Source } from '../../../../live/source.ts';
import type { Agents } from '../../inventory/agent.ts';
import type { CacheEntry } from '../../inventory/entry.ts';
import type { KserveSettings } from '../../settings.ts';
import { servedBy } from '../../timeline/pod.ts';
import { downloadsOn } from '../../timeline/wanted.ts';
import type { Surroundings } from '../../world.ts';

export interface BytesOptions {
  /** Those that speak for what is served. */
  readonly pods: Source<Objects>;
  readonly around: Source<Pick<Surroundings, 'served'>>;
  readonly agents: Agents;
  readonly settings: KserveSettings;
  /** What an agent takes longer than, in milliseconds, is not known. */
  readonly patienceMs: number;
  /** The gateway's own. */
  readonly call: Call;
}

type Objects = readonly KubernetesObject[];
/** By the uid of the pod that downloads. */
type Bytes = ReadonlyMap<string, number>;

/**
 * Asks again after each poll interval, while something downloads and somebody listens; a node is asked one question at a
 * time, whatever downloads there. What was once said of a pod stands until more is: a download adds to what is there, and
 * a count beside one that renames its files, or that fails, is no step back.
 */
export function downloadedBytes(options: BytesOptions): Source<Bytes> {
  const { pods, around, agents, settings, patienceMs, call } = options;
  if (settings.inventory.mode !== 'daemonset' || !settings.cache.enabled) return createCell<Bytes>(new Map());
  const counts = lookups<Objects, string, readonly CacheEntry[]>(pods, {
    wanted: pods => new Map(pods.flatMap(pod => downloadsOn(pod) ?? []).map(node => [node, node])),
    look: async (call, node) => (await agents.count(call, settings, node)).entries,
    timeoutMs: patienceMs,
    staleMs: settings.pollInterval,
    retryMs: settings.pollInterval,
    call,
  });
  return derive<[Objects, Counts | undefined, Pick<Surroundings, 'served'>], Bytes>(
    // Nobody who has less time waits for an agent.
    [pods, optional(counts, patienceMs), around],
    ([{ value: pods = [] }, { value: counts }, { value: around }], before) => {
      const directories = new Map(around?.served.map(({ name, directory }) => [name, directory]));
      const bytes = new Map<string, number>();
      for (const pod of pods) {
        const node = downloadsOn(pod);
        const { uid } = pod.metadata;
        if (node === undefined || uid === undefined) continue;
        const known = before?.get(uid);
        const found = bytesOf(counts?.get(node), directories.get(servedBy(pod) ?? ''));
        if (found !== undefined || known !== undefined) bytes.set(uid, Math.max(found ?? 0, known ?? 0));
      }
      return keepEntries(before, bytes);
    },
  );
}

/** By node. */
type Counts = ReadonlyMap<string, Read<readonly CacheEntry[]>>;

const bytesOf = (count: Read<readonly CacheEntry[]> | undefined, directory: string | undefined) =>
  count && 'value' in count ? count.value.find(({ dir }) => dir === directory)?.bytes : undefined;
