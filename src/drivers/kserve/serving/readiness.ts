/** Waits until what serves a model answers requests. */
import type { Call } from '../../../call.ts';
import type { AgentAccess } from '../../../domain.ts';
import {
  asGatewayError,
  backendError,
  GatewayError,
  messageOf,
  modelNotFound,
  unlessMissing,
} from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { unlessAborted } from '../../../live/source.ts';
import type { ServePlan } from '../../driver.ts';
import type { KserveSettings } from '../settings.ts';
import { formatDuration } from '../units.ts';
import { readValue } from '../world/seen.ts';
import type { World } from '../world.ts';
import { accessTo } from './address.ts';
import { serviceWords } from './ownership.ts';
import { llmInferenceServices, readService } from './served.ts';

interface Options {
  readonly world: Pick<World, 'served' | 'settings'>;
  readonly client: Pick<KubernetesClient, 'get'>;
}

/**
 * The watch tells. Where it fails, or does not show the object, the object itself is asked for every poll interval: a watch
 * may be behind, so only that says that the object is gone.
 */
export async function whenServed({ world, client }: Options, call: Call, plan: ServePlan): Promise<AgentAccess> {
  const settings = await readValue(world.settings, call);
  const { namespace, readyTimeout, pollInterval } = settings;
  const name = plan.preset;
  const ends = Date.now() + readyTimeout;
  let changed = Promise.withResolvers<void>();
  const unsubscribe = world.served.subscribe(() => {
    changed.resolve();
    changed = Promise.withResolvers();
  });

  /** The object as it is watched; undefined where the watch does not show it as it is now. */
  function watched(): KubernetesObject | undefined {
    const { value, error } = world.served.current ?? {};
    if (isRefusal(error)) throw error;
    return error ? undefined : value?.find(({ metadata }) => metadata.name === name);
  }

  async function asked(): Promise<KubernetesObject | undefined> {
    try {
      const object = await unlessMissing(client.get(call, llmInferenceServices, name, namespace));
      if (!object) throw modelNotFound(`${serviceWords({ namespace, name })} is gone`);
      return object;
    } catch (error) {
      const failure = asGatewayError(error, call.requestId);
      if (call.signal.aborted || isRefusal(failure) || failure.code === 'not_found') throw error;
      // The next look may be luckier.
      return undefined;
    }
  }

  try {
    for (;;) {
      const news = changed.promise;
      const object = watched() ?? (await asked());
      const access = object && accessWhenReady(object, settings);
      if (access) return access;
      const left = ends - Date.now();
      if (left <= 0) throw backendError(`${plan.model.name} is not ready after ${formatDuration(readyTimeout)}`);
      await passing(news, Math.min(left, pollInterval), call.signal);
    }
  } catch (error) {
    if (call.signal.aborted || !isRefusal(error)) throw error;
    throw waitingRefused(plan.model.name, error);
  } finally {
    unsubscribe();
  }
}

function accessWhenReady(object: KubernetesObject, settings: KserveSettings): AgentAccess | undefined {
  const served = readService(object, { presets: [], settings });
  return served.ready === 'True' && !served.deleting ? accessTo(served, settings) : undefined;
}

const isRefusal = (error: unknown) =>
  error instanceof GatewayError && (error.code === 'unauthenticated' || error.code === 'forbidden');

const waitingRefused = (model: string, cause: unknown) =>
  backendError(
    `waiting for ${model} to become ready: ${messageOf(cause)}; the serving object keeps starting — the loaded models list shows its state and wire_model wires it once Ready`,
    { cause },
  );

/** Resolves with the news, and after so many milliseconds without any. */
async function passing(news: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  const time = Promise.withResolvers<void>();
  const timer = setTimeout(time.resolve, ms);
  await unlessAborted(Promise.race([news, time.promise]), signal).finally(() => clearTimeout(timer));
}
