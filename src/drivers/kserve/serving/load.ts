/** Loads: what has to be true before an object is created, in the order in which it is looked at, and the object itself. */
import { atMost, type Call } from '../../../call.ts';
import type { LoadedModel, Model, Target } from '../../../domain.ts';
import { conflict, doesNotFit, GatewayError, invalidRequest, unlessMissing } from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import type { Reflector } from '../../../kubernetes/reflector.ts';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import type { Source } from '../../../live/source.ts';
import type { FitRequest, ServePlan } from '../../driver.ts';
import type { FitQuestion } from '../fit.ts';
import { modelOfPreset } from '../inventory/listing.ts';
import type { ServingPreset } from '../presets.ts';
import type { Questions } from '../questions.ts';
import type { KserveSettings } from '../settings.ts';
import { readValue } from '../world/seen.ts';
import type { Surroundings, World } from '../world.ts';
import { accessTo } from './address.ts';
import { composeService } from './compose.ts';
import { requireControlPlane } from './controlPlane.ts';
import { isManageable, managedByWords, serviceWords } from './ownership.ts';
import { llmInferenceServices, readService, type ServedModel } from './served.ts';
import { servedAlone } from './serves/alone.ts';

interface Options {
  readonly backend: string;
  readonly target: Target | undefined;
  readonly world: World;
  readonly client: Pick<KubernetesClient, 'get' | 'list' | 'create' | 'resources'>;
  readonly questions: Pick<Questions, 'ask' | 'place'>;
  /** The watch of the objects of a namespace. */
  servicesIn(namespace: string): Pick<Reflector<KubernetesObject>, 'seen'>;
  /** What is listed and loaded, as it was last seen. */
  readonly models: Pick<Source<readonly Model[]>, 'current'>;
  readonly loaded: Pick<Source<readonly LoadedModel[]>, 'current'>;
  /** Something was created: what is counted may be outdated. */
  changed(): void;
}

/** Whatever time there is, no load waits longer for its fit than this, in milliseconds: not for a pod that looks at the cache. */
const placeMs = 10_000;

export function createLoads(options: Options) {
  const { backend, target, world, client, questions, models, loaded } = options;
  const place = { backend, target };

  const existing = (call: Call, { namespace }: KserveSettings, name: string) =>
    unlessMissing(client.get(call, llmInferenceServices, name, namespace));

  /** An object as it is listed: from the list, unless that has not got it yet. */
  function entryOf(object: KubernetesObject, around: Surroundings): LoadedModel {
    const { name } = object.metadata;
    const listed = loaded.current?.value?.find(({ resource }) => resource === name);
    return listed ?? servedAlone(object, around, place);
  }

  /** The model of a preset as it is listed, or as the preset would bring it. */
  function modelOf(preset: ServingPreset, { directory }: FitQuestion): Model {
    const listed = models.current?.value?.find(({ path }) => path === directory || path === preset.name);
    return listed ?? modelOfPreset(preset, place);
  }

  return {
    async planServe(call: Call, request: FitRequest): Promise<ServePlan> {
      if (!request.model && !request.preset) throw invalidRequest('model or preset is required');
      await requireControlPlane({ client, world }, call);
      const { question, fit } = await questions.place(atMost(call, placeMs), request, 'free');
      const { preset, repository, node } = question;
      if (!preset) throw withoutPreset(repository);
      const around = await readValue(world.surroundings, call);
      const { settings } = around;
      const plan = { model: modelOf(preset, question), preset: preset.name, fit };
      const object = await existing(call, settings, preset.name);
      if (object) {
        const served = readService(object, around);
        checkStanding(served, preset);
        return { ...plan, serving: entryOf(object, around), manifests: [], access: accessTo(served, settings) };
      }
      if (!fit.fits) throw doesNotFit(fit.reason ?? fit.model, { details: { fit } });
      const manifest = composeService(preset, settings, node);
      return { ...plan, manifests: [manifest], access: accessTo(readService(manifest, around), settings) };
    },

    async serve(call: Call, plan: ServePlan): Promise<LoadedModel> {
      const around = await readValue(world.surroundings, call);
      const { settings, presets } = around;
      let serving = plan.serving;
      for (const manifest of plan.manifests) {
        try {
          const created = await client.create(call, llmInferenceServices, manifest as KubernetesObject);
          options.changed();
          // Who loads the next model is to find what this one takes. That it is created does not depend on it.
          await options
            .servicesIn(settings.namespace)
            .seen(created, call.signal)
            .catch(() => {});
          serving = servedAlone(created, around, place);
        } catch (error) {
          // Somebody was faster.
          const object = isTaken(error) && (await existing(call, settings, plan.preset));
          const preset = presets.find(({ name }) => name === plan.preset);
          if (!object || !preset) throw error;
          checkStanding(readService(object, around), preset);
          serving = entryOf(object, around);
        }
      }
      if (!serving) throw new Error(`the plan for ${plan.preset} has nothing to create`);
      return serving;
    },
  };
}

const isTaken = (error: unknown) => error instanceof GatewayError && error.details?.reason === 'AlreadyExists';

export const withoutPreset = (repository: string) =>
  invalidRequest(
    `no serving preset serves ${repository}; presets are curated in the platform chart (components.modelServing.presets)`,
  );

/** Throws `conflict` for an object that has the name of a preset and cannot be taken for what serves it. */
export function checkStanding(served: ServedModel, preset: Pick<ServingPreset, 'model'>): void {
  if (served.deleting) {
    throw conflict(`${serviceWords(served)} is still being deleted (model ${served.model}); load it when it is gone`);
  }
  const isSame = served.model.toLowerCase() === preset.model.toLowerCase();
  if (isSame && isManageable(served)) return;
  throw conflict(`${serviceWords(served)} exists (model ${served.model}, ${managedByWords(served)})`);
}
