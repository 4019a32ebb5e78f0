/** Where the claim of the cache lives: on which nodes, in which zones, or wherever it is mounted. */
import { z } from 'zod';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import type { KserveSettings } from '../settings.ts';
import type { NodeView } from './node.ts';

export interface CacheLocation {
  readonly claim: string;
  readonly state: 'missing' | 'unbound' | 'bound';
  /** Every node can mount it. */
  readonly shared: boolean;
  /** The only nodes that can mount it, sorted; empty when none is named. */
  readonly nodes: readonly string[];
  /** Zones of its volume, sorted. */
  readonly zones: readonly string[];
  /** The volume it is bound to, where that was asked for. */
  readonly volume?: string | undefined;
  /** What the volume says of nodes and zones is known. */
  readonly volumeRead: boolean;
}

/** What of the settings it depends on. */
interface CacheSettings {
  readonly cache: Pick<KserveSettings['cache'], 'claim' | 'nodes'>;
}

/** Whatever of it is not as it should be is as good as not there. */
const claimView = z.looseObject({
  spec: z.looseObject({ volumeName: z.string().optional().catch(undefined) }).catch({}),
});

const expression = z
  .looseObject({ key: z.string(), operator: z.string(), values: z.array(z.string()) })
  .nullable()
  .catch(null);
const volumeView = z.looseObject({
  spec: z.looseObject({
    nodeAffinity: z.looseObject({
      required: z.looseObject({
        nodeSelectorTerms: z.array(
          z.looseObject({ matchExpressions: z.array(expression).catch([]) }).catch({ matchExpressions: [] }),
        ),
      }),
    }),
  }),
});

/**
 * Without any look at the cluster: the operator said which nodes have the claim. Undefined when nobody said, and the claim
 * has to be read.
 */
export function declaredLocation({ cache: { claim, nodes } }: CacheSettings): CacheLocation | undefined {
  if (nodes.length === 0) return undefined;
  return { claim, state: 'bound', shared: false, nodes, zones: [], volumeRead: false };
}

/** The volume to read beside a claim; nothing while the claim is bound to none. */
export const volumeOf = (claim: KubernetesObject | undefined): string | undefined =>
  claim && (claimView.safeParse(claim).data?.spec.volumeName || undefined);

/**
 * @param claim absent when there is none
 * @param volume absent when it is not there, or must not be read: then it is taken as one that every node can mount
 */
export function cacheLocation(
  settings: CacheSettings,
  claim: KubernetesObject | undefined,
  volume: KubernetesObject | undefined,
): CacheLocation {
  const declared = declaredLocation(settings);
  if (declared) return declared;
  const nowhere = { claim: settings.cache.claim, shared: false, nodes: [], zones: [], volumeRead: false };
  if (!claim) return { ...nowhere, state: 'missing' };
  const name = volumeOf(claim);
  if (!name) return { ...nowhere, state: 'unbound' };
  const bound = { ...nowhere, state: 'bound', volume: name } as const;
  if (!volume) return { ...bound, shared: true };
  const values = affinityOf(volume);
  const nodes = values('kubernetes.io/hostname');
  const zones = values('topology.kubernetes.io/zone');
  return {
    ...bound,
    shared: nodes.length === 0,
    nodes,
    zones: zones.length > 0 ? zones : values('failure-domain.beta.kubernetes.io/zone'),
    volumeRead: true,
  };
}

/** The values of a label that nodes must have one of. */
function affinityOf(volume: KubernetesObject): (key: string) => readonly string[] {
  const terms = volumeView.safeParse(volume).data?.spec.nodeAffinity.required.nodeSelectorTerms ?? [];
  const expressions = terms.flatMap(({ matchExpressions }) => matchExpressions);
  return label => {
    const values = expressions.flatMap(each => (each?.key === label && each.operator === 'In' ? each.values : []));
    return [...new Set(values)].toSorted();
  };
}

/** Only some nodes can mount it, and they are known. */
export const isPinned = (location: CacheLocation | undefined): location is CacheLocation =>
  location?.state === 'bound' && !location.shared && location.nodes.length > 0;

/** Volumes name nodes by their host name, which need not be the name of the Node. */
export const holdsClaim = ({ nodes }: CacheLocation, { name, labels }: NodeView) =>
  nodes.includes(name) || nodes.includes(labels['kubernetes.io/hostname'] ?? name);

/** Whether a node has the claim mounted, or may come to have it. */
export const mayHoldClaim = (location: CacheLocation, node: NodeView) =>
  location.state !== 'missing' &&
  (location.shared || holdsClaim(location, node) || (location.state === 'unbound' && location.nodes.length === 0));
