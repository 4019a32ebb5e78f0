import { encodeGlobalID } from '@pothos/plugin-relay';
import { askBackends } from '../../backends/ask.ts';
import { capableBackends } from '../../backends/registry.ts';
import type { Preset } from '../../domain.ts';
import { rowsEvents } from '../../live/events.ts';
import { onlyBackendArg, optionalReferenceArg, pageArgs } from '../arguments.ts';
import { backendView } from '../backend.ts';
import { builder, enumValues } from '../builder.ts';
import { findRow, followList, listEventType, listType, pageOf, readList, served } from '../lists.ts';
import { BackendRef, ModelRef, PresetRef, placedId } from '../refs.ts';
import { FitResultRef, sharedFit } from './fit.ts';
import { keyedLabels, LabelRef, labelsOf, TargetRef } from './pool.ts';

const PresetSourceEnum = builder.enumType('PresetSource', {
  description: 'Where a preset comes from: with the installation, or from its values.',
  values: enumValues(['shipped', 'values']),
});

const presetName = (preset: Preset) => preset.name;

builder.node(PresetRef, {
  description: 'A way to serve a model that is known to work: weights, arguments, and the memory that takes.',
  id: { resolve: placedId },
  loadOne: (id, context) => findRow(context, id, 'presets', presetName),
  fields: t => ({
    name: t.exposeString('name', { description: 'What loads and fit checks name it by.' }),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      resolve: (preset, _, context) => backendView(context, preset.backend),
    }),
    backendName: t.exposeString('backend', { description: 'Name of the backend that has it.' }),
    target: t.expose('target', { type: TargetRef, nullable: true }),
    displayName: t.exposeString('displayName'),
    description: t.exposeString('description', { nullable: true }),
    source: t.expose('source', { type: PresetSourceEnum, nullable: true }),
    model: t.exposeString('model', { description: 'Repository of its weights.' }),
    models: t.field({
      type: [ModelRef],
      nullable: true,
      description: 'The models that are served by it.',
      resolve: async ({ name, backend }, _, { gateway, call }) => {
        const { rows } = await askBackends(call, capableBackends(gateway.registry, backend), 'models');
        return rows.filter(model => model.preset === name);
      },
    }),
    fit: t.field({
      type: FitResultRef,
      nullable: true,
      description: 'Whether and where it can be served now. `unsupported` where its backend checks no fits.',
      args: { node: optionalReferenceArg(t.arg, 'node', 'Name of the only node to look at; all of them when absent.') },
      resolve: ({ name, backend }, { node }, context) => sharedFit(context, { preset: name, node, backend }),
    }),
    storageUri: t.exposeString('storageUri', { nullable: true, description: 'Where its weights are loaded from.' }),
    format: t.exposeString('format', { nullable: true, description: 'Such as `safetensors`.' }),
    contextLength: t.exposeInt('contextLength', {
      nullable: true,
      description: 'Tokens of context it is served with.',
    }),
    capabilities: t.exposeStringList('capabilities', { nullable: true }),
    license: t.exposeString('license', { nullable: true }),
    gpus: t.exposeInt('gpus', { description: 'GPUs it needs.' }),
    weightsBytes: t.expose('weightsBytes', { type: 'Bytes' }),
    overheadBytes: t.expose('overheadBytes', {
      type: 'Bytes',
      description: 'Memory beside the weights: caches, activations, the runtime itself.',
    }),
    requiredBytes: t.field({
      type: 'Bytes',
      description: 'Weights and overhead.',
      resolve: ({ weightsBytes, overheadBytes }) => weightsBytes + overheadBytes,
    }),
    args: t.exposeStringList('args', { nullable: true, description: 'Arguments of the server that runs it.' }),
    nodeSelector: t.field({
      type: [LabelRef],
      nullable: true,
      description: 'Labels of the nodes it may run on.',
      extensions: keyedLabels,
      resolve: ({ nodeSelector }) => labelsOf(nodeSelector),
    }),
    chatTemplate: t.exposeString('chatTemplate', { nullable: true }),
  }),
});

const PresetList = listType('PresetList', PresetRef, 'Presets');
const PresetsEvent = listEventType('PresetsEvent', PresetRef, 'Presets');
const idOf = (preset: Preset) => encodeGlobalID('Preset', placedId(preset));

builder.queryField('presets', t =>
  t.field({
    type: PresetList,
    nullable: true,
    description: 'Presets of all backends that have some, or of the named one.',
    args: { backend: onlyBackendArg(t.arg), ...pageArgs(t.arg) },
    resolve: async (_root, { backend, ...page }, context) => {
      const backends = capableBackends(context.gateway.registry, backend, 'presets');
      return pageOf(await readList(context, backends, 'presets'), page, idOf);
    },
  }),
);

builder.subscriptionField('presets', t =>
  t.field({
    type: PresetsEvent,
    description: 'Presets, as they come, change and go.',
    args: { backend: onlyBackendArg(t.arg) },
    subscribe: (_root, { backend }, { gateway }) =>
      served(rowsEvents(followList(gateway.registry, backend, 'presets', 'presets'), placedId)),
    resolve: payload => payload,
  }),
);
