import { encodeGlobalID } from '@pothos/plugin-relay';
import { notInTime } from '../backends/ask.ts';
import { type Backend, readSource, readValue } from '../backends/backend.ts';
import { answersInTime, patienceMs } from '../backends/patience.ts';
import {
  backendNamed,
  backendOrDefault,
  type FiledDocument,
  findBackend,
  type Registry,
} from '../backends/registry.ts';
import { noKubernetes } from '../backends/wiring.ts';
import type { Call } from '../call.ts';
import { type BackendKind, type BackendStatus, backendKinds, type Capabilities, type Loading } from '../domain.ts';
import { createCell } from '../live/cell.ts';
import { combine, derive } from '../live/derive.ts';
import { type Rows, rowsEvents } from '../live/events.ts';
import { follow } from '../live/follow.ts';
import { keepRows } from '../live/rows.ts';
import type { Observation, Source } from '../live/source.ts';
import type { WiringState } from '../wiring/wiring.ts';
import { onlyBackendArg, pageArgs } from './arguments.ts';
import { builder, type Context, type Gateway } from './builder.ts';
import { listEventType, listType, pageOf, served } from './lists.ts';
import { BackendRef, type BackendView, JobRef, LoadedModelRef, ModelRef, NodeInfoRef, PresetRef } from './refs.ts';
import { WiringInfoRef } from './serving/modelConfig.ts';
import { GpuPoolRef, TargetRef } from './serving/pool.ts';

const BackendKindEnum = builder.enumType('BackendKind', {
  description: 'What a backend runs on.',
  values: Object.fromEntries(backendKinds.map(kind => [kind.toUpperCase(), { value: kind }])) as Record<
    string,
    { value: BackendKind }
  >,
});

const BackendSourceEnum = builder.enumType('BackendSource', {
  description: 'Who registered a backend.',
  values: {
    STATIC: { value: 'static', description: 'The flags of this process.' },
    PERSON: { value: 'person', description: 'A person, by a backend document.' },
    CLUSTER_MANAGER: { value: 'cluster-manager', description: 'The cluster manager, by a backend document.' },
  } as const,
});

const KeepAliveScopeEnum = builder.enumType('KeepAliveScope', {
  description: 'What a keep-alive applies to.',
  values: {
    REQUEST: { value: 'request', description: 'Each request may set its own.' },
    SERVER: { value: 'server', description: 'One setting of the server.' },
  } as const,
});

const LoadingRef = builder.objectRef<Loading>('Loading').implement({
  description: 'How a backend brings models into memory and lets go of them.',
  fields: t => ({
    onDemand: t.exposeBoolean('onDemand', { description: 'A request for a model that is not loaded loads it.' }),
    idleEviction: t.exposeBoolean('idleEviction', { description: 'The backend evicts models nobody uses.' }),
    keepAliveDefault: t.exposeString('keepAliveDefault', {
      nullable: true,
      description: 'How long a model stays after its last use unless a load says otherwise, such as `5m`.',
    }),
    keepAliveScope: t.expose('keepAliveScope', { type: KeepAliveScopeEnum, nullable: true }),
  }),
});

/** What a backend can do, with what this process can do for it. */
interface CapabilitiesView extends Capabilities {
  readonly wire: boolean;
}

const CapabilitiesRef = builder.objectRef<CapabilitiesView>('Capabilities').implement({
  description: 'What can be done on a backend. Anything else answers `unsupported`.',
  fields: t => ({
    pull: t.exposeBoolean('pull'),
    pullProgress: t.exposeBoolean('pullProgress', { description: 'A pull reports bytes.' }),
    delete: t.exposeBoolean('delete'),
    load: t.exposeBoolean('load'),
    unload: t.exposeBoolean('unload'),
    loadedModels: t.exposeBoolean('loadedModels'),
    nodeInventory: t.exposeBoolean('nodeInventory'),
    presets: t.exposeBoolean('presets'),
    fitCheck: t.exposeBoolean('fitCheck'),
    search: t.exposeBoolean('search'),
    wire: t.exposeBoolean('wire', { description: 'Models can be wired into kagent.' }),
  }),
});

/** A server that cannot be asked is an unhealthy one, unless what we had it do keeps it from answering. */
function toStatus(
  seen: Pick<Observation<BackendStatus>, 'value' | 'error' | 'busy' | 'observedAt'> | undefined,
): BackendStatus {
  if (!seen) return { healthy: false, message: 'not looked at yet' };
  const { value, error, busy, observedAt } = seen;
  if (error || !value) return { healthy: false, message: error?.message };
  if (!busy) return value;
  return { ...value, message: `busy, it does not answer now; it was last seen at ${observedAt.toISOString()}` };
}

async function statusOf(call: Call, backend: Backend): Promise<BackendStatus> {
  return toStatus(await readSource(backend.status, call));
}

/** Status being read for a call: the thousands of rows of one answer that name the same backend read it once. */
const beingRead = new WeakMap<Call, Map<Backend, Promise<BackendStatus>>>();

function sharedStatusOf(call: Call, backend: Backend): Promise<BackendStatus> {
  const reads = beingRead.get(call) ?? new Map<Backend, Promise<BackendStatus>>();
  beingRead.set(call, reads);
  let read = reads.get(backend);
  if (!read) {
    // Not kept any longer: the call of a subscription lives on.
    read = statusOf(call, backend).finally(() => reads.delete(backend));
    reads.set(backend, read);
  }
  return read;
}

const status = async (view: BackendView, { call }: Context) =>
  view.status ?? (await sharedStatusOf(call, view.backend));

/** Whether models can be wired, where the gateway was started without that. */
const wiringIsOff = ({ wiringOff = noKubernetes }: Gateway): WiringState => ({ available: false, reason: wiringOff });

export async function wiringOf(view: BackendView, { gateway, call }: Context): Promise<WiringState> {
  if (view.wiring) return view.wiring;
  return gateway.wiring ? readValue(gateway.wiring.state, call) : wiringIsOff(gateway);
}

/** Rows of one backend; when it fails, the field fails. */
async function rowsOf<R>(source: Source<Rows<R>>, call: Call): Promise<readonly R[]> {
  const { rows, errors } = await readValue(source, call);
  if (errors[0]) throw errors[0].error;
  return rows;
}

builder.node(BackendRef, {
  description: 'A server that runs models, as this gateway knows it.',
  id: { resolve: ({ backend }) => backend.name },
  loadOne: (name, context) => backendView(context, name),
  fields: t => ({
    name: t.string({ description: 'What callers name it by.', resolve: ({ backend }) => backend.name }),
    kind: t.field({ type: BackendKindEnum, resolve: ({ backend }) => backend.driver.kind }),
    target: t.field({
      type: TargetRef,
      nullable: true,
      description: "The cluster it serves on, when that is not the gateway's own.",
      resolve: ({ backend }) => backend.driver.target,
    }),
    version: t.string({
      nullable: true,
      description: 'Version of the server, where it says.',
      resolve: async (view, _, context) => (await status(view, context)).version,
    }),
    endpoint: t.string({ description: 'As the gateway dials it.', resolve: ({ backend }) => backend.driver.endpoint }),
    agentEndpoint: t.string({
      nullable: true,
      description: 'As agents dial it.',
      resolve: ({ backend }) => backend.driver.agentEndpoint,
    }),
    healthy: t.boolean({
      description: 'Whether the server answers as what it should be.',
      resolve: async (view, _, context) => (await status(view, context)).healthy,
    }),
    message: t.string({
      nullable: true,
      description: 'Why it is not healthy, or a note.',
      resolve: async (view, _, context) => (await status(view, context)).message,
    }),
    loading: t.field({ type: LoadingRef, resolve: ({ backend }) => backend.driver.loading }),
    gpuPool: t.field({
      type: GpuPoolRef,
      nullable: true,
      description: 'The nodes its models are scheduled on, where it schedules.',
      resolve: async (view, _, context) => (await status(view, context)).gpuPool,
    }),
    source: t.field({ type: BackendSourceEnum, resolve: ({ backend }) => backend.origin }),
    capabilities: t.field({
      type: CapabilitiesRef,
      resolve: async (view, _, context) => ({
        ...view.backend.driver.capabilities,
        wire: (await wiringOf(view, context)).available,
      }),
    }),
    wiring: t.field({
      type: WiringInfoRef,
      nullable: true,
      description: 'Where its models are made known to agents; null when they are not.',
      resolve: async (view, _args, context) =>
        (await wiringOf(view, context)).available ? context.gateway.wiring?.info : undefined,
    }),
    wiringMessage: t.string({
      nullable: true,
      description: 'Why models cannot be wired, or what is known of them cannot be read; null when all is well.',
      resolve: async (view, _args, context) => (await wiringOf(view, context)).reason,
    }),
    backends: t.stringList({
      description: 'Names of all backends in order, this one among them. The first is the default.',
      resolve: (_view, _args, { gateway }) => gateway.registry.backends.map(backend => backend.name),
    }),
    models: t.field({
      type: [ModelRef],
      nullable: true,
      resolve: ({ backend }, _, { call }) => rowsOf(backend.models, call),
    }),
    loaded: t.field({
      type: [LoadedModelRef],
      nullable: true,
      description: 'Models in memory.',
      resolve: ({ backend }, _, { call }) => rowsOf(backend.loaded, call),
    }),
    nodes: t.field({
      type: [NodeInfoRef],
      nullable: true,
      description: 'Machines its models run on.',
      resolve: ({ backend }, _, { call }) => rowsOf(backend.nodes, call),
    }),
    presets: t.field({
      type: [PresetRef],
      nullable: true,
      description: 'The ways to serve models that it offers.',
      resolve: ({ backend }, _, { call }) => rowsOf(backend.presets, call),
    }),
    jobs: t.field({
      type: [JobRef],
      description: 'Long work on it, newest first.',
      resolve: ({ backend }, _, { gateway }) => gateway.jobs.store.list().filter(job => job.backend === backend.name),
    }),
  }),
});

/** The view of the backend of that name, as an edge from something it has. */
export function backendView(context: Context, name: string): BackendView | undefined {
  const backend = backendNamed(context.gateway.registry, name);
  return backend && { backend };
}

const InvalidDocument = builder.objectRef<FiledDocument>('InvalidDocument').implement({
  description: 'A backend document that registers no backend until it is mended.',
  fields: t => ({
    configMap: t.exposeString('configMap', { description: 'Name of the ConfigMap it is in.' }),
    error: t.exposeString('error', { nullable: true, description: 'What is wrong with it, after the field it is in.' }),
  }),
});

const invalidOf = ({ registered }: Registry): readonly FiledDocument[] =>
  (registered.current?.value?.documents ?? []).filter(({ error }) => error !== undefined);

const BackendList = listType('BackendList', BackendRef, 'Backends');
builder.objectField(BackendList, 'invalid', t =>
  t.field({
    type: [InvalidDocument],
    nullable: true,
    description: 'Backend documents that cannot be used, by the names of their ConfigMaps; null when there are none.',
    resolve: (_list, _args, { gateway }) => {
      const invalid = invalidOf(gateway.registry);
      return invalid.length > 0 ? invalid : null;
    },
  }),
);

builder.queryFields(t => ({
  backends: t.field({
    type: BackendList,
    description: 'All backends in order; the first is the default. One that is down is in the list, unhealthy.',
    args: pageArgs(t.arg),
    resolve: async (_root, page, { gateway, call }) => {
      const { backends } = gateway.registry;
      const rows = await answersInTime(
        backends.map(async (backend): Promise<BackendView> => ({ backend, status: await statusOf(call, backend) })),
        index => {
          const backend = backends[index] as Backend;
          return { backend, status: { healthy: false, message: notInTime(backend).message } };
        },
      );
      return pageOf({ rows, errors: [] }, page, ({ backend }) => encodeGlobalID('Backend', backend.name));
    },
  }),
  backend: t.field({
    type: BackendRef,
    nullable: true,
    description: 'One backend: the named one, else the default.',
    args: { name: t.arg.string({ description: 'Name of the backend; the default one when absent.' }) },
    resolve: (_root, { name }, { gateway }) => ({ backend: backendOrDefault(gateway.registry, name) }),
  }),
}));

const BackendsEvent = listEventType('BackendsEvent', BackendRef, 'Backends and their health');
builder.objectField(BackendsEvent, 'invalid', t =>
  t.field({
    type: [InvalidDocument],
    description: 'Backend documents that cannot be used, all of them in every event.',
    resolve: (_event, _args, { gateway }) => invalidOf(gateway.registry),
  }),
);

/** The views of backends as they come, change and go; of one backend when it is named. */
function viewsOf(gateway: Gateway, name: string | undefined): Source<Rows<BackendView>> {
  const wiring: Source<WiringState> = gateway.wiring?.state ?? createCell(wiringIsOff(gateway));
  const keep = keepRows<BackendView>(view => view.backend.name);
  // Kept over registrations: who stays did not change.
  let views: readonly BackendView[] | undefined;
  return follow(gateway.registry.registered, registered => {
    const backends = registered.backends.filter(backend => name === undefined || backend.name === name);
    const statuses = combine<BackendStatus, readonly BackendStatus[]>(
      backends.map(backend => backend.status),
      patienceMs,
      seen => seen.map(toStatus),
    );
    type Seen = [readonly BackendStatus[], WiringState];
    return derive<Seen, Rows<BackendView>>([statuses, wiring], ([health, agents]) => {
      const seen = backends.map((backend, index) => ({ backend, status: health.value?.[index], wiring: agents.value }));
      views = keep(views, seen);
      return { rows: views, errors: [] };
    });
  });
}

builder.subscriptionField('backends', t =>
  t.field({
    type: BackendsEvent,
    description: 'Backends and their health, as they are registered, change and go.',
    args: { backend: onlyBackendArg(t.arg) },
    subscribe: (_root, { backend: name }, { gateway }) => {
      const only = name?.trim() ? findBackend(gateway.registry, name)?.name : undefined;
      return served(rowsEvents(viewsOf(gateway, only), view => view.backend.name));
    },
    resolve: payload => payload,
  }),
);
