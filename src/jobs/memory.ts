import { cancelled } from '../call.ts';
import { createJobList, isFinished, type JobStore, type RetentionOptions } from './store.ts';

/** Jobs of this process's memory: a restart forgets them, never what they did. */
export function createMemoryStore(options: RetentionOptions): JobStore {
  const jobs = createJobList(options);
  const working = new Map<string, { readonly id: string; readonly stop: AbortController }>();

  return {
    list: jobs.list,
    get: jobs.get,
    find: async (_call, id) => jobs.get(id),
    working(key) {
      const found = working.get(key);
      return found && jobs.get(found.id);
    },
    source: jobs.source,
    async begin(key, job) {
      const found = working.get(key);
      const there = found && jobs.get(found.id);
      if (there) return { job: there };
      const stop = new AbortController();
      working.set(key, { id: job.id, stop });
      jobs.put(job);
      const { signal } = stop;
      const put = (next: typeof job) => {
        if (isFinished(next)) working.delete(key);
        jobs.put(next);
      };
      return { job, claim: { job, signal, put } };
    },
    async cancel(id) {
      [...working.values()].find(each => each.id === id)?.stop.abort(cancelled);
    },
    takeOver: () => () => {},
    isRead: () => true,
    close: async () => {},
  };
}
