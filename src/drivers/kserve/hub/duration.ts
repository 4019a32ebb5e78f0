/** A time as Go writes it: `4s`, `300ms`, `1.5s`, `10m0s`, `1h0m0s`. */
export function goDuration(ms: number): string {
  const whole = Math.round(ms);
  if (whole === 0) return '0s';
  if (whole < 1000) return `${whole}ms`;
  const minutes = Math.floor(whole / 60_000);
  const seconds = `${(whole - minutes * 60_000) / 1000}s`;
  if (minutes === 0) return seconds;
  const hours = Math.floor(minutes / 60);
  return hours === 0 ? `${minutes}m${seconds}` : `${hours}h${minutes - hours * 60}m${seconds}`;
}
