import { setTimeout } from 'node:timers/promises';
import type { Call } from '../../call.ts';
import type { BackendStatus, Capabilities, LoadedModel, Model, PullProgress } from '../../domain.ts';
import { parseEndpoint } from '../../endpoint.ts';
import { backendError, invalidRequest, messageOf, modelNotFound } from '../../errors.ts';
import { agentAddressOf, hostNameOf } from '../address.ts';
import type { Driver, LoadRequest, PullRequest } from '../driver.ts';
import { healthFrom } from '../health.ts';
import { type OnRequest, oneLine } from '../http.ts';
import { endedByLeaving } from '../progress.ts';
import { createLemonadeClient } from './client.ts';
import { loadedOf, modelOf } from './model.ts';
import { canonicalName, findModel, mayBeListedAs, named } from './names.ts';
import { nodeOf } from './node.ts';
import { thinned } from './pull.ts';
import { type Health, isDownloaded } from './wire.ts';

export interface LemonadeOptions {
  readonly onRequest?: OnRequest | undefined;
  /** Stamped on every row; `lemonade` when absent. */
  readonly name?: string | undefined;
  /** Root address of the server, as the gateway dials it. */
  readonly endpoint: string;
  /** As agents dial it, with or without `/api/v1`; the endpoint when absent or blank. */
  readonly agentHost?: string | undefined;
  /** For loads that name none; only `-1` means something here. */
  readonly keepAliveDefault?: string | undefined;
  /** Milliseconds since the epoch. */
  readonly now?: (() => number) | undefined;
  /** Waits for this many milliseconds, or until the signal aborts. */
  readonly pause?: ((ms: number, signal: AbortSignal) => Promise<unknown>) | undefined;
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

/** A load holds its request until the model answers. */
const loadBudgetMs = 10 * 60_000;
/** An unload waits for the request that the model is answering; a delete tries locked files again. */
const changeBudgetMs = 60_000;
/** Pauses between looks for a model that was just downloaded: the server ends the download first and then its books. */
const confirmPausesMs = [0, 250, 1_000, 2_500];

/** A driver for one Lemonade Server. Throws `invalid_request` for an endpoint that is none. */
export function createLemonadeDriver(options: LemonadeOptions): Driver {
  const { name = 'lemonade', keepAliveDefault = '', now = Date.now } = options;
  const { pause = (ms, signal) => setTimeout(ms, undefined, { signal }) } = options;
  const checked = parseEndpoint(options.endpoint);
  if ('problem' in checked) throw invalidRequest(`endpoint of ${name} ${checked.problem}`);
  const { endpoint } = checked;
  const agentHost = agentAddressOf(options.agentHost, endpoint);
  const agentEndpoint = agentHost.endsWith('/v1') ? agentHost : `${agentHost}/api/v1`;
  const host = { backend: name, node: hostNameOf(agentHost) };
  const lemonade = createLemonadeClient(endpoint, options.onRequest);

  async function look(call: Call): Promise<BackendStatus> {
    const { status, version } = await lemonade.health(call);
    if (status === undefined || status.toLowerCase() === 'ok') return { healthy: true, version };
    return { healthy: false, version, message: `lemonade reports status ${oneLine(status, 80)}` };
  }

  async function models(call: Call, budgetMs?: number): Promise<Model[]> {
    const entries = await lemonade.models(call, budgetMs === undefined ? {} : { budgetMs });
    return entries.filter(isDownloaded).map(entry => modelOf(name, entry));
  }

  function withSizes({ loaded }: Health, listed: readonly Model[]): LoadedModel[] {
    const byName = new Map(listed.map(model => [model.name, model]));
    return loaded.map(entry => loadedOf(host, entry, byName.get(entry.model_name)));
  }

  async function loaded(call: Call): Promise<LoadedModel[]> {
    const [health, listed] = await Promise.all([
      lemonade.health(call),
      models(call).catch(error => {
        call.log.debug({ error: messageOf(error) }, 'lemonade: loaded models without their sizes');
        return [];
      }),
    ]);
    return withSizes(health, listed);
  }

  /** The server's name of a model on its disk. It would load others by downloading them, and "delete" them as well. */
  async function nameOnDisk(call: Call, reference: string, budgetMs: number): Promise<string> {
    const wanted = named(reference);
    const model = findModel(await models(call, budgetMs), wanted);
    if (!model)
      throw modelNotFound(`lemonade: ${oneLine(reference, 200)} is not among the downloaded models of ${endpoint}`);
    return model.name;
  }

  async function load(call: Call, { model, keepAlive }: LoadRequest): Promise<void> {
    const until = Date.now() + loadBudgetMs;
    // A server that is loading something else may keep this question waiting, too.
    const onDisk = await nameOnDisk(call, model, loadBudgetMs);
    const pinned = (keepAlive.trim() || keepAliveDefault.trim()) === '-1';
    await lemonade.load(call, onDisk, { pinned, budgetMs: until - Date.now() });
  }

  async function* pulled(call: Call, model: string): AsyncGenerator<PullProgress> {
    for await (const step of thinned(lemonade.pull(call, model), now)) {
      if (step.status === 'success') await confirm(call, model);
      yield step;
    }
  }

  /** Throws when the server, asked for its list, says that what it called complete is not downloaded. */
  async function confirm(call: Call, model: string): Promise<void> {
    try {
      for (const ms of confirmPausesMs) {
        if (ms > 0) await pause(ms, call.signal);
        const entries = await lemonade.models(call, { all: true });
        const entry = entries.find(({ id }) => id === model) ?? entries.find(({ id }) => mayBeListedAs(model, id));
        if (!entry) return call.log.warn({ model }, 'lemonade: the pull is complete, but the model is not listed');
        if (isDownloaded(entry)) return;
      }
    } catch (error) {
      // The download is complete by its own word; only a list that contradicts it counts.
      return call.log.debug({ model, error: messageOf(error) }, 'lemonade: could not look for the pulled model');
    }
    throw backendError(
      `lemonade: POST /api/v1/pull: complete, but ${endpoint} lists ${oneLine(model, 200)} as not downloaded`,
    );
  }

  return {
    kind: 'lemonade',
    name,
    capabilities,
    // Since 10.8 there is an eviction of idle models to opt in to; nothing shows whether it is on.
    loading: { onDemand: true, idleEviction: false },
    endpoint,
    agentEndpoint,
    canonical: canonicalName,
    find: findModel,
    agentAccess: ({ name }) => ({ protocol: 'openai', url: agentEndpoint, model: name, key: 'placeholder' }),

    describe: call => healthFrom(call, () => look(call)),
    models: call => models(call),
    loaded,
    load,
    unload: (call, model) => lemonade.unload(call, model.name, changeBudgetMs),
    async remove(call, model) {
      await lemonade.remove(call, await nameOnDisk(call, model.name, changeBudgetMs), changeBudgetMs);
    },
    pull: (call, { model }: PullRequest) => endedByLeaving(call, bound => pulled(bound, model.trim())),

    async nodes(call) {
      const [system, listed, health] = await Promise.all([
        lemonade.systemInfo(call),
        models(call),
        lemonade.health(call),
      ]);
      const facts = { backend: name, name: host.node, system, models: listed, now: now() };
      return [nodeOf({ ...facts, loaded: withSizes(health, listed) })];
    },
  };
}
