import type { Estimate, ReasonCode, Step } from '../../domain.ts';

/** The part of the weights that has to be there before their own speed says how long the rest takes. */
const speaking = 0.01;

/**
 * The sum over the steps that are not done of what is typical of them, less what the step in progress has taken. That step
 * counts as nothing once it takes longer, and weights whose bytes are counted take as long as at their own speed so far.
 *
 * @param now milliseconds since the epoch
 * @returns Undefined when all is done, when a step failed or a runtime crashes again and again, and when there is no estimate
 *   of one.
 */
export function remaining(steps: readonly Step[], now: number): Estimate | undefined {
  const left = steps.filter(({ name, state }) => state !== 'done' && name !== 'ready');
  const isStuck = steps.some(
    ({ state, reason }) => state === 'failed' || reason === ('CrashLoop' satisfies ReasonCode),
  );
  if (left.length === 0 || isStuck) return undefined;
  const parts = left.flatMap(step => restOf(step, now) ?? []);
  if (parts.length < left.length) return undefined;
  const { basis, samples } = parts.reduce((most, part) => (part.seconds > most.seconds ? part : most));
  const seconds = Math.round(parts.reduce((sum, part) => sum + part.seconds, 0) * 10) / 10;
  return { seconds, basis, samples };
}

function restOf(step: Step, now: number): Estimate | undefined {
  const { state, since, typical, aheadMs = 0 } = step;
  if (state !== 'inProgress' || !since) return typical;
  const elapsed = millisecondsOf(since, now + aheadMs) / 1000;
  const measured = restOfDownload(step, elapsed);
  if (measured !== undefined) return { seconds: measured, basis: 'measured', samples: 0 };
  return typical && { ...typical, seconds: Math.max(0, typical.seconds - elapsed) };
}

/** Undefined when too little is counted to tell. */
function restOfDownload({ bytesCompleted = 0, bytesTotal = 0 }: Step, elapsed: number): number | undefined {
  if (bytesTotal <= 0 || bytesCompleted < bytesTotal * speaking || elapsed <= 0) return undefined;
  return (Math.max(0, bytesTotal - bytesCompleted) * elapsed) / bytesCompleted;
}

/** From a moment to another, never less than 0: clocks differ a little. */
export const millisecondsOf = (since: Date, until: number): number => Math.max(0, until - since.getTime());
