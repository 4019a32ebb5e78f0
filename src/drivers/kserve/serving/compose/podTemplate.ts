/** The pod template of a served model. */
import { isDeepStrictEqual } from 'node:util';
import { poolToleration } from '../../nodes/taints.ts';
import type { NamedContainer, ServingPreset, TemplateExtras, Toleration } from '../../presets/preset.ts';
import { isCpuPreset } from '../../presets.ts';
import { type KserveSettings, withoutGpus } from '../../settings.ts';

/** The container that serves. */
const mainContainer = 'main';
const chatTemplateVolume = 'chat-template';

/** On a node when one is named, else wherever selectors and tolerations let it. The preset's extras go before all else. */
export function podTemplate(preset: ServingPreset, all: KserveSettings, node: string | undefined) {
  const settings = isCpuPreset(preset) ? withoutGpus(all) : all;
  const { chatTemplate } = preset;
  const nodeSelector = {
    ...settings.nodeSelector,
    ...settings.gpuPool?.nodeSelector,
    ...preset.nodeSelector,
    ...(node && { 'kubernetes.io/hostname': node }),
  };
  const tolerations = tolerationsOf(preset, settings);
  const composed = {
    containers: [mainOf(preset, settings)],
    ...(chatTemplate && {
      volumes: [{ name: chatTemplateVolume, configMap: { name: chatTemplate.configMap } }],
    }),
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector }),
    ...(tolerations.length > 0 && { tolerations }),
    ...(settings.runtimeClass && { runtimeClassName: settings.runtimeClass }),
  };
  return overlaid(composed, preset.template ?? {});
}

function mainOf(preset: ServingPreset, { gpuResource }: KserveSettings): NamedContainer {
  const { args, env, chatTemplate } = preset;
  const resources = resourcesOf(preset, gpuResource);
  return {
    name: mainContainer,
    ...(args.length > 0 && { args }),
    ...(env.length > 0 && { env }),
    ...(Object.keys(resources).length > 0 && { resources }),
    ...(chatTemplate && {
      volumeMounts: [{ name: chatTemplateVolume, mountPath: chatTemplate.mountPath, readOnly: true }],
    }),
  };
}

/** The count of GPUs is the preset's own, whatever else it says of that resource. */
function resourcesOf(preset: ServingPreset, gpuResource: string) {
  const gpus = isCpuPreset(preset) ? {} : { [gpuResource]: String(preset.gpus) };
  const requests = { ...preset.requests, ...gpus };
  const limits = { ...preset.limits, ...gpus };
  return {
    ...(Object.keys(requests).length > 0 && { requests }),
    ...(Object.keys(limits).length > 0 && { limits }),
  };
}

/** The pool's first; none twice. */
function tolerationsOf({ tolerations }: ServingPreset, { gpuPool }: KserveSettings): readonly Toleration[] {
  const pool = poolToleration(gpuPool?.taint);
  const all = pool ? [pool, ...tolerations] : tolerations;
  return all.filter((each, index) => all.findIndex(other => isDeepStrictEqual(other, each)) === index);
}

/** Containers are laid over those of their name, and added where there is none; any other field replaces the whole. */
function overlaid(
  composed: { readonly containers: readonly NamedContainer[] },
  { containers: over, ...fields }: TemplateExtras,
) {
  const containers = new Map(composed.containers.map(each => [each.name, each]));
  for (const each of over ?? []) containers.set(each.name, { ...containers.get(each.name), ...each });
  return { ...composed, ...fields, containers: [...containers.values()] };
}
