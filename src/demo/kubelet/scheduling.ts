/** Where a pod can be, by what it and its claim ask of nodes. */
import type { KubernetesObject } from '../cluster/store/object.ts';
import type { Pod, Toleration } from './pods.ts';

export interface SchedulableNode extends KubernetesObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
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
  claim(name: string): Claim | undefined;
  volume(name: string): Volume | undefined;
}

/** The first node by name that takes it, and the volume of its claim; or, in the scheduler's words, why there is none. */
export function placeFor({ spec }: Pod, around: ScheduledAround): { node: string; volume: string } | { why: string } {
  const claimName = spec.volumes?.find(({ persistentVolumeClaim }) => persistentVolumeClaim)?.persistentVolumeClaim
    ?.claimName;
  const claim = claimName === undefined ? undefined : around.claim(claimName);
  const none = `0/${around.nodes.length} nodes are available`;
  if (claimName !== undefined && !claim) return { why: `${none}: persistentvolumeclaim "${claimName}" not found.` };
  const volume = claim?.spec?.volumeName ?? '';
  if (claim && volume === '') return { why: `${none}: pod has unbound immediate PersistentVolumeClaims.` };
  const refusals = around.nodes.map(node => refusalOf(node, spec, around.volume(volume)));
  const at = refusals.indexOf(undefined);
  const found = around.nodes[at];
  if (found) return { node: found.metadata.name, volume };
  const counts = Map.groupBy(refusals, refusal => refusal);
  const words = [...counts].map(([refusal, { length }]) => `${length} node(s) ${refusal}`).sort();
  return { why: `${none}: ${words.join(', ')}.` };
}

function refusalOf(node: SchedulableNode, pod: Pod['spec'], volume: Volume | undefined): string | undefined {
  const { labels = {}, name } = node.metadata;
  // Whoever names its node is on it, whatever the scheduler thinks.
  if (pod.nodeName !== undefined) return pod.nodeName === name ? undefined : "didn't match the requested node name";
  if (node.spec?.unschedulable) return 'were unschedulable';
  const isReady = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  if (!isReady) return 'were not ready';
  const wanted = Object.entries(pod.nodeSelector ?? {});
  if (!wanted.every(([key, value]) => labels[key] === value)) return "didn't match Pod's node affinity/selector";
  const taint = (node.spec?.taints ?? []).find(
    each => each.effect !== 'PreferNoSchedule' && !pod.tolerations?.some(toleration => covers(toleration, each)),
  );
  if (taint) return `had untolerated taint {${taint.key}: ${taint.value ?? ''}}`;
  const terms = volume?.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? [];
  const isReached = terms.length === 0 || terms.some(term => matches(term, labels));
  return isReached ? undefined : 'had volume node affinity conflict';
}

export function covers({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  const isKey = key === undefined || key === '' || key === taint.key;
  const isEffect = effect === undefined || effect === '' || effect === taint.effect;
  return isKey && isEffect && (operator === 'Exists' || (value ?? '') === (taint.value ?? ''));
}

/** Volumes ask with `In` alone. */
const matches = ({ matchExpressions = [] }: Term, labels: Readonly<Record<string, string>>) =>
  matchExpressions.every(({ key, operator, values }) => operator === 'In' && values?.includes(labels[key] ?? ''));
