/** The whole driver on an emulated cluster made of the fixtures. */
import { createCall } from '../../../src/call.ts';
import type { ClusterOptions } from '../../../src/demo/cluster.ts';
import type { HubFacts } from '../../../src/drivers/kserve/hub/facts.ts';
import type { Hub } from '../../../src/drivers/kserve/hub.ts';
import { createKserveDriver } from '../../../src/drivers/kserve/index.ts';
import { openServer } from '../../../src/kubernetes/access.ts';
import { createKubernetesClient } from '../../../src/kubernetes/client.ts';
import { createWatches } from '../../../src/kubernetes/watches.ts';
import { namespaceOf } from '../../support/cluster.ts';
import { silent } from '../../support/gateway.ts';
import { eventually, turn } from '../../support/server.ts';
import { serving, startLab } from './jobLab.ts';
import { clusterNodes, discoveryRef, flagsOf, jsonOf, objectsOf, presetFiles } from './world.ts';

interface ResourceType {
  readonly name: string;
  readonly singularName: string;
  readonly kind: string;
}

/** What makes the resources of a discovery answer known to the API server. */
const definitions = jsonOf('cluster/api-resources-serving.json').body.resources.map(
  ({ name: plural, singularName: singular, kind }: ResourceType) => ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.serving.kserve.io` },
    spec: {
      group: 'serving.kserve.io',
      scope: 'Namespaced',
      names: { plural, singular, kind, listKind: `${kind}List` },
      versions: [
        {
          name: 'v1alpha2',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  }),
);

/** An object that serves the preset of its name, and its pod. */
export function served(name: string, node: string, more: object = {}) {
  const namespace = 'model-serving';
  const labels = { 'agent-platform.giantswarm.io/preset': name };
  const podLabels = { 'app.kubernetes.io/part-of': 'llminferenceservice', 'app.kubernetes.io/name': name };
  return [
    {
      apiVersion: 'serving.kserve.io/v1alpha2',
      kind: 'LLMInferenceService',
      metadata: { name, namespace, labels },
      spec: { model: { uri: 'hf://acme-labs/Nova-4B-Instruct', name: 'acme-labs/Nova-4B-Instruct' } },
      ...more,
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${name}-1`, namespace, labels: podLabels },
      spec: { nodeName: node, containers: [{ name: 'main', image: 'x' }] },
    },
  ];
}

interface WorldParts {
  /** Discovery; absent for the one of the fixtures. */
  readonly discovery?: readonly object[];
  /** A file of `cluster`, or none. */
  readonly storage?: string | null;
  readonly nodes?: readonly object[];
  readonly more?: readonly object[];
}

export const worldOf = ({
  discovery = objectsOf('cluster/discovery.yaml'),
  storage = 'cache-shared.yaml',
  nodes = clusterNodes,
  more = [],
}: WorldParts = {}) => [
  ...['model-serving', 'agent-platform', 'kserve'].map(namespaceOf),
  ...definitions,
  ...objectsOf('cluster/control-plane.yaml'),
  ...objectsOf('cluster/chat-template.yaml'),
  ...presetFiles.flatMap(objectsOf),
  ...discovery,
  ...(storage ? objectsOf(`cluster/${storage}`) : []),
  ...nodes,
  ...more,
];

/** A Hub that knows these repositories and remembers what it was asked. */
export function scriptedHub(known: Readonly<Record<string, HubFacts>> = {}) {
  const asked: string[] = [];
  const hub: Hub = {
    repository: () => Promise.reject(new Error('not asked')),
    files: () => Promise.reject(new Error('not asked')),
    async weights(_call, repository) {
      asked.push(repository);
      return known[repository] ?? { miss: { why: 'missing', words: `${repository} is not on the hub`, status: 404 } };
    },
    search: async () => [],
  };
  return { hub, asked };
}

export const weighing = (id: string, bytes: number, gated = false): HubFacts => ({
  repository: { id, gated, private: false },
  weights: { bytes, source: 'safetensors-index' },
  downloadBytes: bytes + 1_000,
});

export const nova = 'acme-labs/Nova-4B-Instruct';
export const novaOnHub = { [nova]: weighing(nova, 8_000_000_000) };

export interface DriverLabOptions extends ClusterOptions {
  readonly user?: string;
  readonly flags?: Parameters<typeof flagsOf>[0];
  /** The scripted one when absent; undefined for the one of the flags. */
  readonly hub?: Hub | undefined;
}

export type DriverLab = Awaited<ReturnType<typeof startDriver>>;

export async function startDriver(options: DriverLabOptions = {}) {
  const { user, flags, hub, objects = worldOf(), ...rest } = { hub: scriptedHub(novaOnHub).hub, ...options };
  const lab = await startLab({ ...rest, objects, ...(user && { user }) });
  const { cluster } = lab;
  const life = new AbortController();

  const requested = (resource: string, verb?: string) =>
    cluster.requests.filter(each => each.resource === resource && (verb === undefined || each.verb === verb));

  function driverOn({ client, watches }: Pick<typeof lab, 'client' | 'watches'>) {
    const ownNamespace = discoveryRef.namespace;
    return createKserveDriver({ client, watches, flags: flagsOf(flags), ownNamespace, hub, log: silent });
  }

  return {
    ...lab,
    driver: driverOn(lab),
    /** As a process that starts now sees the same cluster. */
    restarted() {
      const client = createKubernetesClient(openServer(cluster.url));
      return driverOn({ client, watches: createWatches({ client, log: silent }) });
    },
    /** From now on each Job whose name begins like this is through at once, and printed this. */
    ends(prefix: string, log: string) {
      const end = (job: { readonly metadata: { readonly name: string } }) => {
        lab.pod(job, `${job.metadata.name}-p`, { phase: 'Succeeded' }, log);
        lab.end(job, 'Complete');
      };
      return cluster.watch(({ type, resource, object }) => {
        if (type === 'ADDED' && resource === 'jobs.batch' && object.metadata.name.startsWith(prefix)) end(object);
      });
    },
    /** Aborts at the end of the lab. */
    over: life.signal,
    /** What the API server was asked of a resource. */
    requested,
    /** Takes away what is still awaited, so that nothing of the test outlives it. */
    async [Symbol.asyncDispose]() {
      life.abort(new Error('the test is over'));
      const scans = lab.jobs().filter(name => name.startsWith('mm-scan'));
      const background = { propagationPolicy: 'Background' } as const;
      for (const name of lab.jobs()) cluster.remove('jobs.batch', name, serving, background);
      // Who looks at one of them lets go of it, unless they can see nothing.
      const left = () => scans.filter(name => !requested('jobs.batch', 'delete').some(each => each.name === name));
      const end = performance.now() + 500;
      while (left().length > 0 && performance.now() < end) await turn();
      await cluster.close();
    },
  };
}

/** Calls as clients make them. */
export const tenSeconds = () => createCall({ log: silent, timeoutMs: 10_000 });

/** Waits until a source shows what is wanted; it has to be listened to. */
export const shows = <T>(
  source: { readonly current: { readonly value?: T | undefined } | undefined },
  holds: (value: T) => boolean,
  what: string,
) => eventually(() => source.current?.value !== undefined && holds(source.current.value), what);
