/** How messages of steps are put. */

/** `a`, `a or b`, `a, b or c` */
export function listed(words: readonly string[], last: 'or' | 'and'): string {
  if (words.length < 2) return words.join('');
  return `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
}

/** No longer than that many characters; where something is cut off, the last is `…`. */
export function clipped(text: string, longest: number): string {
  const characters = [...text];
  return characters.length <= longest ? text : `${characters.slice(0, longest - 1).join('')}…`;
}

export const joined = (...words: readonly (string | undefined)[]): string | undefined =>
  words.filter(Boolean).join(' ').trim() || undefined;
