import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { turn } from './server.ts';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** Megabytes in use after collecting garbage. */
export async function usedMemory() {
  for (let round = 0; round < 3; round++) {
    gc();
    await turn();
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heap: (heapUsed + external) / 1e6, rss: rss / 1e6 };
}
