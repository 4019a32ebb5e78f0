/** What a fit is asked of: a preset or a repository, at a revision, perhaps on a certain node. */
import { invalidRequest, quoted } from '../../../errors.ts';
import type { FitRequest } from '../../driver.ts';
import { directoryOf, isHubUri, isRepository, parseReference } from '../hub/reference.ts';
import { choosePreset, presetsServing, type ServingPreset } from '../presets.ts';

export interface FitQuestion {
  /** As answers name it: the preset's, else the repository. */
  readonly model: string;
  readonly preset: ServingPreset | undefined;
  /** All presets that serve the model. */
  readonly presets: readonly string[];
  /** What is looked up at the Hub. */
  readonly repository: string;
  readonly revision: string;
  /** Of its weights in the cache. */
  readonly directory: string;
  /** The only node to look at. */
  readonly node: string | undefined;
}

/** Throws `invalid_request` for what is neither a repository nor a preset, and as `choosePreset` does. */
export function questionOf(presets: readonly ServingPreset[], request: FitRequest): FitQuestion {
  const model = request.model?.trim() || undefined;
  const name = request.preset?.trim() || undefined;
  const node = request.node?.trim() || undefined;
  if (!model && !name) throw invalidRequest('model or preset is required');
  const asked = model === undefined ? undefined : parseReference(model);
  const preset = choosePreset(presets, { preset: name, model: asked?.repository });
  if (preset) {
    const stored = isHubUri(preset.storageUri) ? parseReference(preset.storageUri) : undefined;
    return {
      model: preset.model,
      preset,
      presets: presetsServing(presets, preset.model).map(({ name }) => name),
      repository: stored?.repository ?? preset.model,
      revision: asked?.revision ?? stored?.revision ?? 'main',
      directory: directoryOf(preset.model, preset.name),
      node,
    };
  }
  const repository = asked?.repository ?? '';
  if (!isRepository(repository)) {
    throw invalidRequest(`${quoted(model ?? '')} is neither a Hugging Face repository (owner/name) nor a preset name`);
  }
  const directory = directoryOf(repository);
  return { model: repository, preset, presets: [], repository, revision: asked?.revision ?? 'main', directory, node };
}
