/** KServe: models served by LLMInferenceServices of one namespace of a cluster. Everything but the Hub is watched. */
import type { Logger } from 'pino';
import { type Call, type Caller, createCall } from '../../call.ts';
import type { KserveFlags } from '../../config/kserve.ts';
import {
  type BackendStatus,
  type Capabilities,
  type Model,
  modelKey,
  type NodeInfo,
  type Preset,
  type Step,
  type Target,
} from '../../domain.ts';
import { unavailable } from '../../errors.ts';
import type { KubernetesClient } from '../../kubernetes/client.ts';
import { apiVersionOf, type KubernetesObject, resourceName, secrets } from '../../kubernetes/resource.ts';
import { createReviews } from '../../kubernetes/reviews.ts';
import { located, type Watches } from '../../kubernetes/watches.ts';
import { passed } from '../../live/passed.ts';
import { keepRows, keepValue } from '../../live/rows.ts';
import type { Driver } from '../driver.ts';
import { type OnRequest, others } from '../http.ts';
import { discoveryNote } from './discovery.ts';
import { createDownloads } from './downloads.ts';
import { parseReference } from './hub/reference.ts';
import { createHub, type Hub } from './hub.ts';
import { createAgents } from './inventory/agent.ts';
import { findListed, modelOfPreset, removableDirectory } from './inventory/listing.ts';
import { type CacheView, createInventory } from './inventory.ts';
import { momentsOf, nodeInfos } from './nodes.ts';
import { createPermits } from './permits.ts';
import { answeredPreset, choosePreset, onlyPresetServing, type PresetList } from './presets.ts';
import { createPulls } from './pull.ts';
import { createQuestions, rulesIn } from './questions.ts';
import { accessTo } from './serving/address.ts';
import { createAnnouncer } from './serving/announcer.ts';
import { controlPlaneSeen, whyNotReconciled } from './serving/controlPlane.ts';
import { createLoads } from './serving/load.ts';
import { loadedModels } from './serving/loadedModels.ts';
import { whenServed } from './serving/readiness.ts';
import { llmInferenceServices, type ServedModel } from './serving/served.ts';
import { createUnloads } from './serving/unload.ts';
import { checkFlags, discoveryRefOf, type RegisteredKserve } from './settings.ts';
import { deriveSeen, readValue } from './world/seen.ts';
import { type Configured, createWorld, type Surroundings } from './world.ts';

export interface KserveOptions {
  readonly client: KubernetesClient;
  readonly watches: Watches;
  readonly flags: KserveFlags;
  /** What the document that registered it says; absent for the configured one. */
  readonly registered?: RegisteredKserve | undefined;
  readonly target?: Target | undefined;
  /** The namespace of this process, where it has one. */
  readonly ownNamespace?: string | undefined;
  readonly log: Logger;
  /** As whom everything is done that nobody's call asks for; the gateway itself when absent. */
  readonly caller?: Caller | undefined;
  /** The hook for the requests to one of the `others`; absent when nobody counts. */
  readonly requestsTo?: ((whom: string) => OnRequest) | undefined;
  /** Told the steps of each served model that becomes ready, once. */
  readonly onServed?: ((steps: readonly Step[]) => void) | undefined;
  /** Absent: the one of the flags. */
  readonly hub?: Hub | undefined;
}

const name = 'kserve';
const version = apiVersionOf(llmInferenceServices);
const capabilities: Capabilities = {
  pull: true,
  pullProgress: true,
  delete: true,
  load: true,
  unload: true,
  loadedModels: true,
  nodeInventory: true,
  presets: true,
  fitCheck: true,
  search: true,
};

/** Throws a `ConfigError` for flags that make no sense. */
export function createKserveDriver(options: KserveOptions): Driver {
  const { client, watches, registered, target, ownNamespace, log, caller, requestsTo, onServed } = options;
  const flags = checkFlags(options.flags);
  const discovery = discoveryRefOf(flags, registered, ownNamespace);
  const call = createCall({ log, ...(caller && { caller }) });
  const world = createWorld({ watches, call, flags, registered, discovery, log });
  const place = { backend: name, target };
  const { settings, nodesSoon, surroundings: around } = world;
  const agents = createAgents({ watches, onRequest: requestsTo?.(others.cacheAgents) });
  const inventory = createInventory({ client, watches, around, settings, nodes: nodesSoon, agents, call, ...place });
  const downloads = createDownloads({ client, watches, settings, changed: inventory.invalidate });
  const hub =
    options.hub ??
    createHub({
      endpoint: flags.hfEndpoint.replace(/\/+$/, ''),
      timeoutMs: flags.hfTimeout,
      log,
      token: readToken,
      onRequest: requestsTo?.(others.hub),
    });

  const presetsSeen = () => world.surroundings.current?.value?.presets ?? [];

  async function readToken(): Promise<string | undefined> {
    const { namespace, hub } = await readValue(world.settings, call);
    if (!hub.tokenSecret) return undefined;
    const { name, key } = hub.tokenSecret;
    const { data } = await client.get(call, secrets, name, namespace);
    const text = data?.[key];
    if (text === undefined) throw new Error(`Secret ${namespace}/${name} has no key ${key}`);
    return Buffer.from(text, 'base64').toString();
  }

  async function directoryToRemove(call: Call, model: Model): Promise<string> {
    const { served } = await readValue(world.surroundings, call);
    const directory = removableDirectory(model, served);
    await downloads.refuseDuring(call, directory);
    return directory;
  }

  function cachedBytes(directory: string): number | undefined {
    const { entries } = inventory.current?.value?.contentOn(undefined) ?? {};
    return entries && (entries.find(({ dir }) => dir === directory)?.bytes ?? 0);
  }

  const status = deriveSeen<[readonly KubernetesObject[], readonly KubernetesObject[], Configured], BackendStatus>(
    [world.served, world.controlPlane, world.configured],
    ([served, controlPlane, { value: configured }], before) => {
      const settings = configured?.settings;
      const api =
        served.error && `LLMInferenceService API not available in ${settings?.namespace}: ${served.error.message}`;
      return {
        value: keepValue(before, {
          healthy: api === undefined,
          version,
          message:
            api ??
            whyNotReconciled(controlPlaneSeen(controlPlane), configured?.isDiscovered ?? false) ??
            (configured && discoveryNote(configured.discovery, discovery)),
          gpuPool: settings?.gpuPool,
        }),
      };
    },
  );

  const presets = deriveSeen<[PresetList], readonly Preset[]>([world.presets], ([{ value, error }], before) => ({
    value:
      value &&
      keepRows<Preset>(rowName)(
        before,
        value.presets.map(each => answeredPreset(each, name, target)),
      ),
    error,
  }));

  const nodes = deriveSeen<[readonly KubernetesObject[], Surroundings, CacheView, number], readonly NodeInfo[]>(
    [world.nodes, world.surroundings, inventory, passed(world.nodes, momentsOf, client.now)],
    ([{ value, error }, { value: around }, { value: cache }], before) => {
      if (!value || !around || !cache) return { error };
      const notes = [...around.notes.reservations, ...around.notes.cache];
      const { gpusTaken } = around;
      const { countOn } = cache;
      const listed = nodeInfos(value, { ...place, ...rulesIn(around), now: client.now(), gpusTaken, countOn });
      // What is not known of a node is said with it.
      const told =
        notes.length === 0 ? listed : listed.map(node => ({ ...node, message: joined(node.message, notes) }));
      return { value: keepRows<NodeInfo>(rowName)(before, told), error };
    },
  );

  const models = deriveSeen<[readonly KubernetesObject[], Surroundings, CacheView], readonly Model[]>(
    [world.served, world.surroundings, inventory],
    ([objects, { value: around }, { value: cache }], before) => {
      if (!around || !cache) return {};
      const listed = cache.modelsWith(around);
      const error = objects.error?.code === 'not_found' ? undefined : objects.error;
      if (error && listed.length === 0) return { error };
      return { value: keepRows<Model>(modelKey)(before, listed), error };
    },
  );

  const announce = createAnnouncer({ client, call });
  const loaded = loadedModels({ world, client, watches, agents, call, announce, place, cachedBytes, onServed });

  const questions = createQuestions({
    backend: name,
    world,
    hub,
    client,
    contentOn: async (call, node) => (await inventory.read(call)).value?.contentOn(node) ?? {},
  });
  const pulls = createPulls({ questions, downloads });
  const servicesIn = (namespace: string) => watches.of(call, located(llmInferenceServices), { namespace });
  const changed = inventory.invalidate;
  const loads = createLoads({ ...place, world, client, questions, servicesIn, models, loaded, changed });
  const unloads = createUnloads({ place, world, client, inventory });

  return {
    kind: 'kserve',
    name,
    capabilities,
    loading: { onDemand: false, idleEviction: false },
    target,
    get endpoint() {
      const known = world.settings.current?.value;
      const namespace = known?.namespace ?? world.configuredBy({ state: 'missing' }).settings.namespace;
      return `${resourceName(llmInferenceServices)}/${namespace}`;
    },
    observed: { status, models, loaded, nodes, presets },

    describe: call => readValue(status, call),
    models: async call => [...(await readValue(models, call))],
    loaded: async call => [...(await readValue(loaded, call))],
    nodes: async call => [...(await readValue(nodes, call))],
    presets: async call => [...(await readValue(presets, call))],

    canonical(reference) {
      const { repository } = parseReference(reference);
      const presets = presetsSeen();
      const preset = presets.find(({ name }) => name === repository);
      // Presets that share a model have a directory each: none of them stands for it. Unseen, one is but a name.
      const model = preset && onlyPresetServing(presets, preset.model)?.model;
      return (model ?? repository).toLowerCase();
    },
    find: (models, reference) => findListed(models, parseReference(reference).repository),
    async offered(call, reference, named) {
      const { presets } = await readValue(world.presets, call);
      const preset = choosePreset(presets, { model: parseReference(reference).repository, preset: named });
      return preset && modelOfPreset(preset, place);
    },

    agentAccess(model) {
      const around = world.surroundings.current?.value;
      const served = around && servingOf(model, around.served);
      if (!served) return undefined;
      return accessTo(served, around.settings);
    },

    pullKey({ model, preset }) {
      const { repository, revision = 'main' } = parseReference(model);
      const presets = presetsSeen();
      const named = preset ?? presets.find(({ name }) => name === repository)?.name;
      const directory = named ?? onlyPresetServing(presets, repository)?.name ?? repository.toLowerCase();
      return `${directory}:${revision}`;
    },
    pull: pulls.pull,
    planPull: pulls.plan,
    async unfinished(call) {
      const { discovery } = await readValue(world.configured, call);
      // Without the document another namespace may be looked at than downloads were begun in.
      if (discovery.state === 'unreadable') throw unavailable(`discovery: ${discovery.problem}`);
      return pulls.unfinished(call);
    },
    ...loads,
    whenServed: (call, plan) => whenServed({ world, client }, call, plan),
    ...unloads,
    planRemove: async (call, model) => inventory.planRemove(call, await directoryToRemove(call, model), model.node),
    remove: async (call, model) => inventory.remove(call, await directoryToRemove(call, model), model.node),

    permit: createPermits({ world, reviews: createReviews(client) }),
    checkFit: questions.checkFit,
    explain: questions.explain,
    search: questions.search,
  };
}

const rowName = ({ name }: { readonly name: string }) => name;
const joined = (message: string | undefined, notes: readonly string[]) =>
  [message, ...notes].filter(each => each !== undefined).join('; ');

/** The object that serves a model: the one of its directory, else the first that serves its repository. */
function servingOf({ name, path }: Model, served: readonly ServedModel[]): ServedModel | undefined {
  const there = served.filter(({ deleting }) => !deleting);
  return (
    there.find(each => each.model === name && (each.name === path || each.directory === path)) ??
    there.find(each => each.model.toLowerCase() === name.toLowerCase())
  );
}
