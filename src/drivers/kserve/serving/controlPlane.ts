/** Whether anything would come of an object that is created. */
import type { Call } from '../../../call.ts';
import { asGatewayError, unavailable } from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import { apiVersionOf, type KubernetesObject } from '../../../kubernetes/resource.ts';
import type { Observation } from '../../../live/source.ts';
import { unanswered } from '../world/seen.ts';
import { controlPlaneConfig, type World } from '../world.ts';
import { llmInferenceServiceConfigs, llmInferenceServices } from './served.ts';

/** What is known of it; `problem`: why nothing is. */
export type ControlPlane = 'present' | 'no-api' | 'no-controller' | { readonly problem: string };

const version = apiVersionOf(llmInferenceServices);

/** By what is watched, which is only whether the controller is installed. */
export function controlPlaneSeen({
  value,
  error,
}: Pick<Observation<readonly KubernetesObject[]>, 'value' | 'error'>): ControlPlane {
  if (error || !value) return { problem: error?.message ?? unanswered };
  return value.length > 0 ? 'present' : 'no-controller';
}

/** Why nothing would come of an object; nothing when something would. `isDiscovered`: a discovery document is in use. */
export function whyNotReconciled(state: ControlPlane, isDiscovered: boolean): string | undefined {
  if (state === 'present') return undefined;
  if (state === 'no-api') {
    const components = 'kserve-llmisvc-crd, kserve-llmisvc-resources and kserve-runtime-configs';
    return `the LLMInferenceService API (${version}) is not served on this cluster${hint(components, isDiscovered)}`;
  }
  if (state === 'no-controller') {
    const components = 'kserve-llmisvc-resources and kserve-runtime-configs';
    return `the LLMInferenceService API is served but the llm-d controller is not installed: no LLMInferenceServiceConfig ${controlPlaneConfig} in any namespace, so nothing would reconcile a created object${hint(components, isDiscovered)}`;
  }
  return `cannot tell whether the llm-d control plane serves this cluster: ${state.problem}; the driver needs to read the ${version} API and list llminferenceserviceconfigs cluster-wide`;
}

const hint = (components: string, isDiscovered: boolean) =>
  isDiscovered
    ? `; the serving layer's discovery document is published, so its slice is most likely still landing: retry in a moment, and turn on the platform's ${components} components if this persists`
    : `; install the llm-d control plane — the platform's ${components} components`;

interface Options {
  readonly client: Pick<KubernetesClient, 'list' | 'resources'>;
  readonly world: Pick<World, 'controlPlane' | 'served' | 'configured'>;
}

/**
 * Throws `unavailable` where nothing would come of an object. What is watched is good enough to go on with, and never to
 * refuse: for that the API server is asked.
 */
export async function requireControlPlane({ client, world }: Options, call: Call): Promise<void> {
  const [configs, services] = await Promise.all([world.controlPlane.read(call), world.served.read(call)]);
  const isServed = services.value !== undefined && services.error === undefined;
  if (isServed && controlPlaneSeen(configs) === 'present') return;
  const [state, { value: configured }] = await Promise.all([
    lookAtControlPlane(client, call),
    world.configured.read(call),
  ]);
  const why = whyNotReconciled(state, configured?.isDiscovered ?? false);
  if (why) throw unavailable(why);
}

async function lookAtControlPlane(client: Options['client'], call: Call): Promise<ControlPlane> {
  const { group, version, plural } = llmInferenceServices;
  try {
    const resources = await client.resources(call, group, version);
    if (!resources.includes(plural)) return 'no-api';
    const fieldSelector = `metadata.name=${controlPlaneConfig}`;
    const { items } = await client.list(call, llmInferenceServiceConfigs, { fieldSelector });
    return items.length > 0 ? 'present' : 'no-controller';
  } catch (error) {
    if (call.signal.aborted) throw error;
    return { problem: asGatewayError(error, call.requestId).message };
  }
}
