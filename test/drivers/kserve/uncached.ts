/** The driver on an emulated cluster in which models are not cached, so that nothing waits for a look into a cache. */
import { type EmulatedCluster, startCluster } from '../../../src/demo/cluster.ts';
import type { Driver } from '../../../src/drivers/driver.ts';
import { createKserveDriver, type KserveOptions } from '../../../src/drivers/kserve/index.ts';
import { openServer } from '../../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../../src/kubernetes/client.ts';
import { createWatches } from '../../../src/kubernetes/watches.ts';
import { namespaceOf } from '../../support/cluster.ts';
import { silent } from '../../support/gateway.ts';
import { clusterNodes, discoveryRef, discoveryWith, flagsOf, objectsOf, presetFiles } from './world.ts';

export const serving = 'model-serving';
const pool = { taint: { key: 'nvidia.com/gpu' }, nodeSelector: { 'giantswarm.io/machine-pool': 'demo-gpu-l4' } };

type Flags = Parameters<typeof flagsOf>[0];

export interface Uncached extends AsyncDisposable {
  readonly cluster: EmulatedCluster;
  readonly driver: Driver;
}

/** What there is in such a cluster. */
export const uncachedObjects = () => [
  ...[serving, discoveryRef.namespace].map(namespaceOf),
  { apiVersion: 'v1', kind: 'ConfigMap', ...discoveryWith({ gpuPool: pool, cache: { enabled: false } }) },
  ...presetFiles.flatMap(objectsOf),
  ...clusterNodes,
];

export const driverOn = (access: Pick<KserveOptions, 'client' | 'watches'>, flags: Flags = {}): Driver =>
  createKserveDriver({ ...access, flags: flagsOf(flags), ownNamespace: discoveryRef.namespace, log: silent });

export async function startUncached(flags?: Flags): Promise<Uncached> {
  const cluster = await startCluster({ objects: uncachedObjects() });
  const client = createKubernetesClient(openServer(cluster.url));
  const watches = createWatches({ client, log: silent });
  return { cluster, driver: driverOn({ client, watches }, flags), [Symbol.asyncDispose]: () => cluster.close() };
}
