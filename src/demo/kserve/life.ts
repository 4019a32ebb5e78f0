/** The life of a pod that serves: a node, its init containers, its image, its runtime. */
import { timestamp } from '../cluster/store/object.ts';
import type { Container, Pod } from '../kubelet/pods.ts';
import { pullImage } from './images.ts';
import { type PodStatus, scheduled, taken, unschedulable, withContainer } from './podStatus.ts';
import { startRuntime } from './runtime.ts';
import { type LivePod, type Surroundings, statusOf } from './surroundings.ts';
import { downloadWeights } from './weights.ts';

/** Resolves when its runtime answers; rejects when it is asked to end before. */
export async function bringUp(pod: Pod, around: Surroundings, signal: AbortSignal): Promise<void> {
  const live = await bound(pod, around, signal);
  const { initContainers = [], containers } = pod.spec;
  await live.pause(around.pace.startMs);
  for (const container of initContainers) await initialized(live, around, container);
  for (const { name, image = '' } of containers) {
    if (initContainers.length > 0) live.say(name, { waiting: { reason: 'PodInitializing' } });
    await pullImage(live, around, name, image);
    if (name === 'main') await startRuntime(live, around, image);
    else startBeside(live, name);
  }
}

/** As soon as a node takes it; why none does is said until then. */
async function bound(pod: Pod, around: Surroundings, signal: AbortSignal): Promise<LivePod> {
  const { cluster, clock, events } = around;
  const { name, namespace = '', labels } = pod.metadata;
  const now = () => timestamp(clock.now());
  const change = (next: (status: PodStatus | undefined) => PodStatus, nodeName?: string) =>
    cluster.update<{ spec: object; status?: PodStatus }>('pods', name, namespace, object => {
      object.status = next(object.status);
      if (nodeName !== undefined) object.spec = { ...object.spec, nodeName };
    });
  const place = await around.place(
    pod,
    message => {
      const before = statusOf(cluster.get('pods', name, namespace) ?? pod)?.conditions?.[0]?.message;
      if (before === message) return;
      change(status => unschedulable(status, message, now()));
      events.scheduler(pod, { reason: 'FailedScheduling', message, type: 'Warning' });
    },
    signal,
  );
  change(() => scheduled(now()), place.node);
  events.scheduler(pod, {
    reason: 'Scheduled',
    message: `Successfully assigned ${namespace}/${name} to ${place.node}`,
  });
  const address = around.address();
  change(status => taken(pod, status ?? scheduled(now()), address, now()));
  const isInit = (container: string) => pod.spec.initContainers?.some(each => each.name === container);
  return {
    pod,
    served: labels?.['app.kubernetes.io/name'] ?? '',
    ...place,
    address,
    now,
    async pause(ms) {
      await clock.sleep(ms, signal);
      // It may have been asked to end since the time was over.
      signal.throwIfAborted();
    },
    say: (container, state, more) =>
      void change(status => withContainer(status ?? scheduled(now()), container, { state, ...more }, now())),
    told(container, reason, message, type) {
      const fieldPath = `spec.${isInit(container) ? 'initContainers' : 'containers'}{${container}}`;
      events.kubelet(pod, { reason, message, fieldPath, ...(type && { type }) });
    },
    print: (container, lines) => cluster.logs.append(namespace, name, container, lines),
  };
}

async function initialized(live: LivePod, around: Surroundings, container: Container): Promise<void> {
  const { name, image = '', args = [] } = container;
  if (name === 'modelcar-init') await pullImage(live, around, name, image);
  else live.told(name, 'Pulled', `Container image "${image}" already present on machine`);
  if (name === 'storage-initializer') return await downloadWeights(live, around, args[0] ?? '');
  live.told(name, 'Started', `Started container ${name}`);
  const at = live.now();
  const terminated = { exitCode: 0, reason: 'Completed', startedAt: at, finishedAt: at };
  live.say(name, { terminated }, { ready: true, started: false });
}

/** What only has to be there: the files of a model image. */
function startBeside(live: LivePod, name: string) {
  live.told(name, 'Started', `Started container ${name}`);
  live.say(name, { running: { startedAt: live.now() } }, { ready: true, started: true });
}
