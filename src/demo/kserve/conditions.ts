/** What the controller says of an LLMInferenceService. */

/** How far it is: its pod is not ready, or its route is not, or all of it is. */
export type ObjectStage = 'workload' | 'route' | 'ready';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  /** RFC 3339. */
  readonly lastTransitionTime: string;
}

export interface ObjectStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
  readonly url?: string;
  readonly addresses?: readonly { readonly url: string }[];
}

interface Said {
  /** Where it answers, once it is ready. */
  readonly url: string;
  /** Of the object: `<namespace>/<name>-kserve-route`. */
  readonly route?: string;
  readonly generation: number;
  /** RFC 3339. */
  readonly at: string;
  readonly before?: ObjectStatus | undefined;
}

interface Reason {
  readonly reason: string;
  readonly message: string;
}

const noReplica: Reason = {
  reason: 'MinimumReplicasUnavailable',
  message: 'Deployment does not have minimum availability.',
};

/** The status of that stage. A condition that stays as it was keeps its time. */
export function objectStatus(stage: ObjectStage, { url, route = '', generation, at, before }: Said): ObjectStatus {
  const workload = stage === 'workload' ? noReplica : undefined;
  const unrouted: Reason = {
    reason: 'HTTPRoutesNotReady',
    message: `The following HTTPRoutes are not ready: [${route}]`,
  };
  const routing = stage === 'route' ? unrouted : undefined;
  const wrong: readonly (readonly [type: string, reason: Reason | undefined])[] = [
    ['PresetsCombined', undefined],
    ['MainWorkloadReady', workload],
    ['WorkloadsReady', workload],
    ['HTTPRoutesReady', routing],
    ['RouterReady', routing],
    ['Ready', workload ?? routing],
  ];
  return {
    observedGeneration: generation,
    conditions: wrong.map(([type, reason]) =>
      keepingTime(before?.conditions, { type, status: reason ? 'False' : 'True', lastTransitionTime: at, ...reason }),
    ),
    ...(stage === 'ready' && { url, addresses: [{ url }] }),
  };
}

/** The condition; with the time of the one before it that said the same. */
export function keepingTime(before: readonly Condition[] | undefined, next: Condition): Condition {
  const known = before?.find(({ type }) => type === next.type);
  return known?.status === next.status ? { ...next, lastTransitionTime: known.lastTransitionTime } : next;
}

export const isReady = (status: ObjectStatus | undefined): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
