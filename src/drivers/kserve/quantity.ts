/**
 * Quantities as Kubernetes writes them: `500m`, `4`, `1e3`, `16Gi`. They are counted exactly, in billionths as the API
 * server does, and only then made a number: the nearest one there is.
 */
import type { Read } from '../../config/values.ts';
import { quoted } from '../../errors.ts';

const binary = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const decimal: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, '': 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 };

const pattern = /^(?<sign>[+-]?)(?:(?<whole>\d+)(?:\.(?<fraction>\d*))?|\.(?<only>\d+))(?<suffix>.*)$/s;

/** The API server keeps no more. */
const largest = 2n ** 63n - 1n;
const billion = 10n ** 9n;
/** More characters than any quantity has. */
const longest = 64;

/** How much a quantity is, in its base unit: cores, bytes or pieces. It may be negative. */
export function parseQuantity(text: string): Read<number> {
  const parts = text.length <= longest ? pattern.exec(text)?.groups : undefined;
  if (!parts) return { problem: 'want a Kubernetes quantity such as 500m, 4 or 16Gi' };
  const { sign, whole = '', fraction = '', only = '', suffix = '' } = parts;
  const factor = factorOf(suffix);
  if (!factor) {
    return { problem: `unknown suffix ${quoted(suffix)}: want one of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei` };
  }
  const digits = BigInt(whole + fraction + only);
  const exponent = factor.exponent - fraction.length - only.length + 9;
  const billionths = scaled(digits * factor.multiplier, exponent);
  const [units, rest] = billionths > largest * billion ? [largest, 0n] : [billionths / billion, billionths % billion];
  const amount = Number(`${units}.${String(rest).padStart(9, '0')}`);
  return { value: sign === '-' && amount > 0 ? -amount : amount };
}

/** A quantity that cannot be below zero, such as what a node has; undefined when it is none. */
export function amountOf(text: string | undefined): number | undefined {
  const read = parseQuantity(text ?? '');
  return 'value' in read && read.value >= 0 ? read.value : undefined;
}

function factorOf(suffix: string): { multiplier: bigint; exponent: number } | undefined {
  const power = binary.indexOf(suffix);
  if (power >= 0) return { multiplier: 1024n ** BigInt(power + 1), exponent: 0 };
  const written = /^[eE](?<exponent>[+-]?\d+)$/.exec(suffix)?.groups?.exponent;
  const exponent =
    written === undefined ? (Object.hasOwn(decimal, suffix) ? decimal[suffix] : undefined) : Number(written);
  // Beyond a hundred there is nothing but 0 and what is more than can be kept.
  return exponent === undefined ? undefined : { multiplier: 1n, exponent: Math.max(-100, Math.min(100, exponent)) };
}

/** `digits × 10^exponent`; what is left of a unit is a whole one. */
function scaled(digits: bigint, exponent: number): bigint {
  if (exponent >= 0) return digits * 10n ** BigInt(exponent);
  const divisor = 10n ** BigInt(-exponent);
  return (digits + divisor - 1n) / divisor;
}
