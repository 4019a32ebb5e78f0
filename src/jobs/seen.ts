import type { Job } from '../domain.ts';
import { jobNotFound } from '../errors.ts';
import { derive } from '../live/derive.ts';
import type { Rows } from '../live/events.ts';
import type { Jobs } from './runner.ts';
import type { JobStore } from './store.ts';

/** The same jobs as one person sees them: everybody's, and their own. Others there are not. */
export function jobsSeenIn(scope: string, jobs: Jobs): Jobs {
  const store = storeSeenBy(job => job.scope === undefined || job.scope === scope, jobs.store);
  function get(id: string): Job {
    const job = store.get(id);
    if (!job) throw jobNotFound(id.slice(0, 80));
    return job;
  }
  return { ...jobs, store, get, cancel: id => jobs.cancel(get(id).id) };
}

function storeSeenBy(isSeen: (job: Job) => boolean, store: JobStore): JobStore {
  return {
    list: () => store.list().filter(isSeen),
    get(id) {
      const job = store.get(id);
      return job && isSeen(job) ? job : undefined;
    },
    put: store.put,
    source: derive<[Rows<Job>], Rows<Job>>([store.source], ([{ value }], before) => {
      const rows = (value?.rows ?? []).filter(isSeen);
      const isSame = before?.rows.length === rows.length && rows.every((job, at) => job === before.rows[at]);
      return isSame ? before : { rows, errors: [] };
    }),
  };
}
