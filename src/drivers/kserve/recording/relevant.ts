/** Which objects of a cluster a serve is told from. */
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { fieldsOf, textOf } from '../jobs/fields.ts';
import { presetLabel } from '../labels.ts';
import { specOf, statusOf } from '../timeline/fields.ts';
import { nominatedClaim, poolOfClaim } from '../timeline/scheduling/nomination.ts';

/** What is seen of a cluster. A part that cannot be read is empty. */
export interface Seen {
  /** Of the serving namespace. */
  readonly pods: readonly KubernetesObject[];
  readonly events: readonly KubernetesObject[];
  /** Of the namespace `default`. */
  readonly karpenterEvents: readonly KubernetesObject[];
  readonly nodes: readonly KubernetesObject[];
  readonly nodeClaims: readonly KubernetesObject[];
  readonly nodePools: readonly KubernetesObject[];
  readonly nodeClasses: readonly KubernetesObject[];
  /** Taken as they are. */
  readonly storage: readonly KubernetesObject[];
  readonly presets: readonly KubernetesObject[];
  readonly discovery: readonly KubernetesObject[];
}

/** @param object what is served */
export function relevantObjects(object: KubernetesObject, seen: Seen): readonly KubernetesObject[] {
  const { name, labels } = object.metadata;
  const pods = seen.pods.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === name);
  const podNames = namesOf(pods);
  const events = seen.events.filter(event => {
    const about = aboutOf(event);
    return about.kind === object.kind ? about.name === name : about.kind === 'Pod' && podNames.has(about.name);
  });
  const claims = claimsOf(pods, events, seen.nodeClaims);
  const known = seen.nodeClaims.filter(({ metadata }) => claims.has(metadata.name));
  const pools = new Set([
    ...[...claims].flatMap(each => poolOfClaim(each) ?? []),
    ...known.flatMap(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool'] ?? []),
  ]);
  const nodePools = seen.nodePools.filter(({ metadata }) => pools.has(metadata.name));
  const classes = new Set([...nodePools.map(classOfPool), ...known.map(classOfClaim)]);
  const nodes = new Set([
    ...pods.flatMap(pod => [textOf(specOf(pod).nodeName), textOf(statusOf(pod).nominatedNodeName)]),
    ...known.map(claim => textOf(statusOf(claim).nodeName)),
    ...events.map(event => nominatedNode(textOf(fieldsOf(event).message))),
  ]);
  return [
    object,
    ...pods,
    ...events,
    ...known,
    ...nodePools,
    ...seen.nodeClasses.filter(({ metadata }) => classes.has(metadata.name)),
    ...seen.karpenterEvents.filter(event => {
      const about = aboutOf(event);
      if (about.kind === 'NodeClaim') return claims.has(about.name) || pools.has(poolOfClaim(about.name) ?? '');
      return about.kind === 'NodePool'
        ? pools.has(about.name)
        : about.kind === 'EC2NodeClass' && classes.has(about.name);
    }),
    ...seen.nodes.filter(({ metadata }) => nodes.has(metadata.name)),
    ...seen.storage,
    ...seen.presets.filter(preset => isPresetOf(preset, labels?.[presetLabel] ?? name)),
    ...seen.discovery,
  ];
}

const namesOf = (objects: readonly KubernetesObject[]) => new Set(objects.map(({ metadata }) => metadata.name));

function aboutOf(event: KubernetesObject) {
  const { kind, name } = fieldsOf(fieldsOf(event).involvedObject);
  return { kind: textOf(kind), name: textOf(name) ?? '' };
}

/** Those that pods were nominated to, and those that brought the nodes they are on. */
function claimsOf(
  pods: readonly KubernetesObject[],
  events: readonly KubernetesObject[],
  nodeClaims: readonly KubernetesObject[],
): ReadonlySet<string> {
  const nodes = new Set(pods.flatMap(pod => textOf(specOf(pod).nodeName) ?? []));
  const nominated = events.flatMap(event => nominatedClaim(textOf(fieldsOf(event).message)) ?? []);
  const brought = nodeClaims.filter(claim => nodes.has(textOf(statusOf(claim).nodeName) ?? ''));
  return new Set([...nominated, ...namesOf(brought)]);
}

/** The node that a nomination names: `Pod should schedule on: nodeclaim/gpu-l4-k7x2m, node/ip-10-0-12-34`. */
const nominatedNode = (message: string | undefined) =>
  /^Pod should schedule on: .*\bnode\/([^\s,]+)/.exec(message ?? '')?.[1];

const classOfClaim = (claim: KubernetesObject) => textOf(fieldsOf(specOf(claim).nodeClassRef).name);
const classOfPool = (pool: KubernetesObject) =>
  textOf(fieldsOf(fieldsOf(fieldsOf(specOf(pool).template).spec).nodeClassRef).name);

const isPresetOf = ({ metadata }: KubernetesObject, preset: string) => metadata.labels?.[presetLabel] === preset;
