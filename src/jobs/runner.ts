import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { type Call, cancelled, detached, interrupted } from '../call.ts';
import type { Job, JobType, ModelConfigRef, PullProgress } from '../domain.ts';
import { asGatewayError, GatewayError, messageOf } from '../errors.ts';
import { redacted } from '../secrets.ts';
import { isFinished, type JobStore, jobIn } from './store.ts';

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
type JobWork = (call: Call, report: (progress: PullProgress) => void) => Promise<ModelConfigRef | undefined>;

export interface Jobs {
  readonly store: JobStore;
  /** Starts the work, or joins the job that does it already (`created: false`). Returns before the work begins. */
  start(call: Call, spec: JobSpec, work: JobWork): { job: Job; created: boolean };
  /** The job that does this work already. */
  running(spec: JobSpec): Job | undefined;
  /** Throws `not_found` for an unknown id. */
  get(id: string): Job;
  /** Asks a running job to stop; the answer may still say `running`. A finished job stays as it is. */
  cancel(id: string): Job;
  /** Ends everything that runs because the process stops. */
  interrupt(): Promise<void>;
}

interface Running {
  readonly id: string;
  readonly abort: AbortController;
  readonly done: Promise<void>;
}

export function createJobs(store: JobStore, log: Logger, now: () => number = Date.now): Jobs {
  /** By type, backend, scope and key. */
  const running = new Map<string, Running>();

  const get = (id: string) => jobIn(store, id);

  const keyOf = (spec: JobSpec) => JSON.stringify([spec.type, spec.backend, spec.scope, spec.key]);

  function runningNow(spec: JobSpec): Job | undefined {
    const active = running.get(keyOf(spec));
    return active && get(active.id);
  }

  function start(call: Call, spec: JobSpec, work: JobWork) {
    const active = runningNow(spec);
    if (active) return { job: active, created: false };

    const key = keyOf(spec);
    const abort = new AbortController();
    const { key: _, ...facts } = spec;
    const job: Job = {
      ...facts,
      id: randomBytes(8).toString('hex'),
      phase: 'pending',
      bytesCompleted: 0,
      bytesTotal: 0,
      createdAt: new Date(now()),
      requestedBy: call.caller.anonymous ? undefined : call.caller.name,
    };
    store.put(job);
    const jobLog = log.child({
      job: job.id,
      backend: job.backend,
      model: job.model,
      caller: call.caller.name,
      requestId: call.requestId,
      ...(call.span?.traceId && { traceId: call.span.traceId }),
    });
    jobLog.info(`${job.type} started`);
    const done = run(job, detached(call, abort.signal, jobLog), work).finally(() => running.delete(key));
    running.set(key, { id: job.id, abort, done });
    return { job, created: true };
  }

  async function run(job: Job, call: Call, work: JobWork): Promise<void> {
    let state: Job = job;
    const update = (change: Partial<Job>) => {
      state = { ...state, ...change };
      store.put(state);
    };
    // The request that asked gets its answer before the work begins.
    await Promise.resolve();
    update({ phase: 'running', startedAt: new Date(now()) });
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
      call.log.info({ bytes: total }, `${job.type} succeeded`);
    } catch (error) {
      const stopped = call.signal.aborted ? call.signal.reason : undefined;
      const reason = stopped ? messageOf(stopped) : asGatewayError(error, call.requestId).message;
      update({ phase: stopped === cancelled ? 'cancelled' : 'failed', error: reason, finishedAt: new Date(now()) });
      if (stopped === cancelled) call.log.info(`${job.type} cancelled`);
      else if (stopped || error instanceof GatewayError) call.log.warn({ error: reason }, `${job.type} failed`);
      else call.log.error({ err: error }, `${job.type} failed`);
    }
  }

  return {
    store,
    start,
    running: runningNow,
    get,
    cancel(id) {
      const job = get(id);
      const active = [...running.values()].find(each => each.id === id);
      if (active && !isFinished(job)) active.abort.abort(cancelled);
      return job;
    },
    async interrupt() {
      const active = [...running.values()];
      for (const { abort } of active) abort.abort(interrupted);
      await Promise.all(active.map(({ done }) => done));
    },
  };
}

/** How far a job is, 0 to 100. A transfer that is complete but still being verified is not at 100 yet. */
export function percentOf(job: Job): number {
  if (job.phase === 'succeeded') return 100;
  if (job.bytesTotal <= 0) return 0;
  return Math.min(99.9, Math.round((job.bytesCompleted / job.bytesTotal) * 1000) / 10);
}
