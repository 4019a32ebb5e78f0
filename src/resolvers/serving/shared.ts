import type { FitInput } from '../../backends/hub.ts';
import { given } from '../../backends/registry.ts';
import type { Context } from '../builder.ts';

/** Questions of rows that are under way at the same time for one answer, at most. */
const atOnce = 8;

type Gate = <A>(ask: () => Promise<A>) => Promise<A>;

const gates = new WeakMap<Context, Gate>();

/**
 * Questions that rows of one answer ask, each asked once: who asks the same in the same answer is told the same. Few of all
 * its questions are under way at a time; the others wait for their turn, or for the caller to leave.
 */
export function shareReads<A>() {
  const answers = new WeakMap<Context, Map<string, Promise<A>>>();
  return (context: Context, { model, preset, node, backend }: FitInput, ask: () => Promise<A>): Promise<A> => {
    const reads = answers.get(context) ?? new Map<string, Promise<A>>();
    answers.set(context, reads);
    const gate = gates.get(context) ?? createGate(context.call.signal);
    gates.set(context, gate);
    const question = JSON.stringify([model, preset, node, backend].map(given));
    const read = reads.get(question) ?? gate(ask);
    reads.set(question, read);
    return read;
  };
}

/** Lets in so many at once, in the order in which they come. Rejects for who gets in after the signal has aborted. */
function createGate(signal: AbortSignal): Gate {
  let inside = 0;
  const waiting: (() => void)[] = [];
  return async ask => {
    // Who leaves hands over its place.
    if (inside >= atOnce) await new Promise<void>(resolve => waiting.push(resolve));
    else inside++;
    try {
      signal.throwIfAborted();
      return await ask();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else inside--;
    }
  };
}
