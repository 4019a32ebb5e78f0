import { encodeGlobalID } from '@pothos/plugin-relay';
import { backendNamed, findBackend } from '../backends/registry.ts';
import { findOn } from '../backends/resolve.ts';
import { type Job, jobPhases, type Model } from '../domain.ts';
import { unlessMissing } from '../errors.ts';
import { percentOf } from '../jobs/runner.ts';
import { isFinished } from '../jobs/store.ts';
import { derive } from '../live/derive.ts';
import { type Rows, rowsEvents, type ValuePayload, valueEvents } from '../live/events.ts';
import { onlyBackendArg, pageArgs } from './arguments.ts';
import { backendView } from './backend.ts';
import { builder, type Gateway } from './builder.ts';
import { listEventType, listType, pageOf, served } from './lists.ts';
import { BackendRef, JobRef, ModelRef } from './refs.ts';
import { ModelConfigType } from './serving/modelConfig.ts';

const JobTypeEnum = builder.enumType('JobType', {
  values: {
    PULL: { value: 'pull', description: 'Downloads a model.' },
    LOAD: { value: 'load', description: 'Follows a model until it is ready to serve.' },
  } as const,
});

const JobPhaseEnum = builder.enumType('JobPhase', {
  description: 'Where a job is. The last three are final.',
  values: Object.fromEntries(jobPhases.map(phase => [phase.toUpperCase(), { value: phase }])) as Record<
    string,
    { value: Job['phase'] }
  >,
});

builder.node(JobRef, {
  description: 'Long work that outlives the request that asked for it.',
  id: { resolve: job => job.id },
  loadOne: (id, { gateway, call }) => gateway.jobs.store.find(call, id),
  fields: t => ({
    jobId: t.exposeString('id', { description: '16 hex digits: what `job(id)` and `cancelJob(id)` take.' }),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      resolve: (job, _, context) => backendView(context, job.backend),
    }),
    backendName: t.exposeString('backend'),
    type: t.expose('type', { type: JobTypeEnum }),
    reference: t.exposeString('model', { description: 'The model as it was asked for.' }),
    model: t.field({
      type: ModelRef,
      nullable: true,
      description: 'The model, once the backend has it.',
      resolve: async (job, _, { gateway, call }) => {
        const backend = backendNamed(gateway.registry, job.backend);
        if (!backend) return undefined;
        return (await unlessMissing(findOn(call, backend, job.model)))?.model;
      },
    }),
    phase: t.expose('phase', { type: JobPhaseEnum }),
    status: t.exposeString('status', { nullable: true, description: "The backend's words for what it is doing." }),
    bytesCompleted: t.expose('bytesCompleted', { type: 'Bytes', description: 'Never goes back.' }),
    bytesTotal: t.expose('bytesTotal', {
      type: 'Bytes',
      description: '0 until known. It grows while the backend discovers more to download.',
    }),
    percent: t.float({ description: '0 to 100; 100 only when it has succeeded.', resolve: percentOf }),
    error: t.exposeString('error', {
      nullable: true,
      description: 'Why it failed; `cancelled` when it was cancelled.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    startedAt: t.expose('startedAt', { type: 'DateTime', nullable: true }),
    finishedAt: t.expose('finishedAt', { type: 'DateTime', nullable: true }),
    wire: t.exposeBoolean('wire', { description: 'Whether the model is wired into kagent when it is there.' }),
    node: t.exposeString('node', { nullable: true }),
    preset: t.exposeString('preset', { nullable: true }),
    requestedBy: t.exposeString('requestedBy', { nullable: true, description: 'Who asked, where identity is on.' }),
    resource: t.exposeString('resource', { nullable: true, description: 'The Kubernetes object that a load follows.' }),
    result: t.expose('result', {
      type: ModelConfigType,
      nullable: true,
      description: 'What the model is known to agents by, once it is.',
    }),
  }),
});

/** The jobs that concern a model, however they spelled its name. */
export function jobsOf(gateway: Gateway, model: Model): readonly Job[] {
  const driver = backendNamed(gateway.registry, model.backend)?.driver;
  return gateway.jobs.store
    .list()
    .filter(job => job.backend === model.backend && driver?.find([model], job.model) !== undefined);
}

/** The jobs of one backend, or all. An unknown backend is refused; without any backend there may still be jobs. */
function jobsFilter(gateway: Gateway, name: string | null | undefined): (job: Job) => boolean {
  const backend = name?.trim() ? findBackend(gateway.registry, name) : undefined;
  return job => !backend || job.backend === backend.name;
}

const JobList = listType('JobList', JobRef, 'Jobs');
const JobsEvent = listEventType('JobsEvent', JobRef, 'Jobs');
const JobEvent = builder.objectRef<ValuePayload<Job>>('JobEvent').implement({
  description: 'A job as it is now. The stream ends with the event that says how it ended.',
  fields: t => ({
    revision: t.expose('revision', { type: 'Revision' }),
    observedAt: t.expose('observedAt', { type: 'DateTime' }),
    job: t.expose('value', { type: JobRef, nullable: true }),
    removed: t.exposeBoolean('removed', { description: 'It is no longer kept; `job` is what was last known.' }),
  }),
});
const idOf = (job: Job) => encodeGlobalID('Job', job.id);
const jobIdArg = {
  required: true,
  description: 'Id of the job, as the pull and the list of jobs give it.',
} as const;

/** A job is known by 16 hex digits in all faces, and by its global id as well where it was read from the graph. */
function jobIdOf(id: string): string {
  return /^Job:([0-9a-f]{16})$/.exec(Buffer.from(id, 'base64').toString())?.[1] ?? id;
}

builder.queryFields(t => ({
  jobs: t.field({
    type: JobList,
    nullable: true,
    description: 'Long work, newest first. Finished jobs are kept for a while.',
    args: { backend: onlyBackendArg(t.arg), ...pageArgs(t.arg) },
    resolve: (_root, { backend, ...page }, { gateway }) => {
      const rows = gateway.jobs.store.list().filter(jobsFilter(gateway, backend));
      return pageOf({ rows, errors: [] }, page, idOf);
    },
  }),
  job: t.field({
    type: JobRef,
    nullable: true,
    args: { id: t.arg.string(jobIdArg) },
    resolve: (_root, { id }, { gateway, call }) => gateway.jobs.find(call, jobIdOf(id)),
  }),
}));

builder.mutationField('cancelJob', t =>
  t.field({
    type: JobRef,
    nullable: true,
    description: 'Asks a job to stop. The answer may still say that it runs; it ends as cancelled soon after.',
    args: { id: t.arg.string(jobIdArg) },
    resolve: (_root, { id }, { gateway, call }) => gateway.jobs.cancel(call, jobIdOf(id)),
  }),
);

builder.subscriptionFields(t => ({
  jobs: t.field({
    type: JobsEvent,
    description: 'Long work and its progress.',
    args: { backend: onlyBackendArg(t.arg) },
    subscribe: (_root, { backend }, { gateway }) => {
      const wanted = jobsFilter(gateway, backend);
      const source = derive<[Rows<Job>], Rows<Job>>([gateway.jobs.store.source], ([seen]) => ({
        rows: (seen.value?.rows ?? []).filter(wanted),
        errors: [],
      }));
      return served(rowsEvents(source, job => job.id));
    },
    resolve: payload => payload,
  }),
  job: t.field({
    type: JobEvent,
    description: 'One job until it ends.',
    args: { id: t.arg.string(jobIdArg) },
    subscribe: async (_root, args, { gateway, call }) => {
      const { id } = await gateway.jobs.find(call, jobIdOf(args.id));
      const events = valueEvents(gateway.jobs.store.source, jobs => jobs.find(job => job.id === id), isFinished);
      return served(events);
    },
    resolve: payload => payload,
  }),
}));
