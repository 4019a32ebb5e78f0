import type { Call } from '../../call.ts';

/**
 * Questions that rows of one answer ask, each asked once: who asks the same for the same call while it is being asked is
 * given the same answer. Questions are plain data; those that are written alike are the same.
 */
export function shareReads<A>() {
  const calls = new WeakMap<Call, Map<string, Promise<A>>>();
  return (call: Call, question: object, ask: () => Promise<A>): Promise<A> => {
    const reads = calls.get(call) ?? new Map<string, Promise<A>>();
    calls.set(call, reads);
    const key = JSON.stringify(question);
    let read = reads.get(key);
    if (!read) {
      // Not kept any longer: the call of a subscription lives on.
      read = ask().finally(() => reads.delete(key));
      reads.set(key, read);
    }
    return read;
  };
}
