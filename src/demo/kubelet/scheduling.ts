/** Where a pod can be, by what it and its claim ask of nodes. */
import type { KubernetesObject } from '../cluster/store/object.ts';
import type { Pod, Toleration } from './pods.ts';

export interface SchedulableNode extends KubernetesObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: {
    readonly allocatable?: Readonly<Record<string, string>>;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Claim extends KubernetesObject {
  readonly spec?: { readonly volumeName?: string };
}

export interface Volume extends KubernetesObject {
  readonly spec?: { readonly nodeAffinity?: { readonly required?: { readonly nodeSelectorTerms?: readonly Term[] } } };
}

interface Term {
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

export interface ScheduledAround {
  readonly nodes: readonly SchedulableNode[];
  /** All there are: those on a node take its devices. */
  readonly pods: readonly Pod[];
  claim(name: string): Claim | undefined;
  volume(name: string): Volume | undefined;
}

/** A node, and the volume that a pod mounts there; '' for none. */
export interface Place {
  readonly node: string;
  readonly volume: string;
}

/** The first node by name that takes it, and the volume of its claim; or, in the scheduler's words, why there is none. */
export function placeFor({ spec }: Pod, around: ScheduledAround): Place | { why: string } {
  const { nodes } = around;
  const claimName = spec.volumes?.find(({ persistentVolumeClaim }) => persistentVolumeClaim)?.persistentVolumeClaim
    ?.claimName;
  const claim = claimName === undefined ? undefined : around.claim(claimName);
  const none = `0/${nodes.length} nodes are available`;
  const hopeless = `preemption: ${none}: ${nodes.length} ${unhelpful}.`;
  if (claimName !== undefined && !claim) {
    return { why: `${none}: persistentvolumeclaim "${claimName}" not found. ${hopeless}` };
  }
  const volume = claim?.spec?.volumeName ?? '';
  if (claim && volume === '') {
    return { why: `${none}: pod has unbound immediate PersistentVolumeClaims. ${hopeless}` };
  }
  const refusals = nodes.map(node => refusalOf(node, spec, around.volume(volume), around.pods));
  const found = nodes[refusals.indexOf(undefined)];
  if (found) return { node: found.metadata.name, volume };
  const refused = refusals.map(String);
  return {
    why: `${none}: ${counted(refused)}. preemption: ${none}: ${counted(refused.map(refusal => (refusal.startsWith(lack) ? victimless : unhelpful)))}.`,
  };
}

/** Of what a node has too little. */
const lack = 'Insufficient ';
const unhelpful = 'Preemption is not helpful for scheduling';
const victimless = 'No preemption victims found for incoming pod';

const counted = (words: readonly string[]) =>
  [...Map.groupBy(words, word => word)]
    .map(([word, { length }]) => `${length} ${word}`)
    .sort()
    .join(', ');

/** The devices that a pod asks for, by resource: whole ones, of resources that have a domain. */
function devicesOf({ containers }: Pod['spec']): ReadonlyMap<string, number> {
  const asked = new Map<string, number>();
  for (const { resources } of containers) {
    for (const [resource, quantity] of Object.entries({ ...resources?.limits, ...resources?.requests })) {
      if (resource.includes('/')) asked.set(resource, (asked.get(resource) ?? 0) + Number(quantity));
    }
  }
  return asked;
}

/** The resource of which the node has not enough devices left. */
function lacking({ metadata, status }: SchedulableNode, pod: Pod['spec'], pods: readonly Pod[]): string | undefined {
  const there = pods.filter(({ spec, status: { phase = '' } = {} }) => {
    return spec.nodeName === metadata.name && !['Succeeded', 'Failed'].includes(phase);
  });
  const free = (resource: string) =>
    there.reduce(
      (left, { spec }) => left - (devicesOf(spec).get(resource) ?? 0),
      Number(status?.allocatable?.[resource] ?? 0),
    );
  return [...devicesOf(pod)].find(([resource, count]) => count > free(resource))?.[0];
}

function refusalOf(
  node: SchedulableNode,
  pod: Pod['spec'],
  volume: Volume | undefined,
  pods: readonly Pod[],
): string | undefined {
  const { labels = {}, name } = node.metadata;
  // Whoever names its node is on it, whatever the scheduler thinks.
  if (pod.nodeName !== undefined)
    return pod.nodeName === name ? undefined : "node(s) didn't match the requested node name";
  if (node.spec?.unschedulable) return 'node(s) were unschedulable';
  const isReady = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  if (!isReady) return 'node(s) were not ready';
  const wanted = Object.entries(pod.nodeSelector ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value))
    return "node(s) didn't match Pod's node affinity/selector";
  const taint = (node.spec?.taints ?? []).find(
    each => each.effect !== 'PreferNoSchedule' && !pod.tolerations?.some(toleration => covers(toleration, each)),
  );
  if (taint) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`;
  const missing = lacking(node, pod, pods);
  if (missing !== undefined) return `${lack}${missing}`;
  const terms = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const isReached = terms.length === 0 || terms.some(term => matches(term, labels));
  return isReached ? undefined : 'node(s) had volume node affinity conflict';
}

export function covers({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  const isKey = key === undefined || key === '' || key === taint.key;
  const isEffect = effect === undefined || effect === '' || effect === taint.effect;
  return isKey && isEffect && (operator === 'Exists' || (value ?? '') === (taint.value ?? ''));
}

/** Volumes ask with `In` alone. */
const matches = ({ matchExpressions = [] }: Term, labels: Readonly<Record<string, string>>) =>
  matchExpressions.every(({ key, operator, values }) => operator === 'In' && values?.includes(labels[key] ?? ''));
