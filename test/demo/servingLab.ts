/** A cluster that serves what is put there, in a time that a test moves, and what the gateway makes of it. */
import type { TestContext } from 'node:test';
import { type KubernetesObject, manualClock, startCluster } from '../../src/demo/cluster.ts';
import { type ServingOptions, type ServingPace, startServing } from '../../src/demo/kserve.ts';
import { type Directory, startKubelet } from '../../src/demo/kubelet.ts';
import { cacheVolume, servingNamespace, servingObjects } from '../../src/demo/world/serving.ts';
import type { ServingPhase, Step } from '../../src/domain.ts';
import { type Timeline, timeline } from '../../src/drivers/kserve/timeline.ts';
import type { KubernetesObject as GatewayObject } from '../../src/kubernetes/resource.ts';

export const namespace = servingNamespace;

export const pace: ServingPace = {
  controllerMs: 1_000,
  startMs: 2_000,
  bytesPerSecond: 1_000_000,
  progressMs: 1_000,
  cachedMs: 2_000,
  pullMs: 6_000,
  loadMs: 5_000,
  probeMs: 2_000,
  routeMs: 4_000,
  backoffMs: 10_000,
  stopMs: 2_000,
};

/** The weights of every repository: 20 MB, which take 20 s. */
const files = [
  { path: 'config.json', bytes: 1_000 },
  { path: 'model.safetensors', bytes: 19_999_000 },
];
export const weights = 20_000_000;

export interface ServedPod extends KubernetesObject {
  readonly spec: {
    readonly nodeName?: string;
    readonly containers: readonly { readonly name: string }[];
    readonly initContainers?: readonly { readonly name: string }[];
  };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly message?: string }[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly state: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly lastState: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface PodEvent extends KubernetesObject {
  readonly reason: string;
  readonly message: string;
  readonly count?: number;
  readonly involvedObject: { readonly uid: string; readonly fieldPath?: string };
}

interface Wanted {
  readonly name: string;
  readonly uri?: string;
  readonly gpus?: number;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly image?: string;
}

/** What the gateway creates to serve a model. */
export function service({ name, uri = `hf://acme/${name}`, gpus = 1, nodeSelector = {}, image }: Wanted) {
  const devices = gpus > 0 ? { 'nvidia.com/gpu': String(gpus) } : {};
  const resources = { requests: { cpu: '4', memory: '16Gi', ...devices }, limits: devices };
  const isAccelerated = gpus > 0;
  return {
    apiVersion: 'serving.kserve.io/v1alpha2',
    kind: 'LLMInferenceService',
    metadata: { name, namespace, labels: { 'app.kubernetes.io/managed-by': 'model-manager' } },
    spec: {
      model: { uri, name: `acme/${name}` },
      replicas: 1,
      router: { route: {} },
      template: {
        containers: [{ name: 'main', args: ['--max-model-len=8192'], resources, ...(image && { image }) }],
        nodeSelector,
        ...(isAccelerated && {
          tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists', effect: 'NoSchedule' }],
          runtimeClassName: 'nvidia',
        }),
        terminationGracePeriodSeconds: 60,
      },
    },
  };
}

export const gpuPool = { 'giantswarm.io/machine-pool': 'gpu-l4' };

interface LabOptions extends Partial<ServingOptions> {
  readonly content?: readonly Directory[];
  readonly tls?: boolean;
}

export async function startLab(t: TestContext, { content = [], tls = false, ...options }: LabOptions = {}) {
  const clock = manualClock();
  const cluster = await startCluster({ objects: servingObjects(), clock, tls });
  const kubelet = startKubelet(cluster, { clock, volumes: { [cacheVolume]: content } });
  const serving = startServing(cluster, {
    clock,
    kubelet,
    pace,
    claim: 'hf-cache',
    gateway: 'https://models.example.com',
    repositories: () => ({ files }),
    ...options,
  });
  t.after(async () => {
    serving.stop();
    kubelet.stop();
    await cluster.close();
  });

  const services = 'llminferenceservices.serving.kserve.io';
  const object = (name: string) => cluster.get<KubernetesObject>(services, name, namespace);
  const pods = (name: string) =>
    cluster
      .list<ServedPod>('pods', namespace)
      .filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === name);
  const events = (name: string) => {
    const uids = pods(name).map(({ metadata }) => metadata.uid);
    return cluster.list<PodEvent>('events', namespace).filter(each => uids.includes(each.involvedObject.uid));
  };
  const log = async (name: string, container: string, previous = false) => {
    const path = `/api/v1/namespaces/${namespace}/pods/${pods(name)[0]?.metadata.name}/log`;
    return (await fetch(`${cluster.url}${path}?container=${container}&previous=${previous}`)).text();
  };
  /** What the gateway says of an object now. */
  function told(name: string, written = ''): Timeline {
    const none = { value: [] };
    const seen = <T>(value: T) => value as unknown as GatewayObject[];
    return timeline(
      {
        object: object(name) as unknown as GatewayObject,
        pods: { value: seen(cluster.list('pods', namespace)) },
        events: { value: seen(cluster.list('events', namespace)) },
        nodes: { value: seen(cluster.list('nodes')) },
        log: { value: written },
        nodeClaims: none,
        karpenterEvents: none,
        nodePools: none,
        nodeClasses: none,
        cache: { value: { claim: 'hf-cache', state: 'bound', shared: true, nodes: [], zones: [], volumeRead: true } },
        settings: { gpuResource: 'nvidia.com/gpu', scaleUpTimeout: 600_000 },
        weightsBytes: weights,
      },
      clock.now(),
    );
  }
  return {
    clock,
    cluster,
    serving,
    object,
    pods,
    events,
    log,
    told,
    content: (dir: string) => kubelet.content(cacheVolume).find(each => each.dir === dir),
    reasons: (name: string) => events(name).map(({ reason }) => reason),
    /** The phases that the gateway sees from now on, each once, until it has seen the last one. */
    async phases(name: string, last: ServingPhase): Promise<ServingPhase[]> {
      const seen: ServingPhase[] = [];
      for (let ms = 0; ms < 600_000; ms += 500) {
        const { phase } = told(name);
        if (seen.at(-1) !== phase) seen.push(phase);
        if (phase === last) return seen;
        await clock.advance(500);
      }
      throw new Error(`${name} did not come to ${last}: ${seen}`);
    },
  };
}

/** A step of what the gateway says. */
export const stepOf = ({ steps }: Timeline, name: Step['name']): Step | undefined =>
  steps.find(each => each.name === name);
