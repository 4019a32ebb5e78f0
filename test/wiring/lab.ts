/** kagent in an emulated cluster: real requests of the real client to a real server. */
import type { TestContext } from 'node:test';
import type { Logger } from 'pino';
import { type Call, createCall } from '../../src/call.ts';
import {
  type ClusterOptions,
  type EmulatedCluster,
  type KubernetesObject,
  startCluster,
} from '../../src/demo/cluster.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { createKubernetesClient, type KubernetesClient } from '../../src/kubernetes/client.ts';
import type { Secret } from '../../src/kubernetes/resource.ts';
import { createWatches } from '../../src/kubernetes/watches.ts';
import type { ModelConfig } from '../../src/wiring/kagent/modelConfig.ts';
import { createKagent } from '../../src/wiring/kagent.ts';
import type { WiringTarget } from '../../src/wiring/wiring.ts';
import { silent } from '../support/gateway.ts';

/** What kagent installs, as far as anybody here looks at it. */
export const definition = (versions: readonly string[] = ['v1alpha2', 'v1alpha3']) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'modelconfigs.kagent.dev' },
  spec: {
    group: 'kagent.dev',
    names: { kind: 'ModelConfig', listKind: 'ModelConfigList', plural: 'modelconfigs', singular: 'modelconfig' },
    scope: 'Namespaced',
    versions: versions.map((name, index) => ({
      name,
      served: true,
      storage: index === 0,
      subresources: { status: {} },
      schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    })),
  },
});

const kagentNamespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kagent' } };

/** The rules among the fields of a spec that no schema can say. */
function problemsOf({ kind, spec }: KubernetesObject): readonly string[] {
  if (kind !== 'ModelConfig') return [];
  const { provider = 'OpenAI', openAI, ollama, apiKeyPassthrough, apiKeySecret, apiKeySecretKey } = spec as Fields;
  return [
    openAI && provider !== 'OpenAI' && 'provider.openAI must be nil if the provider is not OpenAI',
    ollama && provider !== 'Ollama' && 'provider.ollama must be nil if the provider is not Ollama',
    apiKeySecretKey && !apiKeySecret && 'apiKeySecret must be set if apiKeySecretKey is set',
    apiKeySecret && !apiKeySecretKey && 'apiKeySecretKey must be set if apiKeySecret is set',
    apiKeyPassthrough && apiKeySecret && 'apiKeyPassthrough and apiKeySecret are mutually exclusive',
  ].flatMap(words => (words ? [`spec: Invalid value: ${words}`] : []));
}

type Fields = Readonly<Record<string, unknown>>;

export interface LabOptions {
  /** Of the CRD; none: it is not installed. */
  readonly versions?: readonly string[];
  /** Instead of that CRD: definitions, and what they say of objects. */
  readonly published?: Required<Pick<ClusterOptions, 'objects' | 'validate'>>;
  readonly objects?: readonly object[];
  readonly users?: ClusterOptions['users'];
  readonly apiVersion?: string;
  readonly prefix?: string;
  readonly log?: Logger;
  /** What happens on the way to the API server. */
  readonly between?: (client: KubernetesClient, cluster: EmulatedCluster) => Partial<KubernetesClient>;
}

export interface Lab {
  readonly cluster: EmulatedCluster;
  readonly kagent: WiringTarget;
  readonly client: KubernetesClient;
  /** Another gateway at the same cluster. */
  another(namespace?: string): WiringTarget;
  /** Somebody's call; the gateway's own when nobody is named. */
  callOf(user?: string): Call;
  modelConfig(name: string): ModelConfig | undefined;
  /** Names of all ModelConfigs. */
  modelConfigs(): readonly string[];
  secret(name: string): Secret | undefined;
  secrets(): readonly string[];
  /** The requests since the last time: `create secrets x`. */
  asked(): readonly string[];
}

export async function startLab(t: TestContext, options: LabOptions = {}): Promise<Lab> {
  const { versions, published, objects = [], users, apiVersion = 'auto', prefix = '', log = silent, between } = options;
  const crds = published?.objects ?? (versions?.length === 0 ? [] : [definition(versions)]);
  const cluster = await startCluster({
    objects: [...crds, kagentNamespace, ...objects],
    validate: object => [...problemsOf(object), ...(published?.validate(object) ?? [])],
    ...(users && { users }),
  });
  t.after(() => cluster.close());
  const direct = createKubernetesClient(openServer(cluster.url));
  const client = { ...direct, ...between?.(direct, cluster) };
  const another = (namespace = 'kagent') => {
    const watches = createWatches({ client, log });
    return createKagent({ client, watches, namespace, apiVersion, prefix, autoWire: true, log });
  };
  let seen = 0;
  return {
    cluster,
    client,
    kagent: another(),
    another,
    callOf(user) {
      if (user === undefined) return createCall({ log });
      const caller = { name: user, anonymous: false, scope: user, token: () => cluster.tokenOf(user) };
      return createCall({ log, caller });
    },
    modelConfig: name => cluster.get<ModelConfig>('modelconfigs.kagent.dev', name, 'kagent'),
    modelConfigs: () => cluster.list('modelconfigs.kagent.dev', 'kagent').map(({ metadata }) => metadata.name),
    secret: name => cluster.get<Secret>('secrets', name, 'kagent'),
    secrets: () => cluster.list('secrets', 'kagent').map(({ metadata }) => metadata.name),
    asked() {
      const all = cluster.requests;
      const news = all.slice(seen).map(({ verb, resource, name }) => [verb, resource, name].join(' ').trim());
      seen = all.length;
      return news;
    },
  };
}

/** A Secret as somebody made it. */
export const secretOf = (name: string, isOurs: boolean) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name,
    namespace: 'kagent',
    ...(isOurs && { labels: { 'app.kubernetes.io/managed-by': 'model-manager' } }),
  },
  data: { OPENAI_API_KEY: Buffer.from('theirs').toString('base64') },
});

/** The code and words of what a promise is rejected with. */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return `${code} ${message}`;
  }
  return 'no refusal';
}
