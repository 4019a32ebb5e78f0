import { invalidRequest } from '../../errors.ts';

/** Nanoseconds of each unit Go knows; Ollama reads text with Go's parser. */
const units: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3, // U+00B5
  μs: 1e3, // U+03BC
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};
/** Go counts in 64-bit nanoseconds: about 292 years. */
const longest = 2 ** 63;

const number = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;
const duration = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/;
const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;
/** Characters; no duration that means anything is longer, and the expressions above take their time over long text. */
const longestText = 80;

/**
 * A keep-alive as Ollama wants it on the wire: a number (seconds) for numeric text, because Ollama refuses `"300"` and
 * `"-1"` as text, and the text itself for a Go duration. Anything negative means for ever.
 *
 * Throws `invalid_request` for what is neither, and for every spelling of zero: a load with zero is an unload.
 */
export function parseKeepAlive(text: string): number | string {
  const value = text.trim();
  const shown = `keepAlive ${JSON.stringify(value.length > longestText ? `${value.slice(0, longestText)}…` : value)}`;
  const ways = 'give seconds (300), a duration of h, m and s ("10m", "1h30m"), or -1 to keep it loaded';
  const nanoseconds = nanosecondsOf(value);
  if (nanoseconds === undefined)
    throw invalidRequest(`${shown} is neither a number of seconds nor a duration; ${ways}`);
  if (nanoseconds === 0) throw invalidRequest(`${shown} would unload the model; use unload for that, or ${ways}`);
  if (Math.abs(nanoseconds) >= longest) throw invalidRequest(`${shown} is longer than Ollama can count; ${ways}`);
  return number.test(value) ? Number(value) : value;
}

/** Whole nanoseconds, cut like Go cuts them: less than one is zero. */
function nanosecondsOf(value: string): number | undefined {
  if (value.length > longestText) return undefined;
  if (number.test(value)) {
    // Ollama takes any negative number for "for ever", however small, so only a positive one can be cut to zero.
    const amount = Number(value) * 1e9;
    return amount < 0 ? amount : Math.trunc(amount);
  }
  if (!duration.test(value)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of value.matchAll(part)) sum += Math.trunc(Number(amount) * (units[unit ?? ''] ?? 0));
  return sum !== 0 && value.startsWith('-') ? -sum : sum;
}
