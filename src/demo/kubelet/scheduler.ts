/** Waits for a place for pods, whoever they belong to. */
import type { Change, ClusterObjects } from '../cluster.ts';
import { unlessAborted } from '../host/latch.ts';
import type { Pod } from './pods.ts';
import { type Claim, type Place, placeFor, type SchedulableNode, type Volume } from './scheduling.ts';

/** What a pod may wait for. */
const surroundings = ['nodes', 'persistentvolumeclaims', 'persistentvolumes', 'pods'];

export function createScheduler(cluster: Pick<ClusterObjects, 'get' | 'list'>) {
  let waiting = Promise.withResolvers<void>();
  return {
    /** To be told of each change of the cluster. */
    noticed({ resource }: Pick<Change, 'resource'>): void {
      if (!surroundings.includes(resource)) return;
      waiting.resolve();
      waiting = Promise.withResolvers();
    },

    /** Resolves to the node of a pod and the volume that it mounts, as soon as there are both. `say` is told each reason to wait. */
    async place(pod: Pod, say: (why: string) => void, signal: AbortSignal): Promise<Place> {
      let said: string | undefined;
      for (;;) {
        const changed = waiting.promise;
        const place = placeFor(pod, {
          nodes: cluster.list<SchedulableNode>('nodes'),
          pods: cluster.list<Pod>('pods'),
          claim: name => cluster.get<Claim>('persistentvolumeclaims', name, pod.metadata.namespace),
          volume: name => cluster.get<Volume>('persistentvolumes', name),
        });
        if ('node' in place) return place;
        if (place.why !== said) say(place.why);
        said = place.why;
        await unlessAborted(changed, signal);
      }
    },
  };
}
