import { type CataloguedReason, catalogue, reasonOf, reasonPlaces } from '../../domain.ts';
import { builder, enumValues } from '../builder.ts';

const ReasonPlaceEnum = builder.enumType('ReasonPlace', {
  description: 'Where a reason shows: at a step of a served model, in its status, or in another answer.',
  values: enumValues(reasonPlaces),
});

export const ReasonRef = builder.objectRef<CataloguedReason>('Reason').implement({
  description: 'Why something waits, failed or does not fit: what the word means, and what to do.',
  fields: t => ({
    code: t.exposeString('code', { description: 'The word, such as `CapacityUnavailable`.' }),
    where: t.expose('where', { type: [ReasonPlaceEnum] }),
    texts: t.exposeStringList('texts', {
      description:
        'What it says, with `{placeholders}`: messages, or parts of one. Empty where the message is that of another program.',
    }),
    meaning: t.exposeString('meaning', { description: 'In a sentence or two.' }),
    remedy: t.exposeString('remedy', { description: 'What to do about it, if anything.' }),
    from: t.exposeString('from', {
      nullable: true,
      description: 'The program whose word it is, such as `Kubernetes`; null = the gateway.',
    }),
  }),
});

builder.queryField('reasons', t =>
  t.field({
    type: [ReasonRef],
    description: 'All reasons that messages give, by where they show.',
    args: { code: t.arg.string({ description: 'That one only; nothing when nobody described it.' }) },
    resolve: (_root, { code }) => {
      if (code === null || code === undefined) return catalogue;
      const reason = reasonOf(code);
      return reason ? [reason] : [];
    },
  }),
);
