import { type Entry, fileKey } from '../models.ts';
import { transferred } from './files.ts';
import { type PullEvent, progress } from './progress.ts';
import type { Puller } from './pulls.ts';

/**
 * Fetches a model for the NPU. The server reads what another program prints: sizes are rounded, nobody knows the whole,
 * and after each file comes an event about all of them that has nothing but a percentage.
 */
export async function* fetchFlm(
  puller: Puller,
  entry: Entry,
  life: AbortSignal,
): AsyncGenerator<PullEvent, string | undefined> {
  const { state, features, clock, timings } = puller;
  const files = entry.files.length;
  for (const [place, file] of entry.files.entries()) {
    const index = place + 1;
    const say = (done: number, total: number) =>
      progress(
        features,
        { file: file.name, index, files, size: 0 },
        { done: asPrinted(done), total: asPrinted(total) },
      );
    yield say(0, 0);
    if (!state.files.has(fileKey(entry, file))) {
      const transfer = {
        bytes: file.bytes,
        from: 0,
        startedAt: clock.now(),
        firstByteMs: timings.firstByteMs,
        msPerByte: entry.bytes > 0 ? (entry.pullMs ?? timings.pullMs) / entry.bytes : 0,
      };
      for await (const done of transferred(puller, transfer, life)) yield say(done, file.bytes);
      state.files.add(fileKey(entry, file));
    }
    yield say(file.bytes, file.bytes);
    if (index === files) return undefined;
    const percent = Math.floor((100 * index) / files);
    yield progress(features, { file: 'Overall progress', index, files, size: 0 }, { done: 0, total: 0, percent });
  }
  return undefined;
}

const mebibyte = 2 ** 20;

/** Megabytes with one decimal, read back as bytes. */
const asPrinted = (bytes: number) => Math.floor((Math.round((bytes / mebibyte) * 10) / 10) * mebibyte);
