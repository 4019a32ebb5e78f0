import { closeSync, constants, fstatSync, openSync, statSync, writeSync } from 'node:fs';
import { ConfigError } from '../config/settings.ts';
import { messageOf } from '../errors.ts';

/** The file that audit entries go to, beside the log. */
export interface AuditFile {
  /** Appends a line; it is the system's when this returns. Answers why it could not, or not to that file. */
  write(line: string): Error | undefined;
  /** How many lines that was so for. */
  readonly lost: number;
}

/** Neither a pipe nobody reads nor one that is full makes anybody wait. What it says is nobody's business but the owner's. */
const open = (path: string) =>
  openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK, 0o600);

/**
 * Opens the file, or begins it. One that is moved away is begun again by the next line, and one that is emptied goes on, so
 * that whatever rotates it has nothing to say to us. Throws `ConfigError` when it cannot be written.
 */
export function openAuditFile(path: string): AuditFile {
  let fd: number;
  try {
    fd = open(path);
  } catch (error) {
    throw new ConfigError([
      `--audit-log cannot be written (${messageOf(error)}); name a file that this user may write`,
    ]);
  }
  /** The last line did not get there as a whole. */
  let torn = false;
  let lost = 0;

  function follow(): void {
    const there = statSync(path, { throwIfNoEntry: false });
    const ours = fstatSync(fd);
    if (there?.ino === ours.ino && there.dev === ours.dev) return;
    const next = open(path);
    closeSync(fd);
    fd = next;
    torn = false;
  }

  function append(line: string): void {
    const bytes = Buffer.from(torn ? `\n${line}` : line);
    for (let done = 0; done < bytes.length; ) {
      // Set before, for a write that throws has not said how much it wrote.
      torn = torn || done > 0;
      done += writeSync(fd, bytes, done);
    }
    torn = false;
  }

  return {
    write(line) {
      let problem: unknown;
      try {
        follow();
      } catch (error) {
        // The line goes to where the file is now, which is better than nowhere.
        problem = error;
      }
      try {
        append(line);
      } catch (error) {
        problem = error;
      }
      if (problem === undefined) return undefined;
      lost++;
      return problem as Error;
    },
    get lost() {
      return lost;
    },
  };
}
