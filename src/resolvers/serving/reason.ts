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
        'Its messages, whole or in parts, with `{placeholders}`; empty where another program writes the message.',
    }),
    meaning: t.exposeString('meaning', { description: 'What has happened, in a sentence or two.' }),
    remedy: t.exposeString('remedy', { description: 'What to do about it, if anything.' }),
    from: t.exposeString('from', {
      nullable: true,
      description: 'The program whose word it is, such as `Kubernetes`; null for words of the gateway.',
    }),
  }),
});

builder.queryField('reasons', t =>
  t.field({
    type: [ReasonRef],
    description: 'Every reason why something waits, failed or does not fit, by where it shows.',
    args: { code: t.arg.string({ description: 'Only this one; nothing when there is no such reason.' }) },
    resolve: (_root, { code }) => {
      if (code === null || code === undefined) return catalogue;
      const reason = reasonOf(code);
      return reason ? [reason] : [];
    },
  }),
);
