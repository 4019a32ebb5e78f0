/** Asking the agents on nodes what is in the cache there. */
import type { Call } from '../../../call.ts';
import { GatewayError, unavailable } from '../../../errors.ts';
import { pods } from '../../../kubernetes/resource.ts';
import { located, type Watches } from '../../../kubernetes/watches.ts';
import {
  answerWords,
  createConnections,
  createHttp,
  documentIn,
  isSuccess,
  type OnRequest,
  oneLine,
} from '../../http.ts';
import { type Fields, isFields, textOf, timeOf, wholeNumber } from '../jobs/fields.ts';
import { type PodView, readPod } from '../jobs/pod.ts';
import type { KserveSettings } from '../settings.ts';
import { type CacheEntry, type Count, dateOf, printable, readMarker, sortedEntries } from './entry.ts';

export interface Agents {
  /** Throws a `GatewayError` that names the agent, or says that there is none. */
  count(call: Call, settings: KserveSettings, node: string | undefined): Promise<Count>;
}

interface AgentsOptions {
  readonly watches: Watches;
  readonly onRequest?: OnRequest | undefined;
}

/** They are asked again and again while something downloads, so all questions share their connections. */
export function createAgents({ watches, onRequest }: AgentsOptions): Agents {
  const connections = createConnections();
  return {
    async count(call, settings, node) {
      const pod = await findAgent(watches, call, settings, node);
      const who = `cache-agent ${pod.name} on ${pod.node ?? placeWords(node)}`;
      const endpoint = `http://${pod.ip?.includes(':') ? `[${pod.ip}]` : pod.ip}:${settings.inventory.agentPort}`;
      const http = createHttp({ kind: who, product: 'the agent', endpoint, connections, onRequest });
      const budgetMs = settings.inventory.timeout;
      const answer = await http.document(call, { method: 'GET', path: '/inventory', budgetMs });
      if (!isSuccess(answer.status)) {
        throw new GatewayError('backend_error', `${who}: HTTP ${answer.status}: ${oneLine(answer.text)}`);
      }
      const count = readInventory(documentIn(answer));
      if (!count) throw new GatewayError('backend_error', `${who}: no inventory but ${answerWords(answer)}`);
      return count;
    },
  };
}

export const placeWords = (node: string | undefined) => node ?? 'any node';

async function findAgent(watches: Watches, call: Call, settings: KserveSettings, node: string | undefined) {
  const { namespace, inventory } = settings;
  const selection = { namespace, labelSelector: inventory.agentSelector };
  const { value, error } = await watches.of(call, located(pods), selection).read(call);
  if (!value && error) throw error;
  const found = (value ?? []).map(readPod).find(pod => isReady(pod) && (node === undefined || pod.node === node));
  if (found) return found;
  throw unavailable(
    `no ready cache-agent pod on ${placeWords(node)} (pods matching "${inventory.agentSelector}" in ${namespace}): ` +
      'kserve.inventory.mode is daemonset — run the agent there, or set the mode to pod',
  );
}

const isReady = ({ ready, ip, deleting }: PodView) => ready && ip !== undefined && !deleting;

/** What an agent answered; undefined when it is no inventory. Entries that are none are left out, with a warning. */
export function readInventory(document: unknown): Count | undefined {
  if (!isFields(document) || !Array.isArray(document.entries)) return undefined;
  const entries = new Map<string, CacheEntry>();
  let strange = 0;
  for (const each of document.entries) {
    const entry = isFields(each) ? entryIn(each) : undefined;
    if (!entry) strange++;
    else if (!entries.has(entry.dir)) entries.set(entry.dir, entry);
  }
  const said = Array.isArray(document.warnings) ? document.warnings.filter(each => typeof each === 'string') : [];
  return {
    entries: sortedEntries(entries.values()),
    warnings: [
      ...said.slice(0, mostWarnings).map(each => oneLine(each, 200)),
      ...(strange > 0 ? [`${strange} entries of the agent could not be read`] : []),
    ],
  };
}

const mostWarnings = 20;

/** Agents of old do not say whether it is a model: then it is one. */
function entryIn({ dir, bytes, files, mtime, hasModel = true, marker }: Fields): CacheEntry | undefined {
  const name = textOf(dir);
  const [size, number] = [wholeNumber(bytes), wholeNumber(files)];
  if (!name || name.startsWith('.') || name.includes('/') || size === undefined || number === undefined) {
    return undefined;
  }
  const modified = timeOf(mtime);
  const read = readMarker(marker);
  return {
    dir: printable(name),
    bytes: size,
    files: number,
    mtime: modified === undefined ? undefined : dateOf(modified),
    hasModel: hasModel === true,
    ...(read && { marker: read }),
  };
}
