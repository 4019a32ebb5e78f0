/** The GPUs of nodes that are taken, and those that are free. */
import { z } from 'zod';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { amountOf } from '../quantity.ts';
import type { NodeView } from './node.ts';

const amounts = z.record(z.string(), z.union([z.string(), z.number()]).transform(String)).catch({});
const container = z
  .looseObject({
    restartPolicy: z.string().optional().catch(undefined),
    resources: z.looseObject({ requests: amounts, limits: amounts }).optional().catch(undefined),
  })
  .catch({});
const containers = z.array(container).catch([]);

/** Whatever of it is not as it should be asks for nothing. */
const podView = z.looseObject({
  spec: z
    .looseObject({ nodeName: z.string().optional().catch(undefined), containers, initContainers: containers })
    .optional()
    .catch(undefined),
  status: z.looseObject({ phase: z.string().optional() }).optional().catch(undefined),
});

/**
 * Devices by node: what the pods there have asked for, until they are over. One that is being deleted has its devices until
 * it is gone, and one that still waits for its images has them already. Nodes without such a pod are missing.
 */
export function gpusTaken(pods: readonly KubernetesObject[], gpuResource: string): ReadonlyMap<string, number> {
  const taken = new Map<string, number>();
  for (const each of pods) {
    const { spec, status } = podView.parse(each);
    if (!spec?.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') continue;
    const gpus = gpusOf(spec.containers, spec.initContainers, gpuResource);
    if (gpus > 0) taken.set(spec.nodeName, (taken.get(spec.nodeName) ?? 0) + gpus);
  }
  return taken;
}

/**
 * As the scheduler counts: the containers together, or the init container that asks for more, since those run one after
 * the other before. An init container that is restarted always stays beside all that come after it.
 */
function gpusOf(main: readonly Container[], init: readonly Container[], gpuResource: string): number {
  const asked = ({ resources }: Container) =>
    Math.max(amountOf(resources?.requests[gpuResource] ?? resources?.limits[gpuResource]) ?? 0, 0);
  let beside = 0;
  let most = 0;
  for (const each of init) {
    most = Math.max(most, beside + asked(each));
    if (each.restartPolicy === 'Always') beside += asked(each);
  }
  return Math.max(
    most,
    main.map(asked).reduce((sum, gpus) => sum + gpus, beside),
  );
}

type Container = z.infer<typeof container>;

/** @param taken absent when nobody knows: then nobody knows what is free */
export function freeGpusOf(
  { name, allocatable, problem }: NodeView,
  gpuResource: string,
  taken: ReadonlyMap<string, number> | undefined,
): number | undefined {
  if (!taken || problem !== undefined) return undefined;
  return Math.max(Math.floor(amountOf(allocatable[gpuResource]) ?? 0) - (taken.get(name) ?? 0), 0);
}
