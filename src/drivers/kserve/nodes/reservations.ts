/** How much of a node's memory served models take. */
import { onlyPresetServing, type ServingPreset } from '../presets.ts';

/** A served model as far as it takes memory. */
export interface Served {
  /** Name of its preset, by its label. */
  readonly preset?: string | undefined;
  /** Repository of its weights. */
  readonly model?: string | undefined;
  /** Where its pod is; absent while it has none. */
  readonly node?: string | undefined;
  /** It is on its way out. */
  readonly deleting?: boolean | undefined;
}

/**
 * Bytes by node: what the presets of the models there declare. A model without a preset takes none, nor does one that is
 * being deleted. `except` is the preset that is about to be loaded, whose own object takes nothing from itself.
 */
export function reservationsOf(
  served: readonly Served[],
  presets: readonly ServingPreset[],
  except?: string | undefined,
): ReadonlyMap<string, number> {
  const bytes = new Map<string, number>();
  for (const each of served) {
    const preset = presetOf(each, presets);
    if (each.deleting || !each.node || !preset || preset.name === except) continue;
    bytes.set(each.node, (bytes.get(each.node) ?? 0) + (preset.weightsBytes ?? 0) + preset.overheadBytes);
  }
  return bytes;
}

const presetOf = ({ preset, model }: Served, presets: readonly ServingPreset[]) =>
  presets.find(({ name }) => name === preset) ?? (model ? onlyPresetServing(presets, model) : undefined);
