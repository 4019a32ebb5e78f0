/** Jobs as tests wait for them. */
import type { Job } from '../../src/domain.ts';
import { isFinished } from '../../src/jobs/store.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { eventually } from './server.ts';

/** The job of that id once `holds` is true of it. */
export async function jobWhen(gateway: Pick<Gateway, 'jobs'>, id: string, holds: (job: Job) => boolean): Promise<Job> {
  await eventually(() => holds(gateway.jobs.get(id)), `what is expected of job ${id}`);
  return gateway.jobs.get(id);
}

/** The job of that id once it has ended. */
export const jobEnd = (gateway: Pick<Gateway, 'jobs'>, id: string) => jobWhen(gateway, id, isFinished);
