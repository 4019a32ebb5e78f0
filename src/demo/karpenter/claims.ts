/** NodeClaims: what is asked of the cloud, and what it says. */
import type { KubernetesObject } from '../cluster/store/object.ts';
import {
  type Condition,
  gpuResource,
  gpusOf,
  type NodeClass,
  type Offer,
  poolLabel,
  typeLabel,
  type WaitingPod,
  zoneLabel,
} from './fitting.ts';

export interface NodeClaim extends KubernetesObject {
  readonly spec: object;
  status?: { readonly conditions?: readonly Condition[]; readonly [field: string]: unknown };
}

const capacityLabel = 'karpenter.sh/capacity-type';

export function claimFor(pod: WaitingPod, { pool, shapes }: Offer, zone: string, name: string, now: string) {
  const { nodeClassRef, taints = [] } = pool.spec.template.spec;
  const anyOf = (key: string, values: readonly string[]) => ({ key, operator: 'In', values });
  const poolName = pool.metadata.name;
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name,
      generateName: `${poolName}-`,
      labels: { [poolLabel]: poolName },
      finalizers: ['karpenter.sh/termination'],
    },
    spec: {
      nodeClassRef,
      requirements: [
        anyOf(poolLabel, [poolName]),
        anyOf(
          typeLabel,
          shapes.map(({ type }) => type),
        ),
        anyOf(capacityLabel, ['on-demand']),
        anyOf(zoneLabel, [zone]),
      ],
      taints,
      expireAfter: '720h',
      resources: { requests: { ...pod.spec.containers[0]?.resources?.requests, [gpuResource]: String(gpusOf(pod)) } },
    },
    status: {
      conditions: [awaited('Launched', 'object is awaiting reconciliation', now)],
    },
  };
}

/** The labels that a claim has as soon as there is an instance. */
export const launchedLabels = (type: string, zone: string) => ({
  [typeLabel]: type,
  [zoneLabel]: zone,
  [capacityLabel]: 'on-demand',
});

const awaited = (type: string, message: string, at: string) => ({
  type,
  status: 'Unknown',
  reason: 'AwaitingReconciliation',
  message,
  lastTransitionTime: at,
});

export const isTrue = (type: string, at: string) => ({ type, status: 'True', reason: type, lastTransitionTime: at });

/** The conditions with another one instead of that of its type, or besides. */
export const withCondition = (conditions: readonly Condition[] = [], next: Condition): readonly Condition[] => [
  ...conditions.filter(({ type }) => type !== next.type),
  next,
];

/** Why there is no instance. */
export interface Refused {
  readonly reason: 'InsufficientCapacityError' | 'NodeClassNotReady';
  readonly text: string;
}

/** @param others zones that have some */
export function noCapacity(types: readonly string[], zone: string, others: readonly string[]): Refused {
  const errors = types.map(type => {
    const elsewhere = `by not specifying an Availability Zone in your request or choosing ${others.join(', ')}.`;
    return [
      `InsufficientInstanceCapacity: We currently do not have sufficient ${type} capacity in the Availability Zone you requested (${zone}).`,
      'Our system will be working on provisioning additional capacity.',
      ...(others.length > 0 ? [`You can currently get ${type} capacity ${elsewhere}`] : []),
    ].join(' ');
  });
  const text = `creating instance, insufficient capacity, with fleet error(s), ${errors.join('; ')}`;
  return { reason: 'InsufficientCapacityError', text };
}

/** What is wrong with a class of nodes; nothing when it is ready. */
export function unready({ status }: NodeClass): Refused | undefined {
  const why = status?.conditions?.find(({ type, status }) => type === 'Ready' && status !== 'True');
  if (!why) return undefined;
  const text = `resolving ec2nodeclass, nodeClass is not ready, ${why.reason}: ${why.message}`;
  return { reason: 'NodeClassNotReady', text };
}
