/** What Karpenter has in mind: read while some pod has no node. */
import type { Read } from '../../../../config/values.ts';
import { events, type KubernetesObject, type Resource } from '../../../../kubernetes/resource.ts';
import { derive } from '../../../../live/derive.ts';
import { optional } from '../../../../live/optional.ts';
import type { Observation, Source } from '../../../../live/source.ts';
import { unanswered } from '../../world/seen.ts';

const karpenter = (plural: string, kind: string): Resource => ({
  group: 'karpenter.sh',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
});
export const nodeClaims = karpenter('nodeclaims', 'NodeClaim');
export const nodePools = karpenter('nodepools', 'NodePool');
export const nodeClasses: Resource = {
  group: 'karpenter.k8s.aws',
  version: 'v1',
  plural: 'ec2nodeclasses',
  kind: 'EC2NodeClass',
  namespaced: false,
};

type Objects = Read<readonly KubernetesObject[]>;

export interface Karpenter {
  readonly nodeClaims: Objects;
  /** Of NodeClaims: Karpenter writes them to the namespace `default`. */
  readonly karpenterEvents: Objects;
  readonly nodePools: Objects;
  readonly nodeClasses: Objects;
}

/** Where nobody waits for a node. */
export const noKarpenter: Karpenter = {
  nodeClaims: { value: [] },
  karpenterEvents: { value: [] },
  nodePools: { value: [] },
  nodeClasses: { value: [] },
};

const unread = { problem: unanswered };
/** Where somebody waits and it was not read yet. */
export const unreadKarpenter: Karpenter = {
  nodeClaims: unread,
  karpenterEvents: unread,
  nodePools: unread,
  nodeClasses: unread,
};

type Watch = (resource: Resource, selection?: { namespace?: string; fieldSelector?: string }) => Seen;
type Seen = Source<readonly KubernetesObject[]>;

export function karpenterOf(watch: Watch, patienceMs: number): Source<Karpenter> {
  const claimEvents = watch(events, { namespace: 'default', fieldSelector: 'involvedObject.kind=NodeClaim' });
  const parts = [watch(nodeClaims), claimEvents, watch(nodePools), watch(nodeClasses)] as const;
  const [claims, told, pools, classes] = parts.map(each => optional(each, patienceMs)) as [Seen, Seen, Seen, Seen];
  type Lists = [
    readonly KubernetesObject[],
    readonly KubernetesObject[],
    readonly KubernetesObject[],
    readonly KubernetesObject[],
  ];
  return derive<Lists, Karpenter>([claims, told, pools, classes], ([claims, told, pools, classes]) => ({
    nodeClaims: installed(claims),
    karpenterEvents: readOf(told),
    nodePools: installed(pools),
    nodeClasses: installed(classes),
  }));
}

/** What was seen, also when it may be outdated. */
export const readOf = <T>({ value, error }: Observation<T>): Read<T> =>
  value === undefined ? { problem: error?.message ?? unanswered } : { value };

/** Where there is no Karpenter, there are none of its objects. */
const installed = (seen: Observation<readonly KubernetesObject[]>): Objects =>
  seen.error?.code === 'not_found' ? { value: [] } : readOf(seen);
