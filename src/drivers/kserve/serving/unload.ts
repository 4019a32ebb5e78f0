/** Unloads: which objects are meant, and that they go. */
import { atMost, type Call } from '../../../call.ts';
import { asGatewayError, conflict, GatewayError, messageOf, modelNotFound, unlessMissing } from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import { until } from '../../../live/until.ts';
import type { Unserved, UnservePlan } from '../../driver.ts';
import { parseReference } from '../hub/reference.ts';
import type { Inventory } from '../inventory.ts';
import { readValue } from '../world/seen.ts';
import type { World } from '../world.ts';
import { isManageable, managedByWords, serviceWords } from './ownership.ts';
import { llmInferenceServices, type ServedModel, servedModels } from './served.ts';
import { servedAlone } from './serves/alone.ts';

interface Options {
  readonly place: Parameters<typeof servedAlone>[2];
  readonly world: Pick<World, 'surroundings' | 'served'>;
  readonly client: Pick<KubernetesClient, 'get' | 'list' | 'remove'>;
  readonly inventory: Pick<Inventory, 'unloaded' | 'rescan'>;
}

/** How long a deletion waits to be seen by those who watch, in milliseconds. */
const echoMs = 1_000;

export function createUnloads({ place, world, client, inventory }: Options) {
  async function servedNow(call: Call) {
    const { settings, presets } = await readValue(world.surroundings, call);
    const { namespace, gpuResource } = settings;
    const { items } = await client.list(call, llmInferenceServices, { namespace });
    return {
      settings,
      presets,
      objects: items,
      served: servedModels({ objects: items, pods: [], presets, gpuResource }),
    };
  }

  return {
    async planUnserve(call: Call, reference: string): Promise<UnservePlan> {
      const { objects, served, ...around } = await servedNow(call);
      const meant = new Set(meantBy(served, reference).map(({ name }) => name));
      const going = objects.filter(({ metadata }) => meant.has(metadata.name));
      const { namespace } = around.settings;
      return {
        serving: going.map(object => servedAlone(object, around, place)),
        objects: going.map(({ metadata: { name, uid = '' } }) => ({ namespace, name, uid })),
      };
    },

    async unserve(call: Call, { serving, objects }: UnservePlan): Promise<Unserved> {
      const { served } = await readValue(world.surroundings, call);
      const ended = await Promise.allSettled(objects.map(object => remove(call, object)));
      const gone = serving.filter((_, at) => ended[at]?.status === 'fulfilled');
      const names = gone.map(({ resource = '' }) => resource);
      const failures = ended.flatMap((each, at) =>
        each.status === 'rejected' ? [{ name: serving[at]?.resource ?? '', error: each.reason as unknown }] : [],
      );
      if (names.length === 0) throw leftBehind(failures, names);
      for (const name of names) {
        const directory = served.find(each => each.name === name)?.directory ?? name;
        // What is on record is nobody's wait, and it never rejects.
        void inventory.unloaded(call, { name, directory });
      }
      await untilSeen(call, names);
      const failure = failures.length > 0 ? asGatewayError(leftBehind(failures, names), call.requestId) : undefined;
      return { gone, failure, inventory: await inventory.rescan(call) };
    },
  };

  async function remove(call: Call, { namespace, name, uid }: UnservePlan['objects'][number]): Promise<void> {
    try {
      await client.remove(call, llmInferenceServices, name, namespace, { uid }, 'Foreground');
    } catch (error) {
      if (!(await isGoing(call, name, namespace, error))) throw error;
    }
  }

  /** An answer that was lost, or that came from in between, does not say that nothing was done. */
  async function isGoing(call: Call, name: string, namespace: string, error: unknown): Promise<boolean> {
    const isUncertain = error instanceof GatewayError && ['unavailable', 'backend_error'].includes(error.code);
    if (!isUncertain || call.signal.aborted) return false;
    try {
      const object = await unlessMissing(client.get(call, llmInferenceServices, name, namespace));
      return object?.metadata.deletionTimestamp !== undefined || object === undefined;
    } catch {
      // The failure of the deletion says more.
      return false;
    }
  }

  /** Who reads next sees them going. That they are does not depend on it. */
  async function untilSeen(call: Call, gone: readonly string[]): Promise<void> {
    const { signal } = atMost(call, echoMs);
    await until(
      world.served,
      objects =>
        objects.every(({ metadata }) => !gone.includes(metadata.name) || metadata.deletionTimestamp !== undefined),
      { ms: echoMs, signal },
    ).catch(() => {});
  }
}

/**
 * The objects that a reference means: those of a model, of a preset, or the one of that name. Throws `not_found` for none,
 * and `conflict` when one of them is somebody else's.
 */
export function meantBy(served: readonly ServedModel[], reference: string): readonly ServedModel[] {
  const model = parseReference(reference).repository.toLowerCase();
  const meant = served.filter(
    each => each.model.toLowerCase() === model || each.name === reference || each.preset === reference,
  );
  if (meant.length === 0) throw modelNotFound(`no LLMInferenceService serves ${reference}`);
  const foreign = meant.find(each => !isManageable(each));
  if (foreign) {
    throw conflict(
      `${serviceWords(foreign)} was not created from a serving preset (${managedByWords(foreign)}); delete it where it was created`,
    );
  }
  return meant;
}

/** As the first of the failures, with which of the objects are left and which are not. */
function leftBehind(failures: readonly { readonly name: string; readonly error: unknown }[], gone: readonly string[]) {
  const error = failures[0]?.error;
  if (!(error instanceof GatewayError) || failures.length + gone.length === 1) return error;
  const left = failures.map(({ name, error }) => `${name} is not deleted: ${messageOf(error)}`);
  const others = gone.map(name => `${name} is being deleted`);
  return new GatewayError(error.code, [...left, ...others].join('; '), { cause: error });
}
