import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type Call, cancelled, createCall, detached, interrupted, ownName } from '../call.ts';
import type { Job, JobType, ModelConfigRef, PullProgress } from '../domain.ts';
import { asGatewayError, GatewayError, messageOf } from '../errors.ts';
import { redacted } from '../secrets.ts';
import { type Claim, isFinished, type JobStore, jobIn, known, lost } from './store.ts';

export interface JobSpec {
  readonly type: JobType;
  readonly backend: string;
  /** The reference as requested. */
  readonly model: string;
  /** Of which person, as whom it is done; absent for what everybody may see. */
  readonly scope?: string | undefined;
  /** Equal for two requests that ask for the same work: the second joins the first. */
  readonly key: string;
  readonly wire: boolean;
  readonly node?: string | undefined;
  readonly preset?: string | undefined;
  /** The object that it follows. */
  readonly resource?: string | undefined;
}

/**
 * The work of a job. Ends well, with what the model is known to agents by when it saw to that, or throws; `report` may be
 * called as often as there is news.
 */
export type JobWork = (call: Call, report: (progress: PullProgress) => void) => Promise<ModelConfigRef | undefined>;

/** What a process does of the work that others have left undone. */
export interface Successor {
  /** Whether it is for this process to go on with a job that nobody has worked on for `alone` milliseconds. */
  isWanted(job: Job, alone: number): boolean;
  workOf(job: Job): JobWork;
}

export interface Jobs {
  readonly store: JobStore;
  /** Starts the work, or joins the job that does it already (`created: false`). Resolves before the work begins. */
  start(call: Call, spec: JobSpec, work: JobWork): Promise<{ job: Job; created: boolean }>;
  /** The job that does this work already. */
  running(spec: JobSpec): Job | undefined;
  /** Throws `not_found` for an unknown id. */
  get(id: string): Job;
  /** The same, and also of a job that another replica has begun just now. */
  find(call: Call, id: string): Promise<Job>;
  /** Asks a running job to stop; the answer may still say `running`. A finished job stays as it is. */
  cancel(call: Call, id: string): Promise<Job>;
  /** Goes on, from now on, with what other replicas have left undone. Returns how to stop. */
  takeOver(successor: Successor): () => void;
  /** Ends everything that runs because the process stops: a replica that stays goes on with it, where there can be one. */
  interrupt(): Promise<void>;
}

export interface JobsOptions {
  readonly store: JobStore;
  readonly log: Logger;
  readonly now?: (() => number) | undefined;
  /** Told how many more bytes a job has. */
  readonly onBytes?: ((backend: string, more: number) => void) | undefined;
}

export function createJobs({ store, log, now = Date.now, onBytes }: JobsOptions): Jobs {
  const runs = new Map<AbortController, Promise<void>>();

  const keyOf = (spec: JobSpec) => JSON.stringify([spec.type, spec.backend, spec.scope, spec.key]);
  const find = async (call: Call, id: string) => known(await store.find(call, id), id);

  async function start(call: Call, spec: JobSpec, work: JobWork) {
    const { key: _, ...facts } = spec;
    const { job, claim } = await store.begin(keyOf(spec), {
      ...facts,
      id: randomBytes(8).toString('hex'),
      phase: 'pending',
      bytesCompleted: 0,
      bytesTotal: 0,
      createdAt: new Date(now()),
      requestedBy: call.caller.anonymous ? undefined : call.caller.name,
    });
    if (claim) launch(claim, call, work, 'started');
    return { job, created: claim !== undefined };
  }

  function launch(claim: Claim, call: Call, work: JobWork, word: string) {
    const { job } = claim;
    const jobLog = log.child({
      job: job.id,
      backend: job.backend,
      model: job.model,
      caller: call.caller.name,
      requestId: call.requestId,
      ...(call.span?.traceId && { traceId: call.span.traceId }),
    });
    jobLog.info(`${job.type} ${word}`);
    const stop = new AbortController();
    const signal = AbortSignal.any([claim.signal, stop.signal]);
    const done = run(claim, detached(call, signal, jobLog), work).finally(() => runs.delete(stop));
    runs.set(stop, done);
  }

  async function run(claim: Claim, call: Call, work: JobWork): Promise<void> {
    let state = claim.job;
    const update = (change: Partial<Job>) => {
      const more = (change.bytesCompleted ?? 0) - state.bytesCompleted;
      if (more > 0) onBytes?.(state.backend, more);
      state = { ...state, ...change };
      claim.put(state);
    };
    // The request that asked gets its answer before the work begins.
    await setImmediate();
    update({ phase: 'running', startedAt: state.startedAt ?? new Date(now()) });
    try {
      call.signal.throwIfAborted();
      const result = await work(call, ({ status, bytesCompleted, bytesTotal, node, preset }) => {
        const total = Math.max(state.bytesTotal, bytesTotal);
        const completed = Math.max(state.bytesCompleted, bytesCompleted);
        update({
          status: status === undefined ? undefined : redacted(status),
          bytesTotal: total,
          bytesCompleted: total > 0 ? Math.min(completed, total) : completed,
          ...(node && { node }),
          ...(preset && { preset }),
        });
      });
      const total = Math.max(state.bytesTotal, state.bytesCompleted);
      update({ phase: 'succeeded', bytesTotal: total, bytesCompleted: total, finishedAt: new Date(now()), result });
      call.log.info({ bytes: total }, `${state.type} succeeded`);
    } catch (error) {
      const stopped = call.signal.aborted ? call.signal.reason : undefined;
      if (stopped === lost) return call.log.warn(`${state.type} left to another replica, which has taken it over`);
      if (stopped === interrupted && claim.giveBack) {
        await claim.giveBack();
        return call.log.info(`${state.type} left for another replica to go on with`);
      }
      const reason = stopped ? messageOf(stopped) : asGatewayError(error, call.requestId).message;
      update({ phase: stopped === cancelled ? 'cancelled' : 'failed', error: reason, finishedAt: new Date(now()) });
      if (stopped === cancelled) call.log.info(`${state.type} cancelled`);
      else if (stopped || error instanceof GatewayError) call.log.warn({ error: reason }, `${state.type} failed`);
      else call.log.error({ err: error }, `${state.type} failed`);
    }
  }

  return {
    store,
    start,
    running: spec => store.working(keyOf(spec)),
    get: id => jobIn(store, id),
    find,
    async cancel(call, id) {
      const job = await find(call, id);
      if (!isFinished(job)) await store.cancel(id);
      return job;
    },
    takeOver: ({ isWanted, workOf }) =>
      store.takeOver(isWanted, claim => {
        const { requestedBy } = claim.job;
        const caller = { name: requestedBy ?? ownName, anonymous: requestedBy === undefined, scope: '' };
        launch(claim, createCall({ caller, log }), workOf(claim.job), 'taken over');
      }),
    async interrupt() {
      const active = [...runs];
      for (const [stop] of active) stop.abort(interrupted);
      await Promise.all(active.map(([, done]) => done));
      await store.close();
    },
  };
}

/** How far a job is, 0 to 100. A transfer that is complete but still being verified is not at 100 yet. */
export function percentOf(job: Job): number {
  if (job.phase === 'succeeded') return 100;
  if (job.bytesTotal <= 0) return 0;
  return Math.min(99.9, Math.round((job.bytesCompleted / job.bytesTotal) * 1000) / 10);
}
