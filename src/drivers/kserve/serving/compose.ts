/** The LLMInferenceService that serves a preset. */

import { modelAnnotation } from '../../../kubernetes/ownership.ts';
import { apiVersionOf } from '../../../kubernetes/resource.ts';
import { directoryLabel, ownLabels, presetLabel } from '../labels.ts';
import type { ServingPreset } from '../presets.ts';
import type { KserveSettings } from '../settings.ts';
import { podTemplate } from './compose/podTemplate.ts';
import { llmInferenceServices } from './served.ts';

/**
 * As it is created, with the preset's name for its own. `node`: the only one that it is to be on, where the request named
 * one. What neither preset nor settings speak of is left to the control plane's own templates.
 */
export function composeService(preset: ServingPreset, settings: KserveSettings, node?: string | undefined) {
  const { name, model, storageUri, baseRefs } = preset;
  return {
    apiVersion: apiVersionOf(llmInferenceServices),
    kind: llmInferenceServices.kind,
    metadata: {
      name,
      namespace: settings.namespace,
      labels: {
        ...ownLabels(),
        'app.kubernetes.io/name': name,
        'app.kubernetes.io/component': 'inference',
        'app.kubernetes.io/part-of': 'agent-platform',
        [presetLabel]: name,
        [directoryLabel]: name,
      },
      annotations: { [modelAnnotation]: model },
    },
    spec: {
      model: { uri: storageUri, name: model },
      replicas: 1,
      router: { route: {}, ...((preset.scheduler ?? settings.scheduler) && { scheduler: {} }) },
      template: podTemplate(preset, settings, node),
      ...(baseRefs.length > 0 && { baseRefs }),
    },
  };
}
