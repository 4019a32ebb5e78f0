import { reasonOf, type Step, servingPhases, stepNames, stepStates } from '../../domain.ts';
import { builder, type Context, enumValues, faces } from '../builder.ts';
import { EstimateBasisEnum } from './estimate.ts';
import { ReasonRef } from './reason.ts';
import { millisecondsOf } from './remaining.ts';

const meanings = {
  scheduling: 'The first step: a pod is made, and waits for a node with room.',
  nodeStarting: 'The second: the node starts, where there was none with room.',
  downloadingWeights: 'The third: the weights come into the cache, or are there already.',
  pullingImage: 'The fourth: the image of the runtime comes to the node.',
  loading: 'The fifth: the runtime brings the weights into memory.',
  routing: 'The sixth: the gateway of the cluster gets a route to it.',
  ready: 'The last: it answers.',
};

const StepNameEnum = builder.enumType('StepName', {
  description: 'The steps of a served model, from `SCHEDULING` to `READY`.',
  values: enumValues(stepNames, meanings),
});

const StepStateEnum = builder.enumType('StepState', {
  description: 'How far a step is.',
  values: enumValues(stepStates),
});

export const ServingPhaseEnum = builder.enumType('ServingPhase', {
  description: 'Where a served model is: at one of its steps, or out of them.',
  values: enumValues(servingPhases, {
    ...meanings,
    failed: 'A step failed; it says why.',
    terminating: 'It is being unloaded.',
  }),
});

export const StepRef = builder.objectRef<Step>('Step').implement({
  description: 'One step on the way of a served model from its creation to its first answer.',
  fields: t => ({
    name: t.expose('name', { type: StepNameEnum }),
    state: t.expose('state', { type: StepStateEnum }),
    since: t.expose('since', {
      type: 'DateTime',
      nullable: true,
      description: 'When it began; null = not yet, or unknown.',
    }),
    finishedAt: t.expose('finishedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it was done; null = not yet, or unknown.',
    }),
    reason: t.exposeString('reason', {
      nullable: true,
      description: 'Why it is where it is, in one word, such as `CapacityUnavailable`.',
    }),
    explanation: t.field({
      type: ReasonRef,
      nullable: true,
      description:
        'What the reason means, and what to do; null without a reason, and for one that is not among `reasons`.',
      resolve: ({ reason }) => reasonOf(reason),
    }),
    message: t.exposeString('message', {
      nullable: true,
      description: 'The reason in a sentence, or more about the step.',
    }),
    bytesCompleted: t.expose('bytesCompleted', {
      type: 'Bytes',
      nullable: true,
      description: 'How much of the weights is there while they are downloaded, where that is counted.',
      extensions: faces({ omitZero: true }),
    }),
    bytesTotal: t.expose('bytesTotal', {
      type: 'Bytes',
      nullable: true,
      description: 'Bytes of the weights; of the download only, and known from the start.',
      extensions: faces({ omitZero: true }),
    }),
    cached: t.exposeBoolean('cached', {
      nullable: true,
      description: 'Whether the weights were there already; null = unknown.',
    }),
    refusedInstanceTypes: t.exposeStringList('refusedInstanceTypes', {
      nullable: true,
      description: 'Types of machines that the cloud had none of, while `reason` is `CapacityUnavailable`.',
    }),
    requestedZones: t.exposeStringList('requestedZones', {
      nullable: true,
      description: 'Zones in which the cloud was asked for machines.',
    }),
    availableZones: t.exposeStringList('availableZones', {
      nullable: true,
      description: 'Zones that have such machines, as the cloud says itself.',
    }),
    pinnedByCache: t.exposeBoolean('pinnedByCache', {
      nullable: true,
      description: 'Whether the volume of the cache is what ties the model to those zones; null = unknown.',
    }),
    typicalSeconds: t.float({
      nullable: true,
      description: [
        'How long the whole step usually takes: an estimate, no promise. Null when nobody can tell, and once the model is',
        'ready.',
      ].join('\n'),
      resolve: ({ typical }) => typical?.seconds,
    }),
    typicalBasis: t.field({
      type: EstimateBasisEnum,
      nullable: true,
      description: 'What that estimate goes by.',
      resolve: ({ typical }) => typical?.basis,
    }),
    elapsedSeconds: t.float({
      nullable: true,
      description: [
        'How long the step took, or has taken by now; null before it began, and when that is unknown. A display that counts on',
        'counts from `since`.',
      ].join('\n'),
      resolve: (step, _, context) => elapsedSeconds(step, context),
    }),
  }),
});

function elapsedSeconds(step: Step, { reads }: Context): number | null {
  const { since, finishedAt, state, aheadMs = 0 } = step;
  if (!since || (!finishedAt && state !== 'inProgress')) return null;
  if (finishedAt) return millisecondsOf(since, finishedAt.getTime()) / 1000;
  // Kept answers do not grow with time.
  reads?.clear();
  return millisecondsOf(since, Date.now() + aheadMs) / 1000;
}
