import type { Clock } from '../host/clock.ts';
import { goTime } from './wire.ts';

/** One generation: its words, one by one. */
export interface Generation {
  readonly clock: Clock;
  /** As the request spelled it; every line repeats that. */
  readonly model: string;
  readonly words: readonly string[];
  readonly promptWords: number;
  /** Between two words. */
  readonly tokenMs: number;
  readonly startedAt: number;
  readonly loadedAt: number;
  /** How one word stands in a line. */
  readonly render: (word: string) => object;
}

/** The lines of a completion; the last one is empty and carries the counts. */
export async function* completionLines(generation: Generation, signal: AbortSignal): AsyncGenerator<object> {
  const { clock, model, words, render, tokenMs } = generation;
  const head = () => ({ model, created_at: goTime(clock.now()) });
  for (const word of words) {
    await clock.sleep(tokenMs, signal);
    yield { ...head(), ...render(word), done: false };
  }
  yield { ...head(), ...render(''), done: true, done_reason: 'stop', ...counts(generation) };
}

/** The same as one document. */
export async function completion(generation: Generation, signal: AbortSignal): Promise<object> {
  const { clock, model, words, render, tokenMs } = generation;
  await clock.sleep(tokenMs * words.length, signal);
  const head = { model, created_at: goTime(clock.now()), ...render(words.join('')) };
  return { ...head, done: true, done_reason: 'stop', ...counts(generation) };
}

function counts({ clock, words, promptWords, startedAt, loadedAt }: Generation) {
  // No real server is so fast that a duration is 0 and left out.
  const nanoseconds = (ms: number) => Math.max(1, Math.round(ms * 1e6));
  return {
    total_duration: nanoseconds(clock.now() - startedAt),
    load_duration: nanoseconds(loadedAt - startedAt),
    prompt_eval_count: Math.max(1, promptWords),
    prompt_eval_duration: 1_000_000,
    eval_count: words.length,
    eval_duration: nanoseconds(clock.now() - loadedAt),
  };
}
