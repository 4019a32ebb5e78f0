import { checkFit, type FitInput } from '../../backends/hub.ts';
import type { Call } from '../../call.ts';
import type { FitResult } from '../../domain.ts';
import { backendView } from '../backend.ts';
import { builder, type Context, faces, type Gateway } from '../builder.ts';
import { BackendRef } from '../refs.ts';
import { fitArgs } from './arguments.ts';
import { FitExplanationRef, sharedExplanation } from './explanation.ts';
import { shareReads } from './shared.ts';

// Unknown is null here; the old faces always write a number and a verdict.
const zeroWhenUnknown = faces({ whenNull: 0 });
const falseWhenUnknown = faces({ whenNull: false });

/** A fit, and what was asked for where that is known: why it is so is asked of the same question. */
interface FitView extends FitResult {
  readonly asked?: FitInput | undefined;
}

export const FitResultRef = builder.objectRef<FitView>('FitResult').implement({
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
        description: 'Bytes of the whole download, whatever of it is in the cache.',
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
      whyNot: t.field({
        type: FitExplanationRef,
        nullable: true,
        description: 'What stands in the way on every node and every size of the pool, and what would change it.',
        resolve: ({ asked, model, preset, backend }, _, context) =>
          sharedExplanation(context, { ...(asked ?? { model, preset }), backend }),
      }),
    };
  },
});

const shared = shareReads<FitView>();

/** A fit for one row of an answer: rows that ask the same are told the same. */
export const sharedFit = (context: Context, asked: FitInput): Promise<FitView> =>
  shared(context, asked, () => viewOf(context.gateway, context.call, asked));

async function viewOf(gateway: Gateway, call: Call, asked: FitInput): Promise<FitView> {
  return { ...(await checkFit(gateway, call, asked)), asked };
}

builder.queryField('checkFit', t =>
  t.field({
    type: FitResultRef,
    nullable: true,
    description: 'Whether and where a model or a preset can be served. That it cannot is an answer.',
    args: fitArgs(t.arg),
    resolve: (_root, args, { gateway, call }) => viewOf(gateway, call, args),
  }),
);
