import type { LoadedModel, Target } from '../../../../domain.ts';
import type { KubernetesObject } from '../../../../kubernetes/resource.ts';
import { timeline } from '../../timeline.ts';
import type { Surroundings } from '../../world.ts';
import { presetOf, readService, servedAsLoaded } from '../served.ts';
import { noKarpenter } from './karpenter.ts';

/** An object as one in memory, or on its way there, while nothing is known but itself. */
export function servedAlone(
  object: KubernetesObject,
  { settings, presets }: Pick<Surroundings, 'settings' | 'presets'>,
  place: { readonly backend: string; readonly target: Target | undefined },
): LoadedModel {
  const served = readService(object, { presets, settings });
  const none = { value: [] };
  const told = timeline(
    {
      object,
      pods: none,
      events: none,
      nodes: none,
      ...noKarpenter,
      cache: { problem: 'not asked' },
      settings,
      weightsBytes: presetOf(served, presets)?.weightsBytes,
    },
    Date.now(),
  );
  return servedAsLoaded(served, { ...place, presets, gatewayEndpoint: settings.gatewayEndpoint }, told, []);
}
