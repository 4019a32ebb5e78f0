import type { Logger } from 'pino';
import { messageOf } from '../../../errors.ts';
import { unlessAborted } from '../../../live/source.ts';
import { oneLine } from '../../http.ts';

/** The token that the operator has put into a Secret for the Hub. */
export interface HubToken {
  /** Undefined when there is none that can be sent. Rejects just when the signal aborts. */
  read(signal: AbortSignal): Promise<string | undefined>;
  /** Why the one that is configured could not be read or sent, as the newest try says. */
  readonly problem: string | undefined;
  /** The text without the token in it. */
  hide(text: string): string;
}

/** The Secret is read at most once in this time, in milliseconds. */
const keptMs = 60_000;

/**
 * A token that cannot be read takes nothing away from public repositories: it is logged, and becomes the answer only where
 * the Hub asks for one.
 */
export function createHubToken(
  source: () => Promise<string | undefined>,
  { now, log }: { now(): number; readonly log: Logger },
): HubToken {
  let current: string | undefined;
  let problem: string | undefined;
  let reading: { readonly at: number; readonly done: Promise<void> } | undefined;

  async function look(): Promise<void> {
    try {
      const text = (await source())?.trim() ?? '';
      if (/[^\x21-\x7e]/.test(text)) throw new Error('it has a blank, a line break or a foreign character in it');
      current = text === '' ? undefined : text;
      problem = undefined;
    } catch (error) {
      current = undefined;
      problem = `the configured one cannot be used: ${oneLine(messageOf(error), 200)}`;
      // A failure is not kept.
      reading = undefined;
      log.warn({ err: error }, 'the hub token cannot be used');
    }
  }

  return {
    async read(signal) {
      const age = reading ? now() - reading.at : keptMs;
      if (!reading || age < 0 || age >= keptMs) reading = { at: now(), done: look() };
      await unlessAborted(reading.done, signal);
      return current;
    },
    get problem() {
      return problem;
    },
    // What is shorter is no secret, and could be part of any word.
    hide: text => (current === undefined || current.length < 8 ? text : text.replaceAll(current, '…')),
  };
}
