import { invalidRequest, quoted } from '../errors.ts';
import type { JsonSchema } from './shape.ts';

/** What asks for a dry run: a field of a body, a parameter of a query, an argument of a tool. */
export const dryRunName = 'dryRun';

export const dryRunSchema = (): JsonSchema => ({
  type: 'boolean',
  description: 'Only answer what would be done, or why it would be refused.',
  default: false,
});

/** Who asks what would be done, in whatever words, does not want it done. */
export const notABoolean = (name: string, value: unknown) =>
  invalidRequest(
    `"${name}" is ${quoted(typeof value === 'string' ? value : JSON.stringify(value))}, it must be true or false`,
  );

/** Whether a name was meant for that, however it is spelt. */
const isMeant = (name: string) => name.replace(/[-_\s]/g, '').toLowerCase() === dryRunName.toLowerCase();

/** Whether something was asked only to be told, in whatever words: then nothing was to be done. */
export const meansDryRun = (asked: Readonly<Record<string, unknown>>): boolean =>
  Object.entries(asked).some(([name, value]) => isMeant(name) && String(value).toLowerCase() !== 'false');

/** Throws for a dry run that is asked for in other words than these, which nobody would hear. */
export function refuseMisspelt(names: Iterable<string>): void {
  for (const name of names) {
    const isHeard = name.toLowerCase() === dryRunName.toLowerCase();
    if (isMeant(name) && !isHeard) throw invalidRequest(`${quoted(name)} is not known; write "${dryRunName}"`);
  }
}

/** Throws for a dry run that is asked for where nobody looks. */
export function refuseMisplaced(names: Iterable<string>, wayOut: string): void {
  for (const name of names) if (isMeant(name)) throw invalidRequest(`${quoted(name)} is not read here; ${wayOut}`);
}
