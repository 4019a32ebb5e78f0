export const stepNames = [
  'scheduling',
  'nodeStarting',
  'downloadingWeights',
  'pullingImage',
  'loading',
  'routing',
  'ready',
] as const;
type StepName = (typeof stepNames)[number];
export const stepStates = ['pending', 'inProgress', 'done', 'failed'] as const;
type StepState = (typeof stepStates)[number];
/** Where a served model is: at one of its steps, or out of them. */
export const servingPhases = [...stepNames, 'failed', 'terminating'] as const;
export type ServingPhase = (typeof servingPhases)[number];

/**
 * What a number of seconds is told from: published figures, serves that finished before, or the speed of the very thing.
 * None of them is a promise.
 */
export const estimateBases = ['published', 'learned', 'measured'] as const;
type EstimateBasis = (typeof estimateBases)[number];

/** How long something takes, as far as anybody can tell beforehand. */
export interface Estimate {
  /** 0 or more. */
  readonly seconds: number;
  readonly basis: EstimateBasis;
  /** How many finished serves it was learned from; 0 unless it was learned. */
  readonly samples: number;
}

/** One step on the way of a served model from its creation to its first answer. */
export interface Step {
  readonly name: StepName;
  readonly state: StepState;
  readonly since?: Date | undefined;
  readonly finishedAt?: Date | undefined;
  /** One word, such as `Unschedulable`. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly bytesCompleted?: number | undefined;
  readonly bytesTotal?: number | undefined;
  /** Whether the weights were there already; absent = unknown. */
  readonly cached?: boolean | undefined;
  /** Types of machines that the cloud had none of. */
  readonly refusedInstanceTypes?: readonly string[] | undefined;
  readonly requestedZones?: readonly string[] | undefined;
  readonly availableZones?: readonly string[] | undefined;
  /** Whether the volume of the weights is what ties it to its zone; absent = unknown. */
  readonly pinnedByCache?: boolean | undefined;
  /** How long the whole step takes; absent = nobody can tell. It changes when something is learned, not with time. */
  readonly typical?: Estimate | undefined;
  /** Of one in progress: by how much the clock that `since` is of is ahead of ours, in milliseconds; absent = not. */
  readonly aheadMs?: number | undefined;
}
