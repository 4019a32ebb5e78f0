import { checkFit } from '../../backends/hub.ts';
import type { FitResult } from '../../domain.ts';
import { optionalReferenceArg } from '../arguments.ts';
import { backendView } from '../backend.ts';
import { builder, faces } from '../builder.ts';
import { BackendRef } from '../refs.ts';

// Unknown is null here; the old faces always write a number and a verdict.
const zeroWhenUnknown = faces({ whenNull: 0 });
const falseWhenUnknown = faces({ whenNull: false });

export const FitResultRef = builder.objectRef<FitResult>('FitResult').implement({
  description: 'Whether a model can be served, where, and what was compared with what.',
  fields: t => {
    const bytes = (
      field: 'weightsBytes' | 'overheadBytes' | 'requiredBytes' | 'budgetBytes' | 'reservedBytes' | 'freeBytes',
      description: string,
    ) => t.expose(field, { type: 'Bytes', nullable: true, description, extensions: zeroWhenUnknown });
    return {
      model: t.exposeString('model', { description: 'Repository of the weights.' }),
      backend: t.field({
        type: BackendRef,
        nullable: true,
        resolve: (fit, _, context) => backendView(context, fit.backend),
      }),
      backendName: t.exposeString('backend', { description: 'Name of the backend that was asked.' }),
      fits: t.exposeBoolean('fits'),
      reason: t.exposeString('reason', { nullable: true, description: 'Why it does not fit, or what is uncertain.' }),
      retryable: t.exposeBoolean('retryable', {
        nullable: true,
        description: 'It does not fit now, but may later.',
        extensions: faces({ omitFalse: true }),
      }),
      preset: t.exposeString('preset', { nullable: true, description: 'Name of the preset it would be served by.' }),
      presets: t.exposeStringList('presets', {
        nullable: true,
        description: 'Names of all presets that serve the repository.',
      }),
      weightsBytes: bytes('weightsBytes', 'Bytes of the weights.'),
      weightsSource: t.exposeString('weightsSource', {
        nullable: true,
        description: 'What they were counted by: `safetensors-index`, `safetensors-shards`, `tree`, `preset`.',
      }),
      declaredWeightsBytes: t.expose('declaredWeightsBytes', {
        type: 'Bytes',
        nullable: true,
        description: 'What the preset says, where that is not what was counted.',
        extensions: faces({ omitZero: true }),
      }),
      overheadBytes: bytes('overheadBytes', 'Memory beside the weights.'),
      requiredBytes: bytes('requiredBytes', 'Weights and overhead.'),
      downloadBytes: t.expose('downloadBytes', {
        type: 'Bytes',
        nullable: true,
        description: 'Bytes still to be pulled.',
        extensions: faces({ omitZero: true }),
      }),
      node: t.exposeString('node', { nullable: true, description: 'Name of the node it fits best.' }),
      instanceType: t.exposeString('instanceType', {
        nullable: true,
        description: 'Type of the machine that would be started for it.',
      }),
      budgetBytes: bytes('budgetBytes', 'Bytes that models may take there.'),
      budgetSource: t.exposeString('budgetSource', {
        nullable: true,
        description: 'Where the budget comes from: `gpu-labels`, `allocatable`, `annotation`, `pool-scale-from-zero`.',
      }),
      reservedBytes: bytes('reservedBytes', 'Bytes that served models take there.'),
      freeBytes: bytes('freeBytes', 'Budget less reserved, never below 0.'),
      gated: t.exposeBoolean('gated', {
        nullable: true,
        description: 'Its terms have to be accepted first.',
        extensions: falseWhenUnknown,
      }),
      private: t.exposeBoolean('private', { nullable: true, extensions: falseWhenUnknown }),
      tokenConfigured: t.exposeBoolean('tokenConfigured', { description: 'The backend has a token for the hub.' }),
      cached: t.exposeBoolean('cached', {
        nullable: true,
        description: 'Whether the weights are there; null = unknown.',
        extensions: falseWhenUnknown,
      }),
      cacheSource: t.exposeString('cacheSource', {
        nullable: true,
        description: 'What says whether they are: `scan`, `index`, `oci-image`, or that it is `unknown`.',
      }),
    };
  },
});

builder.queryField('checkFit', t =>
  t.field({
    type: FitResultRef,
    nullable: true,
    description: 'Whether and where a model or a preset can be served. That it cannot is an answer.',
    args: {
      model: optionalReferenceArg(t.arg, 'model', 'Repository of the model, `owner/name`.'),
      preset: optionalReferenceArg(t.arg, 'preset', 'Name of a preset, in place of the model or beside it.'),
      node: optionalReferenceArg(t.arg, 'node', 'Name of the only node to look at; all of them when absent.'),
      backend: t.arg.string({ description: 'Name of the backend. Only needed where several check fits.' }),
    },
    resolve: (_root, args, { gateway, call }) => checkFit(gateway, call, args),
  }),
);
