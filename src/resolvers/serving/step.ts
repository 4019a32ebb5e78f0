import { reasonOf, type Step, servingPhases, stepNames, stepStates } from '../../domain.ts';
import { builder, type Context, enumValues, faces } from '../builder.ts';
import { EstimateRef } from './estimate.ts';
import { ReasonRef } from './reason.ts';
import { millisecondsOf } from './remaining.ts';

const StepNameEnum = builder.enumType('StepName', {
  description: 'The steps of a served model, in their order.',
  values: enumValues(stepNames),
});

const StepStateEnum = builder.enumType('StepState', { values: enumValues(stepStates) });

export const ServingPhaseEnum = builder.enumType('ServingPhase', {
  description: 'Where a served model is: at one of its steps, or out of them.',
  values: enumValues(servingPhases),
});

export const StepRef = builder.objectRef<Step>('Step').implement({
  description: 'One step on the way of a served model from its creation to its first answer.',
  fields: t => ({
    name: t.expose('name', { type: StepNameEnum }),
    state: t.expose('state', { type: StepStateEnum }),
    since: t.expose('since', { type: 'DateTime', nullable: true }),
    finishedAt: t.expose('finishedAt', { type: 'DateTime', nullable: true }),
    reason: t.exposeString('reason', { nullable: true, description: 'One word, such as `Unschedulable`.' }),
    explanation: t.field({
      type: ReasonRef,
      nullable: true,
      description: 'What the reason means, and what to do; null without one, and for a word that nobody described.',
      resolve: ({ reason }) => reasonOf(reason),
    }),
    message: t.exposeString('message', { nullable: true }),
    bytesCompleted: t.expose('bytesCompleted', {
      type: 'Bytes',
      nullable: true,
      description: 'Of the download.',
      extensions: faces({ omitZero: true }),
    }),
    bytesTotal: t.expose('bytesTotal', { type: 'Bytes', nullable: true, extensions: faces({ omitZero: true }) }),
    cached: t.exposeBoolean('cached', {
      nullable: true,
      description: 'Whether the weights were there already; null = unknown.',
    }),
    refusedInstanceTypes: t.exposeStringList('refusedInstanceTypes', {
      nullable: true,
      description: 'Types of machines that the cloud had none of.',
    }),
    requestedZones: t.exposeStringList('requestedZones', { nullable: true }),
    availableZones: t.exposeStringList('availableZones', { nullable: true }),
    pinnedByCache: t.exposeBoolean('pinnedByCache', {
      nullable: true,
      description: 'Whether the volume of the weights is what ties it to its zone; null = unknown.',
    }),
    typical: t.expose('typical', {
      type: EstimateRef,
      nullable: true,
      description:
        'An estimate of how long the whole step takes; null when nobody can tell, and once the model is ready.',
    }),
    elapsedSeconds: t.float({
      nullable: true,
      description: [
        'How long the step took, or has taken so far; null before it began, and when that is unknown. Of a step in progress it is',
        'as of when it was resolved: whoever shows it as it grows counts from `since`.',
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
