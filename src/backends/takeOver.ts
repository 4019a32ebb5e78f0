import type { Job } from '../domain.ts';
import { unavailable } from '../errors.ts';
import type { JobWork, Successor } from '../jobs/runner.ts';
import { type Actions, pullWork } from './actions.ts';
import { backendNamed } from './registry.ts';
import { resumedLoad } from './serving.ts';

/** A job of a backend that no replica has is given up after this long without anybody who works on it, in milliseconds. */
const patienceMs = 5 * 60_000;

/**
 * How this replica goes on with what others have left undone: a pull is asked for again, which resumes it where the backend
 * can; a load is followed until what is served is ready.
 */
export function successorOf(actions: Actions): Successor {
  const backendOf = ({ backend }: Job) => backendNamed(actions.registry, backend);
  return {
    isWanted: (job, alone) => backendOf(job) !== undefined || alone >= patienceMs,
    workOf(job): JobWork {
      const backend = backendOf(job);
      if (!backend) return () => Promise.reject(unavailable(`${job.backend} is registered no longer`));
      if (job.type === 'load') return resumedLoad(actions, backend, job);
      const { model, node, preset, wire } = job;
      const request = { model, node, preset };
      return pullWork(actions, backend, { request, wire, follow: work => backend.driver.pull?.(work, request) });
    },
  };
}
