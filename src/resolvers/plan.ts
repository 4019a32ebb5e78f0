import { planDelete, planLoad, planPull, planUnload } from '../backends/plans.ts';
import type { Deletion, Plan } from '../domain.ts';
import { deleteArgs, loadArgs, pullArgs, unloadArgs } from './arguments.ts';
import { backendView } from './backend.ts';
import { builder } from './builder.ts';
import { BackendRef } from './refs.ts';
import { FitResultRef } from './serving/fit.ts';
import { WiringResultRef } from './serving/modelConfig.ts';

const DeletionRef = builder.objectRef<Deletion>('Deletion').implement({
  description: 'What would be deleted: an object of Kubernetes, or files.',
  fields: t => ({
    kind: t.exposeString('kind', {
      description:
        'Kind of the object; `Model` or `Directory` for files, `Record` for an entry of an object that stays.',
    }),
    namespace: t.exposeString('namespace', { nullable: true, description: 'Namespace of the object.' }),
    name: t.exposeString('name'),
    where: t.exposeString('where', { nullable: true, description: 'Where that is, when it is no object.' }),
  }),
});

const PlanRef = builder.objectRef<Plan>('Plan').implement({
  description: 'What an action would do. Nothing of it was done.',
  fields: t => ({
    dryRun: t.boolean({ description: 'Always true: nothing was written.', resolve: () => true }),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      resolve: (plan, _, context) => backendView(context, plan.backend),
    }),
    backendName: t.exposeString('backend', { description: 'Name of the backend it would be done on.' }),
    model: t.exposeString('model', { description: 'The model, as the answer of the action names it.' }),
    present: t.exposeBoolean('present', {
      nullable: true,
      description: 'Whether its files are there; null where that is not known.',
    }),
    loaded: t.exposeBoolean('loaded', { nullable: true, description: 'Whether it is in memory.' }),
    keepAlive: t.exposeString('keepAlive', { nullable: true, description: 'The keep-alive of the load.' }),
    fit: t.expose('fit', {
      type: FitResultRef,
      nullable: true,
      description: 'The fit that allows the action, where that is checked.',
    }),
    alreadyServing: t.exposeBoolean('alreadyServing', {
      nullable: true,
      description: 'True when something serves it already: nothing would be created to serve it.',
    }),
    joins: t.exposeString('joins', {
      nullable: true,
      description:
        'The download of the same that is under way and would be joined: id of a job, or name of a Job in the cluster.',
    }),
    manifests: t.expose('manifests', {
      type: ['Manifest'],
      description: 'Objects that would be created or changed, in that order.',
    }),
    wiring: t.expose('wiring', {
      type: WiringResultRef,
      nullable: true,
      description: 'How it would be made known to agents.',
    }),
    deletes: t.expose('deletes', {
      type: [DeletionRef],
      nullable: true,
      description: 'What would be deleted, in that order.',
    }),
  }),
});

builder.queryFields(t => ({
  planPull: t.field({
    type: PlanRef,
    nullable: true,
    description: [
      'What `pullModel` would do; refused where that is. Where it is known beforehand that the job would fail, that is a',
      'refusal too.',
    ].join('\n'),
    args: pullArgs(t.arg),
    resolve: (_root, args, { gateway, call }) => planPull(gateway, call, args),
  }),
  planLoad: t.field({
    type: PlanRef,
    nullable: true,
    description: 'What `loadModel` would do; refused where that is.',
    args: loadArgs(t.arg),
    resolve: (_root, args, { gateway, call }) => planLoad(gateway, call, args),
  }),
  planUnload: t.field({
    type: PlanRef,
    nullable: true,
    description: 'What `unloadModel` would do; refused where that is.',
    args: unloadArgs(t.arg),
    resolve: (_root, args, { gateway, call }) => planUnload(gateway, call, args),
  }),
  planDelete: t.field({
    type: PlanRef,
    nullable: true,
    description: 'What `deleteModel` would do; refused where that is.',
    args: deleteArgs(t.arg),
    resolve: (_root, args, { gateway, call }) => planDelete(gateway, call, args),
  }),
}));
