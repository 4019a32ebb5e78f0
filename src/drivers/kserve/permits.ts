/** What callers may do to models, as far as it is known before they try: by what is served, and by their rights. */
import type { Call } from '../../call.ts';
import type { Permit } from '../../domain.ts';
import { asGatewayError, GatewayError } from '../../errors.ts';
import type { Reviews } from '../../kubernetes/reviews.ts';
import type { ActedOn, ModelAction } from '../driver.ts';
import { removableDirectory } from './inventory/listing.ts';
import { presetsServing, type ServingPreset } from './presets.ts';
import { checkDownloaded } from './pull.ts';
import { checkStanding, withoutPreset } from './serving/load.ts';
import { meantBy } from './serving/unload.ts';
import { readValue } from './world/seen.ts';
import type { Surroundings, World } from './world.ts';

interface Options {
  readonly world: Pick<World, 'surroundings'>;
  readonly reviews: Reviews;
}

export const createPermits =
  ({ world, reviews }: Options) =>
  async (call: Call, action: ModelAction, model?: ActedOn): Promise<Permit> => {
    try {
      // Whoever has listed the model has seen what is around it.
      const around = world.surroundings.current?.value ?? (await readValue(world.surroundings, call));
      if (model) checkKnown(action, model, around);
      return await reviews.permit(call, [{ use: action, namespace: around.settings.namespace }]);
    } catch (error) {
      if (call.signal.aborted) throw error;
      const { message } = asGatewayError(error, call.requestId);
      const isRefusal =
        error instanceof GatewayError && ['conflict', 'invalid_request', 'not_found'].includes(error.code);
      return isRefusal ? { allowed: false, reason: message } : { allowed: undefined, reason: message };
    }
  };

/** Throws what the action would be refused with, by what is seen now. Whether a model fits is a question of its own. */
function checkKnown(
  action: ModelAction,
  model: ActedOn,
  { served, presets, presetsError }: Pick<Surroundings, 'served' | 'presets' | 'presetsError'>,
): void {
  switch (action) {
    case 'unload':
      meantBy(served, model.name);
      return;
    case 'delete':
      removableDirectory(model, served);
      return;
    case 'pull':
      checkDownloaded(model.name, presetOf(model, presets));
      return;
    case 'load': {
      const serving = presetsServing(presets, model.name);
      // Which of several is meant, who loads it says.
      const preset = presetOf(model, presets) ?? (serving.length === 1 ? serving[0] : undefined);
      if (!preset && serving.length === 0 && !presetsError) throw withoutPreset(model.name);
      const standing = preset && served.find(({ name }) => name === preset.name);
      if (preset && standing) checkStanding(standing, preset);
    }
  }
}

const presetOf = ({ preset }: ActedOn, presets: readonly ServingPreset[]) =>
  presets.find(({ name }) => name === preset);
