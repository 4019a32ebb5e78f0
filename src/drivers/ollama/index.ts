import { readFile } from 'node:fs/promises';
import type { Call } from '../../call.ts';
import type { BackendStatus, Capabilities, LoadedModel, Model } from '../../domain.ts';
import { parseEndpoint } from '../../endpoint.ts';
import { backendError, invalidRequest, messageOf } from '../../errors.ts';
import { agentAddressOf } from '../address.ts';
import type { Driver, LoadRequest, PullRequest } from '../driver.ts';
import { healthFrom } from '../health.ts';
import { type OnRequest, readBudgetMs } from '../http.ts';
import { endedByLeaving } from '../progress.ts';
import { createOllamaClient } from './client.ts';
import { lemonadeFound } from './errors.ts';
import { parseKeepAlive } from './keepAlive.ts';
import { canonicalName, findModel, isCloudName, isNamed } from './names.ts';
import { type HostMemory, memTotalOf, nodeOf } from './node.ts';
import { isRemote, lemonadeVersion, loadedOf, looksLikeLemonade, modelOf } from './wire.ts';

export interface OllamaOptions {
  readonly onRequest?: OnRequest | undefined;
  /** Stamped on every row; `ollama` when absent. */
  readonly name?: string | undefined;
  /** Root address of the server, as the gateway dials it. */
  readonly endpoint: string;
  /** As agents dial it; the endpoint when absent or blank. */
  readonly agentHost?: string | undefined;
  /** For loads that name none, such as `5m`. */
  readonly keepAliveDefault: string;
  /** GiB, decimals allowed, as the operator wrote it; what is unusable is reported on the node. */
  readonly memoryBudgetGiB?: string | undefined;
  /** The text of `/proc/meminfo`. */
  readonly meminfo?: (() => Promise<string>) | undefined;
  /** Milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
}

const capabilities: Capabilities = {
  pull: true,
  pullProgress: true,
  delete: true,
  load: true,
  unload: true,
  loadedModels: true,
  nodeInventory: true,
  presets: false,
  fitCheck: false,
  search: false,
};

/** A load holds its request until the weights are in memory, and Ollama gives up when the client does. */
const loadBudgetMs = 10 * 60_000;
/** Unloading and deleting: quick, except on old servers and slow disks. */
const changeBudgetMs = 60_000;

/** A driver for one Ollama server. Throws `invalid_request` for an endpoint that is none. */
export function createOllamaDriver(options: OllamaOptions): Driver {
  const { name = 'ollama', keepAliveDefault, memoryBudgetGiB, now = Date.now } = options;
  const { meminfo = () => readFile('/proc/meminfo', 'utf8') } = options;
  const checked = parseEndpoint(options.endpoint);
  if ('problem' in checked) throw invalidRequest(`endpoint of ${name} ${checked.problem}`);
  const { endpoint } = checked;
  const agentEndpoint = agentAddressOf(options.agentHost, endpoint);
  const ollama = createOllamaClient(endpoint, options.onRequest);

  /** Names of stubs in the last list: a copy of a cloud model need not say in its name that it is one. */
  let stubs: ReadonlySet<string> = new Set();
  const inTheCloud = (model: string) => isCloudName(model) || stubs.has(model);

  async function loaded(call: Call): Promise<LoadedModel[]> {
    const rows = await ollama.ps(call);
    if (looksLikeLemonade(rows)) throw lemonadeFound(endpoint);
    return rows.map(row => loadedOf(name, row, now()));
  }

  /** The keep-alive as the server wants it. */
  function checkLoad({ model, keepAlive }: LoadRequest): number | string {
    const value = parseKeepAlive(keepAlive.trim() || keepAliveDefault);
    if (inTheCloud(model))
      throw invalidRequest(
        `${model} runs at ollama.com, not on this host, so there is nothing to load; requests for it work as they are`,
      );
    return value;
  }

  async function load(call: Call, request: LoadRequest): Promise<void> {
    const { model, listed } = request;
    const value = checkLoad(request);
    const until = Date.now() + loadBudgetMs;
    const embedsOnly = listed?.capabilities?.includes('embedding') && !listed.capabilities.includes('completion');
    if (!embedsOnly && (await ollama.generate(call, model, value, loadBudgetMs))) return;
    await ollama.embed(call, model, value, until - Date.now());
    const there = (await loaded(call)).some(
      row => isNamed(row.name, model) || (row.digest !== undefined && row.digest === listed?.digest),
    );
    if (!there)
      throw backendError(
        `ollama: POST /api/embed: answered, but ${model} is not among the loaded models; Ollama before 0.3.6 cannot load ` +
          'an embedding model ahead of its first request',
      );
  }

  async function unload(call: Call, model: string, budgetMs: number): Promise<void> {
    // The server would send the empty prompt on to ollama.com.
    if (inTheCloud(model)) return;
    // Old servers look at what a model can do before they look at the keep-alive.
    if (!(await ollama.generate(call, model, 0, budgetMs))) await ollama.embed(call, model, 0, budgetMs);
  }

  /** A Lemonade Server would take a pull as well, into a library that is not Ollama's. */
  async function* pull(call: Call, model: string) {
    const version = await ollama.version(call).catch(() => undefined);
    if (version === lemonadeVersion) await look(call);
    yield* ollama.pull(call, model);
  }

  async function look(call: Call): Promise<BackendStatus> {
    const version = await ollama.version(call);
    if (version === lemonadeVersion && (await ollama.tags(call).then(looksLikeLemonade, () => false)))
      throw lemonadeFound(endpoint);
    return { healthy: true, version };
  }

  async function models(call: Call): Promise<Model[]> {
    const rows = await ollama.tags(call);
    if (looksLikeLemonade(rows)) throw lemonadeFound(endpoint);
    stubs = new Set(rows.filter(isRemote).map(row => row.name));
    return rows.map(row => modelOf(name, row));
  }

  async function hostMemory(): Promise<HostMemory> {
    try {
      return memTotalOf(await meminfo());
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      return { unknown: `cannot read /proc/meminfo: ${code ?? messageOf(error)}` };
    }
  }

  return {
    kind: 'ollama',
    name,
    capabilities,
    loading: { onDemand: true, idleEviction: true, keepAliveDefault, keepAliveScope: 'request' },
    endpoint,
    agentEndpoint,
    canonical: canonicalName,
    find: findModel,
    agentAccess: ({ name }) => ({ protocol: 'ollama', url: agentEndpoint, model: name, key: 'none' }),

    describe: call => healthFrom(call, () => look(call)),
    models,
    loaded,
    checkLoad: request => void checkLoad(request),
    load,
    unload: (call, model) => unload(call, model.name, changeBudgetMs),

    async remove(call, model) {
      // Once the manifest is gone the model cannot be unloaded by name. A failure to unload does not keep it.
      await unload(call, model.name, readBudgetMs).catch(error =>
        call.log.debug({ model: model.name, error: messageOf(error) }, 'ollama: could not unload before deleting'),
      );
      await ollama.remove(call, model.name, changeBudgetMs);
    },

    pull: (call, { model }: PullRequest) => endedByLeaving(call, bound => pull(bound, model.trim())),

    async nodes(call) {
      const [rows, memory] = await Promise.all([loaded(call), hostMemory()]);
      const { arch: architecture } = process;
      return [nodeOf({ backend: name, agentHost: agentEndpoint, loaded: rows, memory, memoryBudgetGiB, architecture })];
    },
  };
}
