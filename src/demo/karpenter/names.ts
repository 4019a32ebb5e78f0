/** Names as Karpenter and the cloud give them, by the place among all that were given. */

const letters = 'bcdfghjklmnpqrstvwxz2456789';
const count = letters.length ** 5;
// Without a common divisor with the count: no two places have the same ending until all were given.
const stride = 9_301_771;

export function claimName(pool: string, place: number): string {
  const number = ((place + 1) * stride) % count;
  const ending = [4, 3, 2, 1, 0].map(at => letters[Math.floor(number / letters.length ** at) % letters.length]);
  return `${pool}-${ending.join('')}`;
}

export const nodeName = (zone: string, place: number): string =>
  `ip-10-0-${12 + Math.floor(place / 250)}-${4 + (place % 250)}.${zone.slice(0, -1)}.compute.internal`;

export const providerId = (zone: string, place: number): string =>
  `aws:///${zone}/i-0${((place + 1) * stride).toString(16).padStart(16, '0')}`;
