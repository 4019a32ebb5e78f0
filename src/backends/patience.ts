/** What the others wait for a straggler once the first has answered, in milliseconds. */
export const patienceMs = 2_000;

/**
 * The answers to what was asked of several at the same time. Once one has answered, the others have `patienceMs`; who
 * needs longer is answered for by `late`, and goes on in the background: what it says is there for the next who asks.
 */
export async function answersInTime<T>(
  asked: readonly Promise<T>[],
  late: (index: number) => T,
  patience = patienceMs,
): Promise<T[]> {
  if (asked.length < 2) return Promise.all(asked);
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<void>(resolve => {
    const start = () => {
      timer ??= setTimeout(resolve, patience);
    };
    for (const answer of asked) answer.then(start, start);
  });
  try {
    return await Promise.all(asked.map((answer, index) => Promise.race([answer, timeUp.then(() => late(index))])));
  } finally {
    clearTimeout(timer);
  }
}
