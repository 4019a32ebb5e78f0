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
