/** Stores of jobs as tests have them: in memory, and on an emulated cluster, as one replica or several. */
import type { Logger } from 'pino';
import { type EmulatedCluster, startCluster } from '../../src/demo/cluster.ts';
import type { Job } from '../../src/domain.ts';
import { leaseName } from '../../src/jobs/kubernetes/lease.ts';
import { recordName } from '../../src/jobs/kubernetes/record.ts';
import { createKubernetesStore } from '../../src/jobs/kubernetes.ts';
import type { Claim, JobStore } from '../../src/jobs/store.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../src/kubernetes/client.ts';
import type { ConfigMap, Lease } from '../../src/kubernetes/resource.ts';
import { createWatches } from '../../src/kubernetes/watches.ts';
import { bearer, namespace, namespaceOf } from '../support/cluster.ts';
import { silent } from '../support/gateway.ts';
import { eventually } from '../support/server.ts';

export const hour = 3600_000;

/** A job as it is begun. */
export const jobOf = (id: string, change: Partial<Job> = {}): Job => ({
  id,
  backend: 'ollama',
  type: 'pull',
  model: 'a:1b',
  phase: 'pending',
  bytesCompleted: 0,
  bytesTotal: 0,
  createdAt: new Date(),
  wire: false,
  ...change,
});

export const idOf = (count: number) => count.toString(16).padStart(16, '0');

/** As it ends well. */
export const ended = (job: Job, finishedAt = job.createdAt): Job => ({ ...job, phase: 'succeeded', finishedAt });

/** Begins work that nobody else does. */
export async function begun(store: JobStore, key: string, job: Job): Promise<Claim> {
  const { claim } = await store.begin(key, job);
  if (!claim) throw new Error(`the work of ${key} is done already`);
  return claim;
}

export interface Replicas extends AsyncDisposable {
  readonly cluster: EmulatedCluster;
  /** One more, once it knows which jobs there are. */
  replica(options?: {
    readonly holder?: string;
    readonly log?: Logger;
    readonly now?: () => number;
    readonly user?: string;
  }): Promise<JobStore>;
}

export async function startReplicas(options: Parameters<typeof startCluster>[0] = {}): Promise<Replicas> {
  const cluster = await startCluster(options);
  cluster.put(namespaceOf(namespace));
  const stores: JobStore[] = [];
  return {
    cluster,
    async replica({ holder = `replica-${stores.length + 1}`, log = silent, now, user } = {}) {
      const access = openServer(cluster.url);
      const client = createKubernetesClient(
        user ? { ...access, identity: async () => bearer(cluster.tokenOf(user)) } : access,
      );
      const watches = createWatches({ client, log });
      const store = createKubernetesStore({ client, watches, namespace, holder, log, now, retentionMs: 24 * hour });
      stores.push(store);
      await eventually(() => store.isRead(), 'the jobs there are');
      return store;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map(store => store.close()));
      await cluster.close();
    },
  };
}

export const leaseOf = ({ cluster }: Replicas, key = 'a') =>
  cluster.get<Lease>('leases.coordination.k8s.io', leaseName(key), namespace);
export const recordOf = ({ cluster }: Replicas, count = 1) =>
  cluster.get<ConfigMap>('configmaps', recordName(idOf(count)), namespace);
export const written = (replicas: Replicas, count = 1): Job =>
  JSON.parse(recordOf(replicas, count)?.data?.['job.json'] ?? '{}');

/** Gives a Lease to somebody; '' gives it back. */
export const giveLease = ({ cluster }: Replicas, holderIdentity: string, key = 'a') =>
  cluster.update<{ spec: { holderIdentity: string } }>(
    'leases.coordination.k8s.io',
    leaseName(key),
    namespace,
    ({ spec }) => {
      spec.holderIdentity = holderIdentity;
    },
  );

/** What a replica takes over, as it comes. */
export function takenBy(store: JobStore, isWanted: (job: Job, alone: number) => boolean = () => true): Claim[] {
  const claims: Claim[] = [];
  store.takeOver(isWanted, claim => claims.push(claim));
  return claims;
}
