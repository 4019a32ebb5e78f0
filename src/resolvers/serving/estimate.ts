/** How long something takes, as far as anybody can tell beforehand. */
import { estimateBases } from '../../domain.ts';
import { builder, enumValues } from '../builder.ts';

export const EstimateBasisEnum = builder.enumType('EstimateBasis', {
  description: 'What an estimate goes by.',
  values: enumValues(estimateBases, {
    published: 'Published figures of a usual serve: nothing of the kind has finished here yet.',
    learned: 'What serves of the kind took that finished here.',
    measured: 'The speed of this very download so far.',
  }),
});
