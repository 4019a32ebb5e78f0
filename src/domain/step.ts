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
}
