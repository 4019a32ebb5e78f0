/** The serving presets of a cluster: all there are, the one a request means, and as they are answered. */
import { z } from 'zod';
import type { Preset, Target } from '../../domain.ts';
import { invalidRequest, modelNotFound, quoted } from '../../errors.ts';
import type { KubernetesObject } from '../../kubernetes/resource.ts';
import { parsePreset, type ServingPreset } from './presets/preset.ts';

export { isCpuPreset, isModelImage, type ServingPreset } from './presets/preset.ts';

export interface PresetList {
  /** By name. */
  readonly presets: readonly ServingPreset[];
  /** One sentence for every ConfigMap that was skipped. */
  readonly warnings: readonly string[];
}

const sourceLabel = 'agent-platform.giantswarm.io/preset-source';
const key = 'preset.yaml';

/** Whatever of it is no text is as good as not there. */
const published = z.looseObject({
  data: z.looseObject({ [key]: z.string().optional().catch(undefined) }).catch({}),
  metadata: z.looseObject({
    labels: z.looseObject({ [sourceLabel]: z.string().optional().catch(undefined) }).catch({}),
  }),
});

/** The presets in ConfigMaps. A broken one costs itself alone; of two with one name the first ConfigMap's counts. */
export function presetsIn(
  configMaps: readonly KubernetesObject[],
  { defaultOverheadBytes }: { readonly defaultOverheadBytes: number },
): PresetList {
  const presets = new Map<string, ServingPreset>();
  const warnings: string[] = [];
  for (const configMap of configMaps.toSorted((a, b) => byCode(a.metadata.name, b.metadata.name))) {
    const { data, metadata } = published.parse(configMap);
    const yaml = data[key];
    const source = metadata.labels[sourceLabel];
    const read =
      yaml === undefined ? { problem: `no ${key} key` } : parsePreset(yaml, { source, defaultOverheadBytes });
    const taken = 'value' in read && presets.has(read.value.name);
    const problem = taken
      ? `another one has the preset ${read.value.name}`
      : 'problem' in read
        ? read.problem
        : undefined;
    if (problem) warnings.push(`skipping preset ConfigMap ${nameOf(configMap)}: ${problem}`);
    else if ('value' in read) presets.set(read.value.name, read.value);
  }
  return { presets: [...presets.values()].toSorted((a, b) => byCode(a.name, b.name)), warnings };
}

const byCode = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
const nameOf = ({ metadata: { namespace, name } }: KubernetesObject) => (namespace ? `${namespace}/${name}` : name);

/** The presets that serve a repository, whatever the case of its letters. */
export function presetsServing(presets: readonly ServingPreset[], repository: string): ServingPreset[] {
  const wanted = repository.toLowerCase();
  return presets.filter(({ model }) => model.toLowerCase() === wanted);
}

/** The preset that serves a repository, if it is the only one. */
export function onlyPresetServing(presets: readonly ServingPreset[], repository: string): ServingPreset | undefined {
  const serving = presetsServing(presets, repository);
  return serving.length === 1 ? serving[0] : undefined;
}

export interface PresetChoice {
  readonly preset?: string | undefined;
  /** A repository without its revision, or the name of a preset. */
  readonly model?: string | undefined;
}

/**
 * The preset that a request means; nothing when no preset serves its model. Throws `not_found` for a preset there is not,
 * `invalid_request` for one that serves another model, and where several could be meant.
 */
export function choosePreset(
  presets: readonly ServingPreset[],
  { preset, model }: PresetChoice,
): ServingPreset | undefined {
  if (preset !== undefined) {
    const named = presets.find(({ name }) => name === preset);
    if (!named) {
      const available = presets.map(({ name }) => name).join(', ') || 'none';
      throw modelNotFound(`preset ${quoted(preset)} not found (available: ${available})`);
    }
    if (model !== undefined && model !== named.name && model.toLowerCase() !== named.model.toLowerCase()) {
      throw invalidRequest(`preset ${quoted(preset)} serves ${named.model}, not ${model}`);
    }
    return named;
  }
  if (model === undefined) return undefined;
  const named = presets.find(({ name }) => name === model);
  if (named) return named;
  const serving = presetsServing(presets, model);
  if (serving.length > 1) {
    const names = serving.map(({ name }) => name).join(', ');
    throw invalidRequest(`${serving.length} presets serve ${model} (${names}); pass preset to choose one`);
  }
  return serving[0];
}

/** A preset as the gateway answers it. */
export const answeredPreset = (preset: ServingPreset, backend: string, target: Target | undefined): Preset => ({
  backend,
  target,
  name: preset.name,
  displayName: preset.displayName,
  description: preset.description,
  source: preset.source,
  model: preset.model,
  storageUri: preset.storageUri,
  format: preset.format,
  contextLength: preset.contextLength,
  capabilities: preset.capabilities.length > 0 ? preset.capabilities : undefined,
  license: preset.license,
  gpus: preset.gpus,
  weightsBytes: preset.weightsBytes ?? 0,
  overheadBytes: preset.overheadBytes,
  args: preset.args.length > 0 ? preset.args : undefined,
  nodeSelector: Object.keys(preset.nodeSelector).length > 0 ? preset.nodeSelector : undefined,
  chatTemplate: preset.chatTemplate?.configMap,
});

/** What a preset says of the model that it serves; nothing without one. */
export const detailsOf = (preset: ServingPreset | undefined) => ({
  preset: preset?.name,
  format: preset?.format,
  contextLength: preset?.contextLength,
  capabilities: preset && preset.capabilities.length > 0 ? preset.capabilities : undefined,
});
