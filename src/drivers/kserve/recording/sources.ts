/** What of a cluster is watched while a serve is recorded. */
import type { Call } from '../../../call.ts';
import {
  apiVersionOf,
  configMaps,
  events,
  type KubernetesObject,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  type Resource,
} from '../../../kubernetes/resource.ts';
import { located, type Watches } from '../../../kubernetes/watches.ts';
import type { Source } from '../../../live/source.ts';
import { volumeOf } from '../nodes/cacheLocation.ts';
import type { Denied } from '../recording.ts';
import { llmInferenceServices, servingPods } from '../serving/served.ts';
import { nodeClaims, nodeClasses, nodePools } from '../serving/serves/karpenter.ts';
import type { KserveSettings } from '../settings.ts';
import { unanswered } from '../world/seen.ts';
import { masked } from './mask.ts';
import type { Seen } from './relevant.ts';

/** All that was seen at a moment, and what could not be. */
export interface Sight {
  /** Every object of the serving namespace. */
  readonly served: readonly KubernetesObject[];
  /** Why they are not known. */
  readonly problem: string | undefined;
  readonly seen: Seen;
  readonly denied: readonly Denied[];
}

export interface Sources {
  /** Whether each of them has answered. */
  readonly answered: boolean;
  look(): Sight;
  stop(): void;
}

interface Part {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  readonly source: Source<readonly KubernetesObject[]>;
  readonly unsubscribe: () => void;
}

/** Watches until it is stopped. `changed` is told whenever there is something else to see. */
export function openSources(
  watches: Watches,
  call: Call,
  {
    namespace,
    cache,
    presets,
    discovery,
  }: KserveSettings & { readonly discovery: { namespace: string; name: string } },
  changed: () => void,
): Sources {
  const parts: Part[] = [];
  const open = (
    resource: Resource,
    selection: { namespace?: string; labelSelector?: string; fieldSelector?: string },
  ) => {
    const source = watches.of(call, located(resource), selection);
    const part = { resource, namespace: selection.namespace, source, unsubscribe: source.subscribe(changed) };
    parts.push(part);
    return part;
  };
  const named = (name: string) => `metadata.name=${name}`;
  const served = open(llmInferenceServices, { namespace });
  const ours = {
    pods: open(pods, { namespace, labelSelector: servingPods }),
    events: open(events, { namespace }),
    karpenterEvents: open(events, { namespace: 'default' }),
    nodes: open(nodes, {}),
    nodeClaims: open(nodeClaims, {}),
    nodePools: open(nodePools, {}),
    nodeClasses: open(nodeClasses, {}),
    presets: open(configMaps, { namespace: presets.namespace, labelSelector: presets.selector }),
    discovery: open(configMaps, { namespace: discovery.namespace, fieldSelector: named(discovery.name) }),
  };
  const claim = cache.enabled
    ? open(persistentVolumeClaims, { namespace, fieldSelector: named(cache.claim) })
    : undefined;
  let volume: { readonly name: string; readonly part: Part } | undefined;

  /** The volume that the claim is bound to now. */
  function volumePart(): Part | undefined {
    const name = volumeOf(claim && objectsOf(claim)[0]);
    if (name !== volume?.name) {
      volume?.part.unsubscribe();
      if (volume) parts.splice(parts.indexOf(volume.part), 1);
      volume = name === undefined ? undefined : { name, part: open(persistentVolumes, { fieldSelector: named(name) }) };
    }
    return volume?.part;
  }

  return {
    get answered() {
      volumePart();
      return parts.every(({ source }) => source.current !== undefined);
    },
    look() {
      const storage = [claim, volumePart()].flatMap(part => (part ? objectsOf(part) : []));
      const seen = Object.fromEntries(Object.entries(ours).map(([name, part]) => [name, objectsOf(part)]));
      return {
        served: objectsOf(served),
        problem: served.source.current?.value ? undefined : (served.source.current?.error?.message ?? unanswered),
        seen: { ...(seen as unknown as Omit<Seen, 'storage'>), storage },
        denied: parts.flatMap(part => refusalOf(part) ?? []),
      };
    },
    stop() {
      for (const { unsubscribe } of parts) unsubscribe();
    },
  };
}

/** Objects as they travel in lists have no kind of their own. */
function objectsOf({ source, resource: { group, version, kind } }: Part): readonly KubernetesObject[] {
  const apiVersion = apiVersionOf({ group, version });
  return (source.current?.value ?? []).map(object => ({ apiVersion, kind, ...object }));
}

/** A resource that the cluster does not have has no objects, and what was seen once is not refused. */
function refusalOf({ resource: { plural }, namespace, source }: Part): Denied | undefined {
  const { value, error } = source.current ?? {};
  if (value !== undefined || error?.code === 'not_found') return undefined;
  return { resource: plural, ...(namespace && { namespace }), message: masked(error?.message ?? unanswered) };
}
