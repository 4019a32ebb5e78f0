/** What is served, as one list: each model with where it is on its way, and how long its steps take as a rule. */
import type { LoadedModel, Step, Target } from '../../../domain.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { createKept } from '../../../live/kept.ts';
import { keepRows } from '../../../live/rows.ts';
import type { Source } from '../../../live/source.ts';
import { createEstimates, withTypicals } from '../estimates.ts';
import type { ServingPreset } from '../presets.ts';
import { deriveSeen } from '../world/seen.ts';
import type { Surroundings } from '../world.ts';
import { presetOf, type ServedModel, servedAsLoaded } from './served.ts';
import { createServes, type Serve, type Serves, type ServesOptions } from './serves.ts';

interface Options extends ServesOptions {
  readonly place: { readonly backend: string; readonly target: Target | undefined };
  /** Bytes that the cache holds in a directory, as it was last counted; undefined when nobody knows. */
  cachedBytes(directory: string): number | undefined;
  /** Told the steps of each served model that becomes ready, once. */
  readonly onServed?: ((steps: readonly Step[]) => void) | undefined;
}

/** Presets say how large weights are in round numbers: with so much of it, nothing is missing. */
const complete = 0.9;

export function loadedModels({ place, cachedBytes, onServed, ...options }: Options): Source<readonly LoadedModel[]> {
  const { world } = options;
  const estimates = createEstimates(onServed);

  /** Whether all of its weights are there, so that none have to be downloaded; undefined when nobody knows. */
  function isCached({ directory }: ServedModel, weightsBytes: number | undefined): boolean | undefined {
    const bytes = weightsBytes === undefined ? undefined : cachedBytes(directory);
    return bytes === undefined || weightsBytes === undefined ? undefined : bytes >= weightsBytes * complete;
  }

  const rowsOf = createKept<ServedRow, LoadedModel>({
    key: ({ served }) => served.name,
    from: ({ served, serve, weights, around: { presets, settings, notes } }) => {
      const guesses = () => [estimates.lessons, isCached(served, weights.weightsBytes)];
      return [served, serve, presets, settings, notes, ...(serve.timeline.phase === 'ready' ? [] : guesses())];
    },
    make: ({ served, serve, weights, around: { presets, settings, notes } }) => {
      const facts = { ...place, presets, gatewayEndpoint: settings.gatewayEndpoint };
      const { timeline, pool } = serve;
      const cached = isCached(served, weights.weightsBytes);
      const steps = withTypicals({ ...weights, pool, cached, steps: timeline.steps }, estimates);
      // Of what is ready, pods have nothing to say.
      const unknown = timeline.phase === 'ready' ? notes.served : notes.reservations;
      return servedAsLoaded(served, facts, { ...timeline, steps }, unknown);
    },
  });
  return deriveSeen<[readonly KubernetesObject[], Surroundings, Serves], readonly LoadedModel[]>(
    [world.served, world.surroundings, createServes(options)],
    ([objects, { value: around }, { value: serves }], before) => {
      if (objects.error?.code === 'not_found') return { value: before?.length === 0 ? before : [] };
      if (!around || !serves || !objects.value) return { error: objects.error };
      const known = around.served.flatMap(served => {
        const serve = serves.get(served.name);
        return serve ? [{ served, serve, around, weights: weighed(served, around.presets) }] : [];
      });
      for (const { serve, weights } of known) estimates.observe({ ...weights, ...serve, ...serve.timeline });
      return {
        value: keepRows<LoadedModel>(({ instance }) => instance ?? '')(before, rowsOf(known)),
        error: objects.error,
      };
    },
  );
}

/** What a row of the loaded list is made of. */
interface ServedRow {
  readonly served: ServedModel;
  readonly serve: Serve;
  readonly around: Surroundings;
  readonly weights: ReturnType<typeof weighed>;
}

/** What its weights are known by. */
const weighed = (served: ServedModel, presets: readonly ServingPreset[]) => {
  const preset = presetOf(served, presets);
  return { preset: preset?.name, weightsBytes: preset?.weightsBytes };
};
