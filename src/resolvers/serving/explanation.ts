import { explainFit, type FitInput } from '../../backends/hub.ts';
import type { FitExplanation, FitObstacle } from '../../domain.ts';
import { backendView } from '../backend.ts';
import { builder, type Context } from '../builder.ts';
import { BackendRef } from '../refs.ts';
import { fitArgs } from './arguments.ts';
import { shareReads } from './shared.ts';

const FitObstacleRef = builder.objectRef<FitObstacle>('FitObstacle').implement({
  description: 'One thing that stands in the way of a model.',
  fields: t => ({
    code: t.exposeString('code', { description: 'A word for programs, such as `taint` or `memory`.' }),
    text: t.exposeString('text', { description: 'What it is, as refusals say it.' }),
    change: t.exposeString('change', { description: 'What would take it away.' }),
  }),
});

const NodeObstaclesRef = builder.objectRef<FitExplanation['nodes'][number]>('NodeObstacles').implement({
  description: 'What stands in the way of a model on one node.',
  fields: t => ({
    node: t.exposeString('node', { description: 'Name of the node.' }),
    eligible: t.exposeBoolean('eligible', { description: 'Nothing does.' }),
    obstacles: t.expose('obstacles', {
      type: [FitObstacleRef],
      description: 'All of it, in the order it is looked at.',
    }),
  }),
});

const SizeObstaclesRef = builder.objectRef<FitExplanation['sizes'][number]>('SizeObstacles').implement({
  description: 'What stands in the way of a model on one type of machine that the pool can grow by.',
  fields: t => ({
    instanceType: t.exposeString('instanceType'),
    obstacles: t.expose('obstacles', { type: [FitObstacleRef], description: 'All of it; empty when it fits there.' }),
  }),
});

export const FitExplanationRef = builder.objectRef<FitExplanation>('FitExplanation').implement({
  description: 'What stands in the way of a model, node by node and size by size, and what would change it.',
  fields: t => ({
    model: t.exposeString('model', { description: 'Repository of the weights.' }),
    preset: t.exposeString('preset', { nullable: true, description: 'Name of the preset it would be served by.' }),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      resolve: (explanation, _, context) => backendView(context, explanation.backend),
    }),
    backendName: t.exposeString('backend', { description: 'Name of the backend that was asked.' }),
    obstacles: t.expose('obstacles', {
      type: [FitObstacleRef],
      description: 'What concerns no node or size of its own.',
    }),
    nodes: t.expose('nodes', {
      type: [NodeObstaclesRef],
      description: 'By name: all nodes, or the one that was asked for.',
    }),
    sizes: t.expose('sizes', {
      type: [SizeObstaclesRef],
      description: 'What the pool can grow by, the smallest first; empty when unknown, or when a node was asked for.',
    }),
  }),
});

const shared = shareReads<FitExplanation>();

/** An explanation for one row of an answer: rows that ask the same are told the same. */
export const sharedExplanation = (context: Context, asked: FitInput): Promise<FitExplanation> =>
  shared(context, asked, () => explainFit(context.gateway, context.call, asked));

builder.queryField('explainFit', t =>
  t.field({
    type: FitExplanationRef,
    nullable: true,
    description: 'What stands in the way of a model or a preset, and what would change it. Nothing is an answer, too.',
    args: fitArgs(t.arg),
    resolve: (_root, args, { gateway, call }) => explainFit(gateway, call, args),
  }),
);
