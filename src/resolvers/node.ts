import { encodeGlobalID } from '@pothos/plugin-relay';
import { askBackends } from '../backends/ask.ts';
import { capableBackends } from '../backends/registry.ts';
import type { Model, NodeCache, NodeInfo } from '../domain.ts';
import { rowsEvents } from '../live/events.ts';
import { onlyBackendArg, pageArgs } from './arguments.ts';
import { backendView } from './backend.ts';
import { builder, faces } from './builder.ts';
import { findRow, followList, listEventType, listType, pageOf, readList, served } from './lists.ts';
import { BackendRef, LoadedModelRef, ModelRef, NodeInfoRef, placedId } from './refs.ts';
import { TargetRef } from './serving/pool.ts';

/** Unknown is null here and 0 in the old faces. */
const zeroWhenUnknown = faces({ whenNull: 0 });

const NodeCacheRef = builder.objectRef<NodeCache>('NodeCache').implement({
  description: 'Where a machine keeps its models.',
  fields: t => ({
    claim: t.exposeString('claim', {
      nullable: true,
      description: "The claim of its volume; null where it is the machine's own disk.",
      extensions: faces({ whenNull: '' }),
    }),
    mountPath: t.exposeString('mountPath', { description: 'Folder of the models.' }),
    models: t.exposeInt('models', { description: 'How many it holds.' }),
    bytesUsed: t.expose('bytesUsed', { type: 'Bytes', description: 'Bytes they take.' }),
    scannedAt: t.expose('scannedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When that was counted; null = never.',
      extensions: faces({ whenNull: '0001-01-01T00:00:00Z' }),
    }),
    shared: t.exposeBoolean('shared', { nullable: true, description: 'Several machines use the same one.' }),
    inventory: t.exposeString('inventory', {
      nullable: true,
      description: "What counted it: a `pod`, a `daemonset`, or the backend's list of `models`.",
    }),
    error: t.exposeString('error', { nullable: true }),
  }),
});

builder.node(NodeInfoRef, {
  description: 'A machine that models run on.',
  id: { resolve: placedId },
  loadOne: (id, context) => findRow(context, id, 'nodes', node => node.name),
  fields: t => ({
    name: t.exposeString('name'),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      resolve: (node, _, context) => backendView(context, node.backend),
    }),
    backendName: t.exposeString('backend', { description: 'Name of the backend it belongs to.' }),
    target: t.expose('target', { type: TargetRef, nullable: true, description: 'The cluster it is in, when another.' }),
    ready: t.exposeBoolean('ready', { description: 'The machine works.' }),
    eligible: t.exposeBoolean('eligible', { description: 'Models can be put on it.' }),
    eligibilityReason: t.exposeString('eligibilityReason', { nullable: true, description: 'Why not, when not.' }),
    startingSince: t.expose('startingSince', {
      type: 'DateTime',
      nullable: true,
      description:
        'When the machine was made, while it is coming up: within its first 15 minutes, and nothing keeps models off it but what goes by itself. Null when it is not coming up.',
    }),
    startingReason: t.exposeString('startingReason', {
      nullable: true,
      description: 'What it waits for, while it is coming up.',
    }),
    architecture: t.exposeString('architecture', { nullable: true, description: '`amd64` or `arm64`.' }),
    allocatableMemoryBytes: t.expose('allocatableMemoryBytes', {
      type: 'Bytes',
      nullable: true,
      extensions: zeroWhenUnknown,
    }),
    gpuCount: t.exposeInt('gpuCount'),
    freeGpus: t.exposeInt('freeGpus', {
      nullable: true,
      description:
        'GPUs that a model can be given now: those that its cluster can allocate, less those that pods of served models have asked for. Pods outside the serving namespace are not seen. Null when not known.',
    }),
    gpuProduct: t.exposeString('gpuProduct', { nullable: true }),
    gpuMemoryBytes: t.expose('gpuMemoryBytes', { type: 'Bytes', nullable: true, description: 'Of one GPU.' }),
    accelerated: t.exposeBoolean('accelerated', {
      nullable: true,
      description: 'Whether a loaded model uses an accelerator.',
    }),
    budgetBytes: t.expose('budgetBytes', {
      type: 'Bytes',
      nullable: true,
      description: 'Bytes that models may take.',
      extensions: zeroWhenUnknown,
    }),
    budgetSource: t.exposeString('budgetSource', {
      nullable: true,
      description: 'Where the budget comes from: `host-meminfo`, `override`, `gpu-labels`, …',
    }),
    reservedBytes: t.expose('reservedBytes', { type: 'Bytes', description: 'Bytes that loaded models take.' }),
    freeBytes: t.expose('freeBytes', {
      type: 'Bytes',
      nullable: true,
      description: 'Budget less reserved, never below 0.',
      extensions: zeroWhenUnknown,
    }),
    message: t.exposeString('message', { nullable: true }),
    cache: t.expose('cache', { type: NodeCacheRef, nullable: true }),
    loaded: t.field({
      type: [LoadedModelRef],
      nullable: true,
      description: 'Models in memory on it.',
      resolve: async (node, _, { gateway, call }) => {
        const backends = capableBackends(gateway.registry, node.backend, 'loadedModels');
        const { rows } = await askBackends(call, backends, 'loaded');
        // A host backend is one machine and does not name it.
        return rows.filter(loaded => loaded.node === undefined || loaded.node === node.name);
      },
    }),
    cachedModels: t.field({
      type: [ModelRef],
      nullable: true,
      description: 'Models whose files it can read: its own, or on a volume that it can mount.',
      resolve: async (node, _, { gateway, call }) => {
        const { rows } = await askBackends(call, capableBackends(gateway.registry, node.backend), 'models');
        return rows.filter(model => isOn(model, node));
      },
    }),
  }),
});

/**
 * Whether a machine can read a model's files. A host is one machine, and its models name none. What has a path in a volume
 * and names no machine is wherever that volume can be mounted.
 */
const isOn = ({ downloaded, node, path }: Model, { name, cache }: NodeInfo) =>
  downloaded !== false && (node === undefined ? path === undefined || cache !== undefined : node === name);

const NodeList = listType('NodeList', NodeInfoRef, 'Machines');
const NodesEvent = listEventType('NodesEvent', NodeInfoRef, 'Machines');
const idOf = (node: NodeInfo) => encodeGlobalID('NodeInfo', placedId(node));

builder.queryField('nodes', t =>
  t.field({
    type: NodeList,
    nullable: true,
    description: 'Machines that models run on.',
    args: { backend: onlyBackendArg(t.arg), ...pageArgs(t.arg) },
    resolve: async (_root, { backend, ...page }, context) => {
      const backends = capableBackends(context.gateway.registry, backend, 'nodeInventory');
      return pageOf(await readList(context, backends, 'nodes'), page, idOf);
    },
  }),
);

builder.subscriptionField('nodes', t =>
  t.field({
    type: NodesEvent,
    description: 'Machines that models run on.',
    args: { backend: onlyBackendArg(t.arg) },
    subscribe: (_root, { backend }, { gateway }) =>
      served(rowsEvents(followList(gateway.registry, backend, 'nodes', 'nodeInventory'), placedId)),
    resolve: payload => payload,
  }),
);
