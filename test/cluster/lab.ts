/**
 * Clusters on which the behaviours that the gateway relies on are tested: the emulated one always; a real one, that which
 * `KUBECONFIG` names, in `npm run test:cluster` only. Of a real one nothing is touched but a namespace made for the tests.
 */
import assert from 'node:assert/strict';
import { EventEmitter, on } from 'node:events';
import { after, before, describe, type TestContext } from 'node:test';
import {
  ApiException,
  AuthorizationV1Api,
  CoreV1Api,
  KubeConfig,
  type KubernetesObject,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  type V1ObjectMeta,
  type V1Pod,
  Watch,
} from '@kubernetes/client-node';
import { manualClock, startCluster } from '../../src/demo/cluster.ts';
import { within } from '../support/server.ts';

export interface Lab extends AsyncDisposable {
  readonly config: KubeConfig;
  readonly core: CoreV1Api;
  readonly authorization: AuthorizationV1Api;
  /** Of the tests alone. */
  readonly namespace: string;
  /** Milliseconds that the cluster may take for what it does by itself. */
  readonly patienceMs: number;
  /** Lets time pass where it does not pass by itself. */
  pass(seconds: number): Promise<void>;
  /** Runs a pod that is there until its container has written its text; tells why when it does not come to that. */
  run(pod: V1Pod, text: string): Promise<string | undefined>;
}

interface Target {
  readonly name: string;
  readonly skip: string | false;
  open(): Promise<Lab>;
}

function whyNotReal(): string | false {
  const { MODEL_MANAGER_TEST_CLUSTER, KUBECONFIG } = process.env;
  if (MODEL_MANAGER_TEST_CLUSTER !== '1') return 'a real cluster is tested by `npm run test:cluster` only';
  return !KUBECONFIG && 'KUBECONFIG names no cluster';
}

const targets: readonly Target[] = [
  { name: 'emulated', skip: false, open: openEmulated },
  { name: 'of KUBECONFIG', skip: whyNotReal(), open: openReal },
];

/** Describes behaviours that every cluster is to have; `lab` gives the cluster once a test runs. */
export function inEveryCluster(what: string, tests: (lab: () => Lab) => void): void {
  for (const { name, skip, open } of targets) {
    describe(`${what} in the cluster ${name}`, { skip }, () => {
      let opened: Lab | undefined;
      before(async () => {
        opened = await open();
      });
      after(() => opened?.[Symbol.asyncDispose]());
      tests(() => {
        assert.ok(opened, 'the cluster is open');
        return opened;
      });
    });
  }
}

const clientsOf = (config: KubeConfig) => ({
  config,
  core: config.makeApiClient(CoreV1Api),
  authorization: config.makeApiClient(AuthorizationV1Api),
});

async function madeNamespace(core: CoreV1Api): Promise<string> {
  const { metadata } = await core.createNamespace({ body: { metadata: { generateName: 'model-manager-test-' } } });
  return metadata?.name as string;
}

async function openEmulated(): Promise<Lab> {
  const clock = manualClock();
  const cluster = await startCluster({ clock, tls: true, users: {} });
  const config = new KubeConfig();
  config.loadFromString(cluster.kubeconfig());
  const clients = clientsOf(config);
  const namespace = await madeNamespace(clients.core);
  return {
    ...clients,
    namespace,
    patienceMs: 5_000,
    pass: seconds => clock.advance(seconds * 1_000),
    async run({ metadata, spec }, text) {
      const name = metadata?.name as string;
      cluster.logs.set(namespace, name, spec?.containers[0]?.name as string, { current: text });
      cluster.update<V1Pod>('pods', name, namespace, pod => {
        pod.status = { phase: 'Succeeded' };
      });
      return undefined;
    },
    [Symbol.asyncDispose]: () => cluster.close(),
  };
}

async function openReal(): Promise<Lab> {
  const config = new KubeConfig();
  config.loadFromDefault();
  const clients = clientsOf(config);
  const namespace = await madeNamespace(clients.core);
  return {
    ...clients,
    namespace,
    patienceMs: 60_000,
    pass: async () => {},
    async run({ metadata }) {
      const fieldSelector = `metadata.name=${metadata?.name}`;
      const watch = await watching<V1Pod>({ config, namespace, patienceMs: 60_000 }, 'pods', { fieldSelector });
      try {
        let phase: string | undefined;
        while (phase !== 'Succeeded') phase = (await watch.next('the end of the pod')).object.status?.phase;
        return undefined;
      } catch (error) {
        // There may be no node for it, and no image.
        return `the pod has not run: ${(error as Error).message}`;
      } finally {
        watch.stop();
      }
    },
    async [Symbol.asyncDispose]() {
      await clients.core.deleteNamespace({ name: namespace });
    },
  };
}

export interface WatchEvent<T> {
  readonly type: string;
  readonly object: T;
}

export interface Watching<T> {
  next(what?: string): Promise<WatchEvent<T>>;
  /** Resolves when the server ends the watch, with what went wrong if anything did. */
  readonly ended: Promise<unknown>;
  stop(): void;
}

/** A watch of a core resource in the namespace, open when this resolves. */
export async function watching<T = V1ConfigMap>(
  { config, namespace, patienceMs }: Pick<Lab, 'config' | 'namespace' | 'patienceMs'>,
  plural: string,
  query: Readonly<Record<string, string | number | boolean>> = {},
): Promise<Watching<T>> {
  const emitter = new EventEmitter();
  const events = on(emitter, 'event', { close: ['end'] });
  const { promise: ended, resolve: end } = Promise.withResolvers<unknown>();
  const path = `/api/v1/namespaces/${namespace}/${plural}`;
  const tell = (type: string, object: T) => void emitter.emit('event', { type, object });
  const stopper = await new Watch(config).watch(path, { ...query }, tell, error => {
    end(error);
    emitter.emit('end');
  });
  return {
    ended,
    async next(what = `the next event of ${plural}`) {
      const { value, done } = await within(events.next(), what, patienceMs);
      assert.ok(!done, `the watch ended before ${what}`);
      return value[0] as WatchEvent<T>;
    },
    stop: () => stopper.abort(),
  };
}

/** A watch that ends with the test. */
export async function watchingIn<T = V1ConfigMap>(t: TestContext, ...given: Parameters<typeof watching>) {
  const watch = await watching<T>(...given);
  t.after(watch.stop);
  return watch;
}

export const configMap = (
  name: string,
  data: Record<string, string> = {},
  metadata: V1ObjectMeta = {},
): V1ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
});

export const merging = setHeaderOptions('Content-Type', PatchStrategy.MergePatch);

export const versionOf = ({ metadata }: KubernetesObject) => metadata?.resourceVersion as string;

/** Expects a refusal with this code and this reason. */
export async function refused(act: Promise<unknown>, code: number, reason: string): Promise<string> {
  try {
    await act;
  } catch (error) {
    if (!(error instanceof ApiException)) throw error;
    const status = JSON.parse(error.body) as { readonly reason: string; readonly message: string };
    assert.deepEqual([error.code, status.reason], [code, reason]);
    return status.message;
  }
  throw new assert.AssertionError({ message: `this was to be refused with ${code} ${reason}` });
}
