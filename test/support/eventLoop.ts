/** For how long the process is deaf while something runs. */
import { turn } from './server.ts';

/** What this thread has worked so far, in milliseconds: what the machine does meanwhile for others does not count. */
export const workedMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/**
 * The answer, and the longest turn of the event loop until it was there, in milliseconds of this thread's own work.
 */
export async function longestTurn<T>(
  work: () => Promise<T>,
): Promise<{ readonly answer: T; readonly ms: number; readonly turns: number }> {
  let ms = 0;
  let turns = 0;
  let running = true;
  const watching = (async () => {
    while (running) {
      const before = workedMs();
      await turn();
      turns++;
      ms = Math.max(ms, workedMs() - before);
    }
  })();
  try {
    const answer = await work();
    // The turn that brought the answer, too.
    await turn();
    return { answer, ms, turns };
  } finally {
    running = false;
    await watching;
  }
}
