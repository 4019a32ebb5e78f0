/**
 * An emulated KServe over an emulated cluster: its definitions, its controller, and the scheduler and the nodes as far as
 * pods that serve models need them. What somebody creates gets a pod, which waits for a node, brings its weights into the
 * cache, pulls its image, loads, and is routed to; conditions, container statuses, Events and logs say so as they would in
 * a real cluster. What is deleted ends after a moment, and its pod with it.
 *
 * Nothing answers at the addresses that are published. What goes wrong is scripted: `faults` of single objects, and images
 * that no registry has.
 */
import { recordOf, timestamp } from './cluster/store/object.ts';
import type { Change, KubernetesObject } from './cluster.ts';
import { type Clock, realClock } from './host/clock.ts';
import { isReady, type ObjectStage, type ObjectStatus, objectStatus } from './kserve/conditions.ts';
import { createRecorder } from './kserve/events.ts';
import type { ServingFault, ServingPace } from './kserve/faults.ts';
import { bringUp } from './kserve/life.ts';
import { type Repositories, type ServingCluster, type Surroundings, statusOf } from './kserve/surroundings.ts';
import { ownerOf, podOf, type Service } from './kserve/template.ts';
import type { Pod } from './kubelet/pods.ts';
import { createScheduler } from './kubelet/scheduler.ts';
import type { EmulatedKubelet } from './kubelet.ts';

export { kserveDefinitions } from './kserve/definitions.ts';
export type { ServingPace } from './kserve/faults.ts';
export { type ServedModel, serveModel } from './kserve/standing.ts';

export interface ServingOptions {
  readonly clock?: Clock;
  readonly pace: ServingPace;
  /** Has the volume of the cache. */
  readonly kubelet: Pick<EmulatedKubelet, 'content' | 'write'>;
  /** The claim of the cache, which pods mount that download; without one they download for themselves. */
  readonly claim?: string;
  readonly repositories: Repositories;
  /** Where served models answer: `<gateway>/<namespace>/<name>`. */
  readonly gateway: string;
  /** By the name of the object. */
  readonly faults?: Readonly<Record<string, ServingFault>>;
  /** Images that no registry has. */
  readonly missingImages?: readonly string[];
}

export interface EmulatedServing {
  stop(): void;
}

const services = 'llminferenceservices.serving.kserve.io';
/** How long Events outlive their pod, in milliseconds: an hour, as in real clusters. */
const eventsMs = 3_600_000;

export function startServing(cluster: ServingCluster, options: ServingOptions): EmulatedServing {
  const { clock = realClock, pace, kubelet, claim, repositories, gateway, faults = {}, missingImages = [] } = options;
  const life = new AbortController();
  /** Pods that are under way or serve, by uid. */
  const pods = new Map<string, AbortController>();
  /** When pods began to answer, by uid, in milliseconds. */
  const answering = new Map<string, number>();
  /** Objects that are looked at at a time, by uid and time. */
  const due = new Set<string>();
  const scheduler = createScheduler(cluster);
  let made = 0;
  let addresses = 0;

  const around: Surroundings = {
    cluster,
    clock,
    pace,
    events: createRecorder(cluster, clock),
    volumes: kubelet,
    repositories,
    fault: name => (Object.hasOwn(faults, name) ? faults[name] : undefined),
    exists: image => !missingImages.includes(image),
    images: new Set(),
    place: scheduler.place,
    address: () => `10.0.12.${1 + (addresses++ % 250)}`,
  };

  /** After a while, unless everything is stopped. */
  function later(ms: number, what: () => void) {
    clock.sleep(ms, life.signal).then(
      () => !life.signal.aborted && what(),
      () => {}, // It is stopped meanwhile: that is all a sleep rejects for.
    );
  }

  function noticed(change: Change) {
    const { type, resource, object } = change;
    const isGone = type === 'DELETED';
    if (resource === services && !isGone) look(object.metadata.uid);
    if (resource === 'nodes' && isGone) for (const pod of servingPods()) if (isOn(pod, object)) removePod(pod);
    if (resource === 'pods' && ownerOf(object) !== undefined) podChanged(object as Pod, isGone);
    scheduler.noticed(change);
  }

  function podChanged(pod: Pod, isGone: boolean) {
    const { uid = '', deletionTimestamp } = pod.metadata;
    const own = pods.get(uid);
    if (isGone) {
      own?.abort();
      pods.delete(uid);
      answering.delete(uid);
      around.events.forget(uid);
      later(eventsMs, () => removeEvents(pod));
    } else if (!own) {
      begin(pod);
    } else if (deletionTimestamp && !own.signal.aborted) {
      own.abort();
      for (const { name } of pod.spec.containers) {
        const told = { reason: 'Killing', message: `Stopping container ${name}` };
        around.events.kubelet(pod, { ...told, fieldPath: `spec.containers{${name}}` });
      }
      later(pace.stopMs, () => removePod(pod));
    }
    look(ownerOf(pod));
  }

  /** Brings a pod up; one that is on a node from the beginning is there already. */
  function begin(pod: Pod) {
    const own = new AbortController();
    const { uid = '' } = pod.metadata;
    pods.set(uid, own);
    const { nodeName, containers } = pod.spec;
    if (nodeName !== undefined) {
      for (const { image } of containers) around.images.add(`${nodeName} ${image}`);
      return;
    }
    bringUp(pod, around, AbortSignal.any([own.signal, life.signal])).catch(error => {
      // It is asked to end, or everything is stopped: then it is over.
      if (!own.signal.aborted && !life.signal.aborted) throw error;
    });
  }

  function removePod({ metadata: { uid, name, namespace } }: Pod) {
    if (cluster.get<KubernetesObject>('pods', name, namespace)?.metadata.uid === uid) {
      cluster.remove('pods', name, namespace);
    }
  }

  function removeEvents({ metadata: { uid, namespace } }: Pod) {
    for (const event of cluster.list<KubernetesObject>('events', namespace)) {
      if (recordOf(event.involvedObject).uid === uid) cluster.remove('events', event.metadata.name, namespace);
    }
  }

  const servingPods = () => cluster.list<Pod>('pods').filter(pod => ownerOf(pod) !== undefined);

  /** Looks at an object soon, or when that time has come. */
  function look(uid: string | undefined, at = clock.now() + pace.controllerMs) {
    const key = `${uid} ${at}`;
    if (uid === undefined || due.has(key)) return;
    due.add(key);
    later(at - clock.now(), () => {
      due.delete(key);
      reconcile(uid);
    });
  }

  function reconcile(uid: string) {
    const service = cluster.list<Service>(services).find(({ metadata }) => metadata.uid === uid);
    if (!service || service.metadata.deletionTimestamp) return;
    const pod = servingPods().find(each => ownerOf(each) === uid && !each.metadata.deletionTimestamp);
    if (pod) say(service, stageOf(service, pod));
    else cluster.put(podOf(service, made++, claim));
  }

  function stageOf({ metadata: { uid }, status }: Service, pod: Pod): ObjectStage {
    const { uid: own = '' } = pod.metadata;
    if (!statusOf(pod)?.containerStatuses?.every(({ ready }) => ready)) {
      answering.delete(own);
      return 'workload';
    }
    if (isReady(status as ObjectStatus | undefined)) return 'ready';
    const since = answering.get(own) ?? clock.now();
    answering.set(own, since);
    if (clock.now() >= since + pace.routeMs) return 'ready';
    look(uid, since + pace.routeMs);
    return 'route';
  }

  /** What it says already is not written again. */
  function say({ metadata, status }: Service, stage: ObjectStage) {
    const { name, namespace, generation = 1 } = metadata;
    const before = status as ObjectStatus | undefined;
    const next = objectStatus(stage, {
      url: `${gateway}/${namespace}/${name}`,
      route: `${namespace}/${name}-kserve-route`,
      generation,
      at: timestamp(clock.now()),
      before,
    });
    if (summaryOf(before) === summaryOf(next)) return;
    cluster.update<{ status?: ObjectStatus }>(services, name, namespace, object => {
      object.status = next;
    });
  }

  const unwatch = cluster.watch(noticed);
  for (const pod of servingPods()) begin(pod);
  for (const { metadata } of cluster.list<Service>(services)) look(metadata.uid);

  return {
    stop() {
      unwatch();
      life.abort();
    },
  };
}

const isOn = ({ spec }: Pod, { metadata }: KubernetesObject) => spec.nodeName === metadata.name;

function summaryOf(status: ObjectStatus | undefined): string {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return JSON.stringify([status?.observedGeneration, ready?.status, ready?.reason]);
}
