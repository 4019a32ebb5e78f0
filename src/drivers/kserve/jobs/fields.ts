/** Looking into data of which nothing is known. */

export type Field = unknown;
export type Fields = Readonly<Record<string, Field>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of a mapping; none when it is none. */
export const fieldsOf = (value: Field): Fields => (isFields(value) ? value : {});
export const listOf = (value: Field): readonly Field[] => (Array.isArray(value) ? value : []);
/** A text that says something. */
export const textOf = (value: Field): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
/** A count: whole, not below 0, and exact. */
export const wholeNumber = (value: Field): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
/** Milliseconds since the epoch; undefined when it is no time. */
export function timeOf(value: Field): number | undefined {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
