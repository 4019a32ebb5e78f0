import { Refusal } from '../host/reply.ts';
import { refusal } from './memory.ts';
import { type Entry, findEntry, publicName, type State } from './models.ts';

/** The fields of a body, whatever its content type said. */
export function bodyOf(raw: string): Readonly<Record<string, unknown>> {
  if (raw === '') throw new Refusal(400, { error: 'Request body is required but was empty' });
  try {
    const value: unknown = JSON.parse(raw);
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  } catch {
    throw new Refusal(400, { error: 'Invalid JSON in request body: [json.exception.parse_error.101] parse error' });
  }
}

/** The name that a request must have; without it the server stumbles over its own library. */
export function nameOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const kind = value === undefined || value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  throw new Refusal(500, { error: `[json.exception.type_error.302] type must be string, but is ${kind}` });
}

/** The model of the catalog that a request names. */
export function entryOf(state: State, name: string): Entry {
  const entry = findEntry(state, name);
  if (!entry) throw notFound(state, name);
  return entry;
}

function notFound(state: State, name: string): Refusal {
  const names = [...state.catalog.values()].map(entry => `'${publicName(state, entry)}'`);
  const more = names.length > 2 ? `, and ${names.length - 2} more` : '';
  const message = `Model '${name}' was not found. Available models include: ${names.slice(0, 2).join(', ')}${more}.`;
  return refusal(404, 'model_not_found', message, name);
}
