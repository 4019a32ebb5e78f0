/** Whether a pod may be started to look at the cache: one that finds no node would keep everybody waiting. */
import type { CacheLocation } from '../nodes/cacheLocation.ts';
import { isPinned } from '../nodes/cacheLocation.ts';
import { matchesSelector, type NodeView, printedSelector } from '../nodes/node.ts';
import type { KserveSettings } from '../settings.ts';

/** The nodes there are, or why nobody could tell. */
export type Nodes = { readonly nodes: readonly NodeView[] } | { readonly problem: string };

/** Why none may start; undefined when one may. `nodes` are asked for only where they count. */
export async function scanGate(
  { gpuPool }: Pick<KserveSettings, 'gpuPool'>,
  location: CacheLocation,
  nodes: () => Promise<Nodes>,
): Promise<string | undefined> {
  const { claim, state } = location;
  if (state === 'missing') return `cache claim ${claim} does not exist`;
  if (state === 'unbound') return `cache claim ${claim} is not bound yet; the first predictor binds it`;
  const selector = gpuPool?.nodeSelector;
  if (isPinned(location) || !selector) return undefined;
  const seen = await nodes();
  if ('problem' in seen) return `cannot tell whether a node of the GPU pool exists: ${seen.problem}`;
  if (seen.nodes.some(({ labels }) => matchesSelector(labels, selector))) return undefined;
  return `no node of the GPU pool (${printedSelector(selector)}) exists; a predictor brings the first`;
}
