import { setTimeout as sleep } from 'node:timers/promises';
import { parseReplay } from '../config/recording.ts';
import { factsAt, type Recording } from '../drivers/kserve/recording.ts';
import { type Timeline, timeline } from '../drivers/kserve/timeline.ts';
import { formatDuration } from '../drivers/kserve/units.ts';
import { visible } from '../log.ts';
import { readRecording } from './recording/file.ts';
import { beginningOf, newsLines, summaryLines } from './recording/lines.ts';

/** Plays a recording in the terminal. Ctrl-C ends it where it is. */
export async function runReplay(argv: readonly string[]): Promise<void> {
  const { file, speed } = parseReplay(argv);
  const recording = await readRecording(file);
  const stop = new AbortController();
  const end = () => stop.abort();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, end);
  // Lines that go nowhere wide are whole.
  const width = process.stdout.columns ?? Number.POSITIVE_INFINITY;
  await replay(recording, { speed, signal: stop.signal, width, print: line => console.log(visible(line)) });
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.off(name, end);
}

interface ReplayOptions {
  /** How many times as fast; Infinity: at once. */
  readonly speed: number;
  readonly signal: AbortSignal;
  /** Of a line. */
  readonly width: number;
  print(line: string): void;
}

/** Prints it line by line. */
export async function replay(recording: Recording, { speed, signal, width, print }: ReplayOptions): Promise<void> {
  const { instants, object, namespace, about } = recording;
  const times = instants.map(({ at }) => at);
  const [first = 0] = times;
  const length = (times.at(-1) ?? first) - first;
  const pace = speed === Number.POSITIVE_INFINITY ? '' : `, ${speed} times as fast`;
  print(
    `${object} in ${namespace}, ${new Date(first).toISOString().replace(/\.\d+Z$/, 'Z')}: ${formatDuration(length)}${pace}`,
  );
  if (about) print(about);
  print('');
  const beginning = beginningOf(recording);
  let told: Timeline | undefined;
  for (const [index, at] of times.entries()) {
    const pause = index === 0 ? 0 : (at - (times[index - 1] as number)) / speed;
    if (!(await passed(pause, signal))) break;
    const next = timeline(factsAt(recording, index), at);
    for (const line of newsLines(told, next, at - beginning, width)) print(line);
    told = next;
  }
  if (!told) return;
  print('');
  for (const line of summaryLines(told)) print(line);
}

/** A longer timer would end at once. */
const longestMs = 2 ** 31 - 1;

/** Whether that many milliseconds went by before the signal aborted. */
async function passed(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    if (ms > 0) await sleep(Math.min(ms, longestMs), undefined, { signal });
    return !signal.aborted;
  } catch {
    return false;
  }
}
