/** How long something takes, as far as anybody can tell beforehand. */
import { type Estimate, estimateBases } from '../../domain.ts';
import { builder, enumValues } from '../builder.ts';
import type { Remaining } from './remaining.ts';

const EstimateBasisEnum = builder.enumType('EstimateBasis', {
  description: [
    'What an estimate is told from: figures that are published of a usual serve, serves that finished before, or the speed of the',
    'very download.',
  ].join('\n'),
  values: enumValues(estimateBases),
});

const samples = 'How many finished serves it was learned from; 0 unless it was learned.';

export const EstimateRef = builder.objectRef<Estimate>('Estimate').implement({
  description: 'How long something takes as a rule. It is an estimate, and no promise.',
  fields: t => ({
    seconds: t.exposeFloat('seconds'),
    basis: t.expose('basis', { type: EstimateBasisEnum }),
    samples: t.exposeInt('samples', { description: samples }),
  }),
});

export const RemainingRef = builder.objectRef<Remaining>('Remaining').implement({
  description: [
    'How long something takes from now on, as the sum of what its steps take. It is an estimate, and no promise. Its basis is that',
    'of the largest part of it.',
  ].join('\n'),
  fields: t => ({
    seconds: t.exposeFloat('seconds', { description: 'From `at` on, 0 or more.' }),
    basis: t.expose('basis', { type: EstimateBasisEnum }),
    samples: t.exposeInt('samples', { description: samples }),
    overdue: t.exposeBoolean('overdue', {
      description: 'Whether the step in progress takes longer than it does as a rule; it then counts as 0 seconds.',
    }),
    at: t.expose('at', {
      type: 'DateTime',
      description: [
        'When it was computed. A subscription sends nothing just because time passes: whoever shows it as it shrinks counts from',
        'here.',
      ].join('\n'),
    }),
  }),
});
