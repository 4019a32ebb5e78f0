/** An emulated cluster in which a test plays what runs Jobs: their controller and the nodes. */
import assert from 'node:assert/strict';
import { createCall } from '../../../src/call.ts';
import { type ClusterOptions, type EmulatedCluster, startCluster } from '../../../src/demo/cluster.ts';
import { openServer } from '../../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../../src/kubernetes/client.ts';
import { createWatches } from '../../../src/kubernetes/watches.ts';
import { namespaceOf } from '../../support/cluster.ts';
import { silent } from '../../support/gateway.ts';
import { eventually } from '../../support/server.ts';

export const serving = 'model-serving';

// biome-ignore lint/suspicious/noExplicitAny: Jobs of every shape
type Job = any;

export interface JobLab extends AsyncDisposable {
  readonly cluster: EmulatedCluster;
  readonly client: ReturnType<typeof createKubernetesClient>;
  readonly watches: ReturnType<typeof createWatches>;
  readonly call: ReturnType<typeof createCall>;
  /** The only Job whose name begins like this, as soon as it is there. */
  job(prefix: string): Promise<Job>;
  jobs(): readonly string[];
  /** Gives a Job a pod, or changes its status. */
  pod(job: Job, name: string, status: object, log?: string): void;
  end(job: Job, type: 'Complete' | 'Failed', more?: object): void;
}

export async function startLab({
  user,
  ...options
}: ClusterOptions & { readonly user?: string } = {}): Promise<JobLab> {
  const cluster = await startCluster(options);
  cluster.put(namespaceOf(serving));
  const open = openServer(cluster.url);
  const bearer = async () => ({ headers: { authorization: `Bearer ${cluster.tokenOf(user ?? '')}` } });
  const client = createKubernetesClient(user ? { ...open, identity: bearer } : open);
  const watches = createWatches({ client, log: silent });

  const jobs = () => cluster.list<Job>('jobs.batch', serving);
  return {
    cluster,
    client,
    watches,
    call: createCall({ log: silent }),
    async job(prefix) {
      const found = () => jobs().filter(({ metadata }) => metadata.name.startsWith(prefix));
      await eventually(() => found().length > 0, `a Job ${prefix}…`);
      assert.equal(found().length, 1);
      return found()[0];
    },
    jobs: () => jobs().map(({ metadata }) => metadata.name),
    pod({ metadata, spec }, name, status, log) {
      const owner = { apiVersion: 'batch/v1', kind: 'Job', name: metadata.name, uid: metadata.uid, controller: true };
      const { containers, initContainers } = spec.template.spec;
      const containerName = containers[0].name;
      if (log !== undefined) cluster.logs.set(serving, name, containerName, { current: log });
      cluster.put({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name,
          namespace: serving,
          labels: { 'batch.kubernetes.io/job-name': metadata.name, 'job-name': metadata.name },
          ownerReferences: [owner],
        },
        spec: { containers, initContainers },
        status,
      });
    },
    end({ metadata }, type, more = {}) {
      cluster.update<Job>('jobs.batch', metadata.name, serving, job => {
        job.status = { conditions: [{ type, status: 'True', ...more }] };
      });
    },
    [Symbol.asyncDispose]: () => cluster.close(),
  };
}
