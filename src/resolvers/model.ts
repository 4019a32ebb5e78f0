import { encodeGlobalID } from '@pothos/plugin-relay';
import { deleteModel, loadModel, pullModel, unloadModel } from '../backends/actions.ts';
import { askBackends } from '../backends/ask.ts';
import { capableBackends } from '../backends/registry.ts';
import { resolveModel } from '../backends/resolve.ts';
import { type InventoryRefresh, type Job, type Model, modelKey } from '../domain.ts';
import { rowsEvents } from '../live/events.ts';
import {
  backendArg,
  deleteArgs,
  loadArgs,
  modelArg,
  onlyBackendArg,
  pageArgs,
  pullArgs,
  unloadArgs,
} from './arguments.ts';
import { backendView } from './backend.ts';
import { builder, faces } from './builder.ts';
import { jobsOf } from './job.ts';
import { findRow, followList, listEventType, listType, pageOf, readList, served } from './lists.ts';
import { BackendRef, JobRef, LoadedModelRef, ModelRef, PresetRef, placedId } from './refs.ts';
import { FitResultRef } from './serving/fit.ts';
import { ModelConfigType, WiringResultRef } from './serving/modelConfig.ts';
import { TargetRef } from './serving/pool.ts';

/** Unknown is null here and 0 in the old faces. */
const zeroWhenUnknown = faces({ whenNull: 0 });

/** The same model at two places has two ids. */
const modelId = (model: Model) => placedId({ backend: model.backend, name: modelKey(model) });

builder.node(ModelRef, {
  description: 'A model that a backend has, loaded or not.',
  id: { resolve: modelId },
  loadOne: (id, context) => findRow(context, id, 'models', modelKey),
  fields: t => ({
    name: t.exposeString('name', { description: "The backend's own spelling." }),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      resolve: (model, _, context) => backendView(context, model.backend),
    }),
    backendName: t.exposeString('backend', { description: 'Name of the backend that has it.' }),
    target: t.expose('target', { type: TargetRef, nullable: true, description: 'The cluster it is on, when another.' }),
    sizeBytes: t.expose('sizeBytes', {
      type: 'Bytes',
      nullable: true,
      description: 'Bytes on disk.',
      extensions: zeroWhenUnknown,
    }),
    digest: t.exposeString('digest', { nullable: true, description: 'Digest of the manifest, 64 hex digits.' }),
    modifiedAt: t.expose('modifiedAt', { type: 'DateTime', nullable: true }),
    format: t.exposeString('format', { nullable: true, description: 'Such as `gguf` or `safetensors`.' }),
    family: t.exposeString('family', { nullable: true }),
    parameterSize: t.exposeString('parameterSize', { nullable: true, description: 'As the backend words it: `7.6B`.' }),
    quantization: t.exposeString('quantization', { nullable: true, description: 'Such as `Q4_K_M`.' }),
    contextLength: t.exposeInt('contextLength', {
      nullable: true,
      description: 'Tokens of context it was trained for.',
    }),
    runtime: t.exposeString('runtime', { nullable: true, description: 'What runs it, where the backend has several.' }),
    capabilities: t.exposeStringList('capabilities', {
      nullable: true,
      description: '`completion`, `tools`, `vision`, `embedding`…; null where the backend does not say.',
    }),
    node: t.exposeString('node', { nullable: true, description: 'Name of the machine its files are on.' }),
    path: t.exposeString('path', { nullable: true, description: 'Where its files are.' }),
    preset: t.exposeString('preset', { nullable: true, description: 'Name of the preset it is served by.' }),
    presetObject: t.field({
      type: PresetRef,
      nullable: true,
      description: 'The preset it is served by; null when there is none, or it is not offered any more.',
      resolve: async ({ preset, backend }, _, { gateway, call }) => {
        if (preset === undefined) return undefined;
        const { rows } = await askBackends(call, capableBackends(gateway.registry, backend), 'presets');
        return rows.find(({ name }) => name === preset);
      },
    }),
    downloaded: t.exposeBoolean('downloaded', {
      nullable: true,
      description: 'Whether its files are there; null where the backend lists nothing else.',
    }),
    loaded: t.boolean({ description: 'Whether it is in memory.', resolve: model => model.running !== undefined }),
    running: t.expose('running', { type: LoadedModelRef, nullable: true, description: 'What runs of it.' }),
    modelConfig: t.expose('modelConfig', {
      type: ModelConfigType,
      nullable: true,
      description: 'What it is known to agents by.',
    }),
    fit: t.expose('fit', {
      type: FitResultRef,
      nullable: true,
      description: 'What its load was allowed by; only in the answer of that load.',
    }),
    wiring: t.expose('wiring', {
      type: WiringResultRef,
      nullable: true,
      description: 'How its load made it known to agents; only in the answer of that load.',
    }),
    jobs: t.field({
      type: [JobRef],
      description: 'Long work on it, newest first.',
      resolve: (model, _, { gateway }) => jobsOf(gateway, model),
    }),
  }),
});

const ModelList = listType('ModelList', ModelRef, 'Models');
const ModelsEvent = listEventType('ModelsEvent', ModelRef, 'Models');
const idOf = (model: Model) => encodeGlobalID('Model', modelId(model));

builder.queryFields(t => ({
  models: t.field({
    type: ModelList,
    nullable: true,
    description: 'Models of all backends, or of the named one, in backend order.',
    args: { backend: onlyBackendArg(t.arg), ...pageArgs(t.arg) },
    resolve: async (_root, { backend, ...page }, context) => {
      const backends = capableBackends(context.gateway.registry, backend);
      return pageOf(await readList(context, backends, 'models'), page, idOf);
    },
  }),
  model: t.field({
    type: ModelRef,
    nullable: true,
    description: 'The model a reference names. `conflict` when several backends have it and none is named.',
    args: { model: modelArg(t.arg), backend: backendArg(t.arg) },
    resolve: async (_root, { model, backend }, { gateway, call }) =>
      (await resolveModel(call, gateway.registry, model.trim(), backend)).model,
  }),
}));

interface PullPayload {
  readonly job: Job;
  readonly created: boolean;
}

const PullPayloadRef = builder.objectRef<PullPayload>('PullPayload').implement({
  description: 'The job that pulls.',
  fields: t => ({
    job: t.expose('job', { type: JobRef }),
    created: t.exposeBoolean('created', { description: 'False when a running pull of the same model was joined.' }),
  }),
});

const InventoryRefreshRef = builder.objectRef<InventoryRefresh>('InventoryRefresh').implement({
  description: 'Whether what is cached is being counted again.',
  fields: t => ({
    refreshing: t.exposeBoolean('refreshing'),
    reason: t.exposeString('reason', { nullable: true, description: 'Why not, when not.' }),
  }),
});

interface UnloadPayload {
  readonly backend: string;
  readonly model: string;
  readonly resources?: readonly string[] | undefined;
  readonly inventory?: InventoryRefresh | undefined;
}

const UnloadPayloadRef = builder.objectRef<UnloadPayload>('UnloadPayload').implement({
  description: 'What was unloaded.',
  fields: t => ({
    backendName: t.exposeString('backend'),
    model: t.exposeString('model', { description: 'The reference as given.' }),
    loaded: t.boolean({ description: 'False: it is on its way out of memory.', resolve: () => false }),
    resources: t.exposeStringList('resources', {
      nullable: true,
      description: 'Names of the objects that served it, all of which are being deleted; null elsewhere.',
    }),
    inventory: t.expose('inventory', { type: InventoryRefreshRef, nullable: true }),
    status: t.string({
      nullable: true,
      description: '`Terminating` where an object that serves it is being deleted; null elsewhere.',
      resolve: ({ inventory }) => (inventory ? 'Terminating' : null),
    }),
    next: t.string({
      nullable: true,
      description: 'What happens next, where the unload is not over yet.',
      resolve: ({ inventory, resources = [] }) => (inventory ? whatIsNext(resources, inventory) : null),
    }),
  }),
});

function whatIsNext(resources: readonly string[], { refreshing, reason }: InventoryRefresh): string {
  const cache = refreshing
    ? 'what is cached is being counted again'
    : `what is cached is not counted again: ${reason ?? 'nothing to count'}`;
  const [objects, go, they] =
    resources.length === 1 ? ['the object', 'is', 'it'] : [`the ${resources.length} objects`, 'are', 'they'];
  const gone = `list_loaded_models shows ${they} as Terminating until ${they} ${go} gone`;
  return `${objects} that served it ${go} being deleted (${resources.join(', ')}); ${gone}, and ${cache}`;
}

interface DeletePayload {
  readonly backend: string;
  readonly model: string;
  readonly unwired: boolean;
}

const DeletePayloadRef = builder.objectRef<DeletePayload>('DeletePayload').implement({
  description: 'What was deleted.',
  fields: t => ({
    backendName: t.exposeString('backend'),
    model: t.exposeString('model', { description: 'The reference as given.' }),
    deleted: t.boolean({ description: 'True: its files are gone.', resolve: () => true }),
    unwired: t.exposeBoolean('unwired', { description: 'Whether its wiring was to go as well.' }),
  }),
});

builder.mutationFields(t => ({
  pullModel: t.field({
    type: PullPayloadRef,
    nullable: true,
    description: [
      'Starts a download, or joins the one that runs. It answers at once; follow the job. Whether the model exists is for',
      'the backend to find out: an unknown one is a job that fails.',
    ].join('\n'),
    args: pullArgs(t.arg),
    resolve: (_root, args, { gateway, call }) => pullModel(gateway, call, args),
  }),
  loadModel: t.field({
    type: ModelRef,
    nullable: true,
    description: [
      'Brings a model into memory and answers it as it then is. A load goes on when the caller leaves; `loaded: false`',
      'says that it was still under way when the answer was due.',
    ].join('\n'),
    args: loadArgs(t.arg),
    resolve: async (_root, args, { gateway, call }) => (await loadModel(gateway, call, args)).model,
  }),
  unloadModel: t.field({
    type: UnloadPayloadRef,
    nullable: true,
    description: 'Lets go of a model. One that is not loaded stays as it is.',
    args: unloadArgs(t.arg),
    resolve: async (_root, args, { gateway, call }) => {
      const { backend, ...unloaded } = await unloadModel(gateway, call, args);
      return { backend: backend.name, model: args.model.trim(), ...unloaded };
    },
  }),
  deleteModel: t.field({
    type: DeletePayloadRef,
    nullable: true,
    description: "Removes a model's files, after unloading it.",
    args: deleteArgs(t.arg),
    resolve: async (_root, args, { gateway, call }) => {
      const { backend, unwire } = await deleteModel(gateway, call, args);
      return { backend: backend.name, model: args.model, unwired: unwire };
    },
  }),
}));

builder.subscriptionField('models', t =>
  t.field({
    type: ModelsEvent,
    description: 'Models, with what runs of them.',
    args: { backend: onlyBackendArg(t.arg) },
    subscribe: (_root, { backend }, { gateway }) =>
      served(rowsEvents(followList(gateway.registry, backend, 'models'), modelId)),
    resolve: payload => payload,
  }),
);
