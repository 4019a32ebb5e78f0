import { setTimeout as sleep } from 'node:timers/promises';
import { parseReplay } from '../config/recording.ts';
import { factsAt, type Recording } from '../drivers/kserve/recording.ts';
import { speakingPods } from '../drivers/kserve/timeline/pod.ts';
import { type Timeline, timeline } from '../drivers/kserve/timeline.ts';
import { visible } from '../log.ts';
import { readRecording } from './recording/file.ts';
import { beginningOf, newsLines, quietLine, spanWords, standLines, tableLines } from './recording/lines.ts';

/** Plays a recording in the terminal. Ctrl-C ends it where it is. */
export async function runReplay(argv: readonly string[]): Promise<void> {
  const { file, speed } = parseReplay(argv);
  const recording = await readRecording(file);
  const stop = new AbortController();
  const end = () => stop.abort();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end);
  // Lines that go nowhere wide are whole.
  const width = process.stdout.columns ?? Number.POSITIVE_INFINITY;
  const { signal } = stop;
  await replay(recording, {
    speed,
    signal,
    width,
    pause: ms => sleep(ms, undefined, { signal }),
    print: line => console.log(visible(line)),
  });
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, end);
}

interface ReplayOptions {
  /** How many times as fast; Infinity: at once. */
  readonly speed: number;
  readonly signal: AbortSignal;
  /** Of a line. */
  readonly width: number;
  /** Takes that many real milliseconds; rejects when the signal aborts. */
  pause(ms: number): Promise<void>;
  print(line: string): void;
}

/** A longer span of which nothing is told is cut to this, in real milliseconds. */
const longestMs = 3_000;

/** Prints it line by line, and in the end how long each step took. */
export async function replay(recording: Recording, { speed, width, print, ...waiting }: ReplayOptions): Promise<void> {
  const { instants, object, namespace, about } = recording;
  const first = instants[0]?.at ?? 0;
  const length = (instants.at(-1)?.at ?? first) - first;
  const pace = speed === Number.POSITIVE_INFINITY ? '' : `, ${speed} times as fast`;
  print(
    `${object} in ${namespace}, ${new Date(first).toISOString().replace(/\.\d+Z$/, 'Z')}: ${spanWords(length)}${pace}`,
  );
  if (about) print(about);
  print('');
  const beginning = beginningOf(recording);
  /** When something was told last. */
  let toldAt = first;
  let told: Timeline | undefined;
  let best: Best | undefined;
  for (const [index, { at }] of instants.entries()) {
    const facts = factsAt(recording, index);
    const next = timeline(facts, at);
    const lines = newsLines(told, next, at - beginning, width);
    if (lines.length > 0 || index === instants.length - 1) {
      const ms = (at - toldAt) / speed;
      if (!(await passed(Math.min(ms, longestMs), waiting))) break;
      if (ms > longestMs) print(quietLine(at - toldAt));
      for (const line of lines) print(line);
      toldAt = at;
    }
    told = next;
    const hasPod = 'value' in facts.pods && speakingPods(facts.pods.value).has(object);
    best = better(best, { told, rank: hasPod ? (told.phase === 'ready' ? 2 : 1) : 0 });
  }
  if (!told || !best) return;
  print('');
  for (const line of tableLines(best.told)) print(line);
  print('');
  for (const line of standLines(told.phase === best.told.phase ? best.told : told, beginning)) print(line);
}

/** What tells most of the steps: the first that is ready and told from a pod, else the last from a pod, else the last. */
interface Best {
  readonly told: Timeline;
  readonly rank: 0 | 1 | 2;
}

const better = (known: Best | undefined, next: Best): Best =>
  known && (known.rank > next.rank || known.rank === 2) ? known : next;

/** Whether that many milliseconds went by before the signal aborted. */
async function passed(ms: number, { pause, signal }: Pick<ReplayOptions, 'pause' | 'signal'>): Promise<boolean> {
  try {
    if (ms > 0) await pause(ms);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return !signal.aborted;
}
