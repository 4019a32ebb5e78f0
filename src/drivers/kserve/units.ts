/** How messages of this backend write sizes and durations. */

const prefixes = ['KiB', 'MiB', 'GiB', 'TiB'] as const;
export const gib = 2 ** 30;

/** `512 B`, `1.5 KiB`, `31.0 GiB` */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  let amount = bytes / 1024;
  let power = 0;
  for (; amount >= 1024 && power < prefixes.length - 1; power++) amount /= 1024;
  return `${amount.toFixed(1)} ${prefixes[power]}`;
}

/** A number with one decimal, and none where that is 0: `14.5`, `16`. */
export const formatAmount = (amount: number) => amount.toFixed(1).replace(/\.0$/, '');

/** Bytes of an amount of GiB; never more than can be counted exactly. */
export const bytesOfGib = (amount: number) => Math.min(Math.round(amount * gib), Number.MAX_SAFE_INTEGER);

/** Milliseconds in Go's spelling: `300ms`, `1.5s`, `10m0s`, `1h0m0s`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return ms === 0 ? '0s' : `${ms}ms`;
  const seconds = `${Number(((ms % 60_000) / 1000).toFixed(3))}s`;
  if (ms < 60_000) return seconds;
  const minutes = `${Math.floor(ms / 60_000) % 60}m`;
  return ms < 3_600_000 ? minutes + seconds : `${Math.floor(ms / 3_600_000)}h${minutes}${seconds}`;
}
