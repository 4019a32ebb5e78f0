/** What the timeline is told of an instant. */
import type { Read } from '../../../config/values.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { cacheLocation, volumeOf } from '../nodes/cacheLocation.ts';
import type { Recording } from '../recording.ts';
import type { ServeFacts } from '../timeline.ts';
import { type State, stateAt } from './changes.ts';

/** @param index of an instant there is */
export const factsAt = (recording: Recording, index: number): ServeFacts =>
  factsOf(recording, stateAt(recording, index));

export function factsOf(
  { object: name, namespace, settings }: Omit<Recording, 'instants'>,
  { objects, denied, log }: State,
): ServeFacts {
  const ofKind = (kind: string) => objects.filter(each => each.kind === kind);
  const named = (kind: string, name: string | undefined) => ofKind(kind).find(({ metadata }) => metadata.name === name);
  const read = <T>(value: T, resource: string, place?: string): Read<T> => {
    const refused = denied.find(
      each => each.resource === resource && (!place || !each.namespace || each.namespace === place),
    );
    return refused ? { problem: refused.message } : { value };
  };
  const eventsIn = (place: string) =>
    read(
      ofKind('Event').filter(({ metadata }) => metadata.namespace === place),
      'events',
      place,
    );
  const claim = named('PersistentVolumeClaim', settings.cacheClaim);
  const volume = named('PersistentVolume', volumeOf(claim));
  const isVolumeRead = 'value' in read(volume, 'persistentvolumes');
  const { cacheClaim = '', cacheNodes = [], gpuResource, scaleUpTimeout, weightsBytes } = settings;
  const location = cacheLocation(
    { cache: { claim: cacheClaim, nodes: cacheNodes } },
    claim,
    isVolumeRead ? volume : undefined,
  );
  return {
    // A recording without it is none.
    object: ofKind('LLMInferenceService').find(({ metadata }) => metadata.name === name) as KubernetesObject,
    pods: read(ofKind('Pod'), 'pods'),
    events: eventsIn(namespace),
    nodes: read(ofKind('Node'), 'nodes'),
    log: log ? { value: log.text } : read('', 'pods/log'),
    nodeClaims: read(ofKind('NodeClaim'), 'nodeclaims'),
    karpenterEvents: eventsIn('default'),
    nodePools: read(ofKind('NodePool'), 'nodepools'),
    nodeClasses: read(ofKind('EC2NodeClass'), 'ec2nodeclasses'),
    cache: read(location, 'persistentvolumeclaims'),
    settings: { gpuResource, scaleUpTimeout },
    weightsBytes,
  };
}
