import type { LoadedModel } from '../../domain.ts';
import { derive } from '../../live/derive.ts';
import type { Failure, LiveEvent, Rows } from '../../live/events.ts';
import { keepValue } from '../../live/rows.ts';
import type { Observation } from '../../live/source.ts';
import { ticking } from '../../live/ticking.ts';
import { type Watch, watch } from '../../live/watch.ts';
import { backendArg, modelArg } from '../arguments.ts';
import { builder } from '../builder.ts';
import { FailureRef, followList, served } from '../lists.ts';
import { LoadedModelRef } from '../refs.ts';

/** What a subscriber of a serve is sent. */
interface ServePayload {
  readonly revision: number;
  readonly observedAt: Date;
  readonly serve: LoadedModel | undefined;
  readonly removed: boolean;
  readonly errors: readonly Failure[];
}

const ServeEventRef = builder.objectRef<ServePayload>('ServeEvent').implement({
  description: 'One served model as it then is, whole: there is nothing to merge.',
  fields: t => ({
    revision: t.expose('revision', { type: 'Revision', description: 'Grows with every event.' }),
    observedAt: t.expose('observedAt', {
      type: 'DateTime',
      description: "When this was so, by the server's clock: what to compare the times of steps with.",
    }),
    serve: t.expose('serve', {
      type: LoadedModelRef,
      nullable: true,
      description: 'The model on its way; null before anything serves it.',
    }),
    removed: t.exposeBoolean('removed', { description: 'What served the model is gone; `serve` is what it last was.' }),
    errors: t.field({
      type: [FailureRef],
      description: 'Backends that cannot answer at the moment: until they can, `serve` is what it last was.',
      resolve: ({ errors }) => errors,
    }),
  }),
});

/** While a model is on its way, time itself is news: that much, in milliseconds. */
const tickMs = 1_000;

interface Seen {
  readonly serve: LoadedModel | undefined;
  readonly errors: readonly Failure[];
}

builder.subscriptionField('serve', t =>
  t.field({
    type: ServeEventRef,
    description: [
      'One served model on its way to its first answer: first as it is, then after each change, and every second until it is',
      'ready or has failed. It can be followed before it is loaded. It goes on after the model is gone, for its next load.',
    ].join('\n'),
    args: {
      model: modelArg(t.arg, 'What serves it, its preset, or the model itself: the name of any of them.'),
      backend: backendArg(t.arg),
    },
    subscribe: (_root, { model, backend }, { gateway }) => {
      const loaded = followList(gateway.registry, backend, 'loaded', 'loadedModels');
      const seen = derive<[Rows<LoadedModel>], Seen>([loaded], ([{ value }], before) => {
        const serve = findServe(value?.rows ?? [], model.trim());
        const errors = keepValue(before?.errors, value?.errors ?? []);
        return before?.serve === serve && before?.errors === errors ? before : { serve, errors };
      });
      return served(serveEvents(watch(ticking(seen, tickMs, ({ serve }) => serve !== undefined && isOnItsWay(serve)))));
    },
    resolve: payload => payload,
  }),
);

/** The object of that name, else what serves that preset or that model: what stays before what goes, then the latest. */
function findServe(rows: readonly LoadedModel[], reference: string): LoadedModel | undefined {
  const wanted = reference.toLowerCase();
  const named = [
    ({ resource, instance }: LoadedModel) => resource === reference || instance === reference,
    ({ preset }: LoadedModel) => preset === reference,
    ({ name }: LoadedModel) => name.toLowerCase() === wanted,
  ];
  for (const isMeant of named) {
    const found = rows.filter(isMeant);
    const staying = found.filter(({ phase }) => phase !== 'terminating');
    const best = (staying.length > 0 ? staying : found).toSorted((a, b) => startOf(a) - startOf(b)).at(-1);
    if (best) return best;
  }
  return undefined;
}

const startOf = ({ steps }: LoadedModel) => steps?.[0]?.since?.getTime() ?? 0;

const isOnItsWay = ({ phase }: LoadedModel) => phase !== undefined && phase !== 'ready' && phase !== 'failed';

function serveEvents(states: Watch<Observation<Seen>>): Watch<LiveEvent<ServePayload>> {
  let last: LoadedModel | undefined;
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      const state = await states.next();
      if (state.done) return state;
      const { revision, value } = state.value;
      const { serve, errors = [] } = value ?? {};
      const removed = serve === undefined && last !== undefined && errors.length === 0;
      // What nobody has changed since was seen long ago, and still is so: a watch lasts.
      const payload = { revision, observedAt: new Date(), serve: serve ?? last, removed, errors };
      // Another of the same name is another serve.
      last = serve ?? (removed ? undefined : last);
      return { done: false, value: { snapshot: payload, changes: payload } };
    },
    return: states.return,
  };
}
