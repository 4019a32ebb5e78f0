import type { Job } from '../domain.ts';
import { derive } from '../live/derive.ts';
import type { Rows } from '../live/events.ts';
import type { Jobs } from './runner.ts';
import { type JobStore, jobIn, known } from './store.ts';

/** The jobs of one person: what they ask for they alone see, and nobody joins it. Of others there are none. */
export function jobsSeenIn(scope: string, jobs: Jobs): Jobs {
  const store = storeSeenBy(job => job.scope === scope, jobs.store);
  return {
    ...jobs,
    store,
    start: (call, spec, work) => jobs.start(call, { ...spec, scope }, work),
    running: spec => jobs.running({ ...spec, scope }),
    get: id => jobIn(store, id),
    find: async (call, id) => known(await store.find(call, id), id),
    cancel: async (call, id) => jobs.cancel(call, known(await store.find(call, id), id).id),
  };
}

function storeSeenBy(isSeen: (job: Job) => boolean, store: JobStore): JobStore {
  const seen = (job: Job | undefined) => (job && isSeen(job) ? job : undefined);
  return {
    ...store,
    list: () => store.list().filter(isSeen),
    get: id => seen(store.get(id)),
    find: async (call, id) => seen(await store.find(call, id)),
    source: derive<[Rows<Job>], Rows<Job>>([store.source], ([{ value }], before) => {
      const rows = (value?.rows ?? []).filter(isSeen);
      const isSame = before?.rows.length === rows.length && rows.every((job, at) => job === before.rows[at]);
      return isSame ? before : { rows, errors: [] };
    }),
  };
}
