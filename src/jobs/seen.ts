import type { Job } from '../domain.ts';
import { derive } from '../live/derive.ts';
import type { Rows } from '../live/events.ts';
import type { Jobs } from './runner.ts';
import { type JobStore, jobIn } from './store.ts';

/** The jobs of one person: what they ask for they alone see, and nobody joins it. Of others there are none. */
export function jobsSeenIn(scope: string, jobs: Jobs): Jobs {
  const store = storeSeenBy(job => job.scope === scope, jobs.store);
  const get = (id: string) => jobIn(store, id);
  return {
    ...jobs,
    store,
    start: (call, spec, work) => jobs.start(call, { ...spec, scope }, work),
    running: spec => jobs.running({ ...spec, scope }),
    get,
    cancel: id => jobs.cancel(get(id).id),
  };
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
