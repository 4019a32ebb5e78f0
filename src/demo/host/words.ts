/** Words with the space before them, as tokens come. */
export const wordsOf = (text: string): string[] => text.match(/\s*\S+/g) ?? [];

/** A unit vector that depends on the text alone. */
export function embedding(text: string, length: number): number[] {
  let seed = 2166136261;
  const vector = Array.from({ length }, (_, place) => {
    const code = text.charCodeAt(place % Math.max(1, text.length)) || 0;
    seed = Math.imul(seed ^ (code + place), 16777619);
    return seed / 2 ** 31;
  });
  const norm = Math.hypot(...vector) || 1;
  return vector.map(number => number / norm);
}
