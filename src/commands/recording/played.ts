/** A recording as the demo plays it, and what the gateway in front of the demo has to know of it. */
import type { PlayedRecording } from '../../demo/playing.ts';
import { type Recording, stateAt } from '../../drivers/kserve/recording.ts';
import { formatDuration } from '../../drivers/kserve/units.ts';
import type { ConfigMap, KubernetesObject } from '../../kubernetes/resource.ts';

/** Where the demo has what the platform publishes of serving. */
interface Places {
  readonly presetNamespace: string;
  /** Name of the discovery ConfigMap, in that namespace. */
  readonly discovery: string;
}

/** What the platform publishes is put where the demo has its own. */
export const playedOf = (recording: Recording, places: Places): PlayedRecording => ({
  instants: recording.instants.map(({ at }, index) => {
    const { objects, denied, log } = stateAt(recording, index);
    return { at, denied, log, objects: objects.map(each => placed(each, places)) };
  }),
});

function placed(object: KubernetesObject, { presetNamespace: namespace, discovery }: Places): KubernetesObject {
  if (object.kind !== 'ConfigMap') return object;
  const { metadata, data = {} } = object as ConfigMap;
  if ('config.yaml' in data) return { ...object, metadata: { ...metadata, name: discovery, namespace } };
  return { ...object, metadata: { ...metadata, namespace } };
}

/** The settings that the recording was told by. */
export const flagsOf = ({ namespace, settings }: Recording, { presetNamespace }: Places): readonly string[] => [
  ...['--kserve-preset-namespace', presetNamespace],
  ...['--kserve-namespace', namespace],
  ...['--kserve-gpu-resource', settings.gpuResource],
  ...['--kserve-scale-up-timeout', formatDuration(settings.scaleUpTimeout)],
  ...(settings.cacheClaim === undefined ? [] : ['--kserve-cache-claim', settings.cacheClaim]),
  ...(settings.cacheNodes === undefined ? [] : ['--kserve-cache-nodes', settings.cacheNodes.join(',')]),
];
