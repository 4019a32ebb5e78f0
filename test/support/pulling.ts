/** Pulls on the emulated hosts, to their end whatever it is. */
import type { Job } from '../../src/domain.ts';
import { isFinished } from '../../src/jobs/store.ts';
import { through } from './facts.ts';
import type { Hosts } from './hosts.ts';
import type { TestServer } from './server.ts';
import { eventually } from './server.ts';

/** Asks for a pull and lets time pass until it has ended; `seen` is given the job as it stands after each step. */
export async function pullToTheEnd(
  { clock, gateway }: Hosts,
  server: TestServer,
  backend: string,
  model: string,
  seen: (job: Job) => void = () => {},
): Promise<Job> {
  const { job } = await through('REST', server, 'pullModel', { backend, model });
  const current = () => gateway.jobs.get(job.id);
  let advancing: Promise<void> | undefined;
  await eventually(
    () => {
      seen(current());
      advancing ??= clock.advance(100).finally(() => {
        advancing = undefined;
      });
      return isFinished(current());
    },
    `the end of the pull of ${model} on ${backend}`,
    15_000,
  );
  await advancing;
  return current();
}
