/** How long something takes, as far as anybody can tell beforehand. */
import { type Estimate, estimateBases } from '../../domain.ts';
import { builder, enumValues } from '../builder.ts';
import type { Remaining } from './remaining.ts';

const EstimateBasisEnum = builder.enumType('EstimateBasis', {
  description: 'What an estimate goes by.',
  values: enumValues(estimateBases, {
    published: 'Published figures of a usual serve: nothing of the kind has finished here yet.',
    learned: 'What serves of the kind took that finished here.',
    measured: 'The speed of this very download so far.',
  }),
});

const samples = 'How many serves it was learned from; 0 unless `basis` is `LEARNED`.';

export const EstimateRef = builder.objectRef<Estimate>('Estimate').implement({
  description: 'How long something usually takes: an estimate, no promise.',
  fields: t => ({
    seconds: t.exposeFloat('seconds'),
    basis: t.expose('basis', { type: EstimateBasisEnum }),
    samples: t.exposeInt('samples', { description: samples }),
  }),
});

export const RemainingRef = builder.objectRef<Remaining>('Remaining').implement({
  description: [
    'How long it still takes until a model is ready, as the sum of what its steps take: an estimate, no promise. `basis` and',
    '`samples` are those of the largest part of it.',
  ].join('\n'),
  fields: t => ({
    seconds: t.exposeFloat('seconds', { description: 'Counted from `at`, 0 or more.' }),
    basis: t.expose('basis', { type: EstimateBasisEnum }),
    samples: t.exposeInt('samples', { description: samples }),
    overdue: t.exposeBoolean('overdue', {
      description:
        'Whether the step in progress has taken longer than it usually does; what is left of it then counts as 0.',
    }),
    at: t.expose('at', {
      type: 'DateTime',
      description:
        'When it was computed. A display counts down from here: but for `serve`, no subscription sends an event because time passes.',
    }),
  }),
});
