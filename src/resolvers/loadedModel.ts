import { encodeGlobalID } from '@pothos/plugin-relay';
import { askBackends } from '../backends/ask.ts';
import { type Backend, loadedKey } from '../backends/backend.ts';
import { capableBackends } from '../backends/registry.ts';
import { wiredOnRead } from '../backends/wireOnRead.ts';
import type { LoadedModel } from '../domain.ts';
import { rowsEvents } from '../live/events.ts';
import { onlyBackendArg, pageArgs } from './arguments.ts';
import { backendView } from './backend.ts';
import { builder, type Context, faces } from './builder.ts';
import { findRow, followList, listEventType, listType, pageOf, readList, served } from './lists.ts';
import { BackendRef, LoadedModelRef, ModelRef, placedId } from './refs.ts';
import { EstimateBasisEnum } from './serving/estimate.ts';
import { ModelConfigType, WiringResultRef } from './serving/modelConfig.ts';
import { TargetRef } from './serving/pool.ts';
import { remaining } from './serving/remaining.ts';
import { ServingPhaseEnum, StepRef } from './serving/step.ts';

function estimateOf({ phase, steps = [] }: LoadedModel, { reads }: Context) {
  const left = phase === 'terminating' ? undefined : remaining(steps, Date.now());
  // Kept answers do not shrink with time.
  if (left) reads?.clear();
  return left;
}

/** Copies of one model have ids of their own. */
const loadedId = (loaded: LoadedModel) => placedId({ backend: loaded.backend, name: loadedKey(loaded) });

builder.node(LoadedModelRef, {
  description: 'A model in memory, or on its way there.',
  id: { resolve: loadedId },
  loadOne: (id, context) => findRow(context, id, 'loaded', loadedKey),
  fields: t => ({
    name: t.exposeString('name', { description: "The backend's own spelling." }),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      resolve: (loaded, _, context) => backendView(context, loaded.backend),
    }),
    backendName: t.exposeString('backend', { description: 'Name of the backend that runs it.' }),
    instance: t.exposeString('instance', {
      nullable: true,
      description: 'Which of several copies of the model this is, on backends that may hold more than one.',
    }),
    model: t.field({
      type: ModelRef,
      nullable: true,
      description: 'The model on disk; null when it was deleted while loaded.',
      resolve: async (loaded, _, { gateway, call }) => {
        const { rows } = await askBackends(call, capableBackends(gateway.registry, loaded.backend), 'models');
        return rows.find(model => model.name === loaded.name);
      },
    }),
    target: t.expose('target', { type: TargetRef, nullable: true, description: 'The cluster it is on, when another.' }),
    sizeBytes: t.expose('sizeBytes', {
      type: 'Bytes',
      nullable: true,
      description: 'Bytes of memory it takes: weights, caches and buffers.',
      extensions: faces({ whenNull: 0 }),
    }),
    digest: t.exposeString('digest', { nullable: true }),
    vramBytes: t.expose('vramBytes', {
      type: 'Bytes',
      nullable: true,
      description: 'The part of `sizeBytes` on accelerators; 0 when it runs on the CPU.',
      extensions: faces({ omitZero: true }),
    }),
    contextLength: t.exposeInt('contextLength', {
      nullable: true,
      description: 'Tokens of context it was started with.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the backend evicts it unless it is used; null = never, or unknown.',
    }),
    endpoint: t.exposeString('endpoint', { nullable: true, description: 'Where it answers requests.' }),
    node: t.exposeString('node', { nullable: true, description: 'Name of the machine it runs on.' }),
    status: t.exposeString('status', {
      nullable: true,
      description: "`loaded` once it is there, `stopping` on its way out, else the backend's word.",
    }),
    reason: t.exposeString('reason', { nullable: true }),
    message: t.exposeString('message', { nullable: true }),
    device: t.exposeString('device', { nullable: true, description: '`npu`, `gpu`, `cpu`, where the backend says.' }),
    pinned: t.exposeBoolean('pinned', { nullable: true, description: 'Kept until unloaded.' }),
    preset: t.exposeString('preset', { nullable: true }),
    resource: t.exposeString('resource', { nullable: true, description: 'The Kubernetes object that serves it.' }),
    kind: t.exposeString('kind', { nullable: true, description: 'Kind of that object: `LLMInferenceService`.' }),
    gpus: t.exposeInt('gpus', {
      nullable: true,
      description: 'GPUs it asked for.',
      extensions: faces({ omitZero: true }),
    }),
    managedBy: t.exposeString('managedBy', { nullable: true, description: 'What made that object.' }),
    phase: t.expose('phase', {
      type: ServingPhaseEnum,
      nullable: true,
      description: 'The step it is at, or that it has failed or is going; null where models are not served in steps.',
    }),
    steps: t.expose('steps', {
      type: [StepRef],
      nullable: true,
      description: 'All steps in their order, those to come as pending.',
    }),
    remainingSeconds: t.float({
      nullable: true,
      description: [
        'How long it still takes until the model is ready, as the sum of what its steps take: an estimate, no promise. Null when',
        'it is ready, has failed, crashes or is going, and when nobody can tell.',
      ].join('\n'),
      resolve: (loaded, _, context) => estimateOf(loaded, context)?.seconds,
    }),
    remainingBasis: t.field({
      type: EstimateBasisEnum,
      nullable: true,
      description: 'What the largest part of that estimate goes by.',
      resolve: (loaded, _, context) => estimateOf(loaded, context)?.basis,
    }),
    modelConfig: t.expose('modelConfig', {
      type: ModelConfigType,
      nullable: true,
      description: 'What it is known to agents by.',
    }),
    wiring: t.expose('wiring', {
      type: WiringResultRef,
      nullable: true,
      description: 'How this look made it known to agents, when it did.',
    }),
  }),
});

const LoadedModelList = listType('LoadedModelList', LoadedModelRef, 'Models in memory');
const LoadedModelsEvent = listEventType('LoadedModelsEvent', LoadedModelRef, 'Models in memory');
const idOf = (loaded: LoadedModel) => encodeGlobalID('LoadedModel', loadedId(loaded));

/** The same with what is served and agents did not know: reading makes it known to them. */
async function knownToAgents(context: Context, backends: readonly Backend[], rows: readonly LoadedModel[]) {
  const { gateway, call, reads } = context;
  const answers = backends.map(async backend => {
    const own = rows.filter(row => row.backend === backend.name);
    const wired = await wiredOnRead(gateway, call, backend, own);
    // What was written for it does not follow from what was observed.
    if (wired !== own) reads?.clear();
    return wired;
  });
  return (await Promise.all(answers)).flat();
}

builder.queryField('loadedModels', t =>
  t.field({
    type: LoadedModelList,
    nullable: true,
    description: 'Models in memory on all backends, or on the named one.',
    args: { backend: onlyBackendArg(t.arg), ...pageArgs(t.arg) },
    resolve: async (_root, { backend, ...page }, context) => {
      const backends = capableBackends(context.gateway.registry, backend, 'loadedModels');
      const list = await readList(context, backends, 'loaded');
      return pageOf({ ...list, rows: await knownToAgents(context, backends, list.rows) }, page, idOf);
    },
  }),
);

builder.subscriptionField('loadedModels', t =>
  t.field({
    type: LoadedModelsEvent,
    description: 'Models in memory.',
    args: { backend: onlyBackendArg(t.arg) },
    subscribe: (_root, { backend }, { gateway }) =>
      served(rowsEvents(followList(gateway.registry, backend, 'loaded', 'loadedModels'), loadedId)),
    resolve: payload => payload,
  }),
);
