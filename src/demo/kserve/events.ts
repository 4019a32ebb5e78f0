/** Events of pods, as the scheduler and the kubelet write them. */
import { timestamp } from '../cluster/store/object.ts';
import type { ClusterObjects, KubernetesObject } from '../cluster.ts';
import type { Clock } from '../host/clock.ts';

/** What is told of a pod. */
interface Told {
  readonly reason: string;
  readonly message: string;
  readonly type?: 'Normal' | 'Warning';
  /** Which part of it: `spec.containers{main}`. */
  readonly fieldPath?: string;
}

export interface Recorder {
  /** Of the scheduler: each has a time of its own. */
  scheduler(pod: KubernetesObject, told: Told): void;
  /** Of the kubelet: what is told again is counted. */
  kubelet(pod: KubernetesObject, told: Told): void;
  /** Nobody tells of the pod with that uid any more. */
  forget(uid: string): void;
}

type Events = Pick<ClusterObjects, 'get' | 'put' | 'update'>;

export function createRecorder(cluster: Events, clock: Clock): Recorder {
  /** Names of those that may be told again, by the uid of the pod and what they tell. */
  const written = new Map<string, Map<string, string>>();
  let count = 0;

  function write(pod: KubernetesObject, { reason, message, type = 'Normal', fieldPath }: Told, more: object): string {
    const { name, namespace, uid } = pod.metadata;
    const event = `${name}.${(firstName + BigInt(++count)).toString(16)}`;
    cluster.put({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: event, namespace },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name, namespace, uid, ...(fieldPath && { fieldPath }) },
      reason,
      message,
      type,
      ...more,
    });
    return event;
  }

  return {
    scheduler(pod, told) {
      const component = 'default-scheduler';
      write(pod, told, {
        source: { component },
        reportingComponent: component,
        firstTimestamp: null,
        lastTimestamp: null,
        eventTime: `${new Date(clock.now()).toISOString().slice(0, -1)}000Z`,
        action: 'Scheduling',
      });
    },

    kubelet(pod, told) {
      const at = timestamp(clock.now());
      const { namespace = '', uid = '' } = pod.metadata;
      const key = JSON.stringify([told.reason, told.message, told.fieldPath]);
      const before = written.get(uid) ?? new Map<string, string>();
      const known = before.get(key);
      if (known !== undefined && cluster.get('events', known, namespace)) {
        cluster.update<{ count: number; lastTimestamp: string }>('events', known, namespace, event => {
          event.count++;
          event.lastTimestamp = at;
        });
        return;
      }
      const more = { source: { component: 'kubelet' }, firstTimestamp: at, lastTimestamp: at, count: 1 };
      written.set(uid, before.set(key, write(pod, told, more)));
    },

    forget: uid => void written.delete(uid),
  };
}

/** From which names count. */
const firstName = 0x18a0_0000_0000_0000n;
