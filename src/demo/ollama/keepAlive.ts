import { ApiError } from './reply.ts';

const milliseconds: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3, // U+00B5, micro sign
  μs: 1e-3, // U+03BC, Greek mu
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

// What Go's durations can hold, about 292 years.
const longest = 2 ** 63 / 1e6;

/** Milliseconds of a duration in Go's notation (`1h30m`, `90s`, `-1m`), refused in Go's words. */
export function parseDuration(text: string): number {
  const invalid = (what: string) => new ApiError(400, `time: ${what} duration ${JSON.stringify(text)}`);
  const negative = text.startsWith('-');
  let rest = text.replace(/^[+-]/, '');
  if (rest === '0') return 0;
  if (rest === '') throw invalid('invalid');
  let total = 0;
  while (rest !== '') {
    const [term = '', number = '', unit = ''] = /^(\d+\.?\d*|\.\d+)([^\d.]*)/.exec(rest) ?? [];
    if (term === '') throw invalid('invalid');
    if (unit === '') throw invalid('missing unit in');
    const factor = milliseconds[unit];
    if (factor === undefined) throw invalid(`unknown unit ${JSON.stringify(unit)} in`);
    total += Number(number) * factor;
    rest = rest.slice(term.length);
  }
  return negative ? -total : total;
}

/** Milliseconds to keep a model after its last use: Infinity for ever, undefined when the request does not say. */
export function readKeepAlive(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' && typeof value !== 'string') {
    throw new ApiError(400, `Unsupported type: '${goType(value)}'`);
  }
  const ms = typeof value === 'number' ? value * 1000 : parseDuration(value);
  return ms < 0 || ms > longest ? Number.POSITIVE_INFINITY : ms;
}

function goType(value: unknown): string {
  if (typeof value === 'boolean') return 'bool';
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}';
}
