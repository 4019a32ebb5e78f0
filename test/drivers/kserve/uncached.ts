/** The driver on an emulated cluster in which models are not cached, so that nothing waits for a look into a cache. */
import { type EmulatedCluster, startCluster } from '../../../src/demo/cluster.ts';
import type { Driver } from '../../../src/drivers/driver.ts';
import { createKserveDriver } from '../../../src/drivers/kserve/index.ts';
import { openServer } from '../../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../../src/kubernetes/client.ts';
import { createWatches } from '../../../src/kubernetes/watches.ts';
import { namespaceOf } from '../../support/cluster.ts';
import { silent } from '../../support/gateway.ts';
import { clusterNodes, discoveryRef, discoveryWith, flagsOf, objectsOf, presetFiles } from './world.ts';

export const serving = 'model-serving';
const pool = { taint: { key: 'nvidia.com/gpu' }, nodeSelector: { 'giantswarm.io/machine-pool': 'demo-gpu-l4' } };

export interface Uncached extends AsyncDisposable {
  readonly cluster: EmulatedCluster;
  readonly driver: Driver;
}

export async function startUncached(flags: Parameters<typeof flagsOf>[0] = {}): Promise<Uncached> {
  const objects = [
    ...[serving, discoveryRef.namespace].map(namespaceOf),
    { apiVersion: 'v1', kind: 'ConfigMap', ...discoveryWith({ gpuPool: pool, cache: { enabled: false } }) },
    ...presetFiles.flatMap(objectsOf),
    ...clusterNodes,
  ];
  const cluster = await startCluster({ objects });
  const client = createKubernetesClient(openServer(cluster.url));
  const watches = createWatches({ client, log: silent });
  const ownNamespace = discoveryRef.namespace;
  const driver = createKserveDriver({ client, watches, flags: flagsOf(flags), ownNamespace, log: silent });
  return { cluster, driver, [Symbol.asyncDispose]: () => cluster.close() };
}
