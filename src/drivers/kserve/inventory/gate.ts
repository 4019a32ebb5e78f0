/** Whether a pod may be started to look at the cache: one that finds no node would keep everybody waiting. */
import { phrase } from '../../../domain.ts';
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
  if (state === 'missing') return phrase('claim-missing', 'missing', { claim });
  if (state === 'unbound') return phrase('claim-unbound', 'unbound', { claim });
  const selector = gpuPool?.nodeSelector;
  if (isPinned(location) || !selector) return undefined;
  const seen = await nodes();
  if ('problem' in seen) return phrase('pool-unread', 'unread', { problem: seen.problem });
  if (seen.nodes.some(({ labels }) => matchesSelector(labels, selector))) return undefined;
  return phrase('pool-empty', 'empty', { selector: printedSelector(selector) });
}
