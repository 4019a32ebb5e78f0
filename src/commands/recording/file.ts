/** Recordings as files. */
import { existsSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { ConfigError } from '../../config/settings.ts';
import { parseRecording, printRecording, type Recording } from '../../drivers/kserve/recording.ts';
import { messageOf } from '../../errors.ts';

/** Throws a `ConfigError` that says what is wrong with the file, and in which line. */
export async function readRecording(file: string): Promise<Recording> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new ConfigError([`cannot read the recording: ${messageOf(error)}`]);
  });
  const read = parseRecording(text);
  if ('problem' in read) throw new ConfigError([`${file}: ${read.problem}`]);
  return read.value;
}

/** Throws a `ConfigError` when there is a file of that name. */
export function refuseExisting(file: string): void {
  if (existsSync(file)) throw new ConfigError([`${file} is there already; give --output another name, or remove it`]);
}

/** Writes all of it or nothing: whoever reads meanwhile has the recording as it was before. */
export async function writeRecording(file: string, recording: Recording): Promise<void> {
  const unfinished = `${file}.${process.pid}.part`;
  try {
    await writeFile(unfinished, printRecording(recording), { mode: 0o600 });
    await rename(unfinished, file);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw new ConfigError([`cannot write the recording: ${messageOf(error)}`]);
  }
}
