import { invalidRequest } from '../errors.ts';
import { dryRunName, notABoolean, refuseMisplaced, refuseMisspelt } from '../operations/dryRun.ts';
import { byVariable, jsonTypeOf, maxInt } from '../operations/input.ts';
import type { Variable } from '../operations/load.ts';
import type { Route } from './routes.ts';

type Variables = Record<string, unknown>;

/** What a request asks of its route. */
export interface Asked {
  readonly variables: Variables;
  /** It is to be told, not done. */
  readonly dryRun: boolean;
}

/** What a GET or DELETE asks; it has a body only by mistake. */
export function askedByQuery(
  route: Route,
  captured: Readonly<Record<string, string>>,
  query: URLSearchParams,
  body = '',
): Asked {
  if (route.rest.dryRun) {
    refuseMisspelt(query.keys());
    refuseMisplaced(namesIn(body), `ask with ?${dryRunName}=true`);
  }
  const texts = route.rest.dryRun ? query.getAll(dryRunName) : [];
  const wrong = texts.find(text => !/^(true|false)$/i.test(text));
  if (wrong !== undefined) throw notABoolean(dryRunName, wrong);
  const dryRun = texts.some(text => text.toLowerCase() === 'true');
  return { variables: variablesOfQuery(route, captured, query), dryRun };
}

/** The names of a body that nobody reads. */
const namesIn = (body: string): readonly string[] => Object.keys(valuesIn(body));

function valuesIn(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    // Whatever it is, it names nothing.
    return {};
  }
}

/** What a request that makes no sense was about, as far as one can tell: all that its query, body and path name. */
export function namedBy(
  { operation }: Route,
  captured: Readonly<Record<string, string>>,
  query: URLSearchParams,
  body: string,
): Readonly<Record<string, unknown>> {
  const given: Readonly<Record<string, unknown>> = { ...Object.fromEntries(query), ...valuesIn(body), ...captured };
  return { ...given, ...byVariable(operation.variables, ({ restName }) => restName, given) };
}

/** The variables of a GET or DELETE: what its path captured, and its query. */
function variablesOfQuery(
  { operation }: Route,
  captured: Readonly<Record<string, string>>,
  query: URLSearchParams,
): Variables {
  const variables: Variables = {};
  for (const variable of operation.variables) {
    const inPath = captured[variable.restName];
    if (inPath !== undefined) {
      // Only what captures the rest of a path can be empty.
      if (inPath === '') throw invalidRequest(`a ${variable.name} reference is required`);
      variables[variable.name] = inPath;
      continue;
    }
    // A URL has no other way to say nothing.
    const text = query.get(variable.restName) ?? (variable.required ? '' : null);
    if (text !== null) variables[variable.name] = fromText(variable, text);
  }
  return variables;
}

/** A value written in a URL. */
function fromText(variable: Variable, text: string): unknown {
  switch (jsonTypeOf(variable)) {
    case 'boolean':
      // Anything but `false` says yes: the contract's reading of `?unwire=`.
      return text.toLowerCase() !== 'false';
    case 'integer':
      if (!/^\d+$/.test(text)) throw invalidRequest(`${variable.restName} must be a non-negative integer`);
      return Math.min(Number(text), maxInt);
    default:
      return text;
  }
}

/** The fields any POST body may have: one body type serves all routes. */
export type BodyFields = ReadonlyMap<string, Variable>;

export function bodyFieldsOf(routes: readonly Route[]): BodyFields {
  const posted = routes.filter(({ rest }) => rest.method === 'POST');
  const variables = posted.flatMap(({ operation }) => operation.variables);
  return new Map(variables.map(variable => [variable.restName.toLowerCase(), variable]));
}

/**
 * What a POST asks. Field names match without regard to case, the last of a repeated one wins, unknown fields are
 * ignored, a null is a field not sent; known fields are checked for their type also on routes that do not use them.
 */
export function askedByBody(
  { operation, rest }: Route,
  fields: BodyFields,
  body: string,
  query = new URLSearchParams(),
): Asked {
  if (rest.dryRun) refuseMisplaced(query.keys(), `write "${dryRunName}": true into the JSON body`);
  const oneOf = rest.oneOf.length > 0 ? rest.oneOf : requiredOf(operation.variables);
  if (body.trim() === '') throw invalidRequest(`JSON body with "${oneOf[0]}" is required`);
  const sent = new Map<string, unknown>();
  let dryRun: unknown = false;
  const written = parseObject(body);
  if (rest.dryRun) refuseMisspelt(Object.keys(written));
  for (const [name, value] of Object.entries(written)) {
    if (rest.dryRun && name.toLowerCase() === dryRunName.toLowerCase()) dryRun = value ?? false;
    const field = fields.get(name.toLowerCase());
    if (!field || value === null) continue;
    const type = jsonTypeOf(field);
    if (!isOfType(value, type)) {
      throw invalidRequest(`invalid JSON: "${field.restName}" must be a ${type}, got ${inWords(value)}`);
    }
    sent.set(field.restName, value);
  }
  if (typeof dryRun !== 'boolean') throw notABoolean(dryRunName, dryRun);
  if (oneOf.length > 0 && oneOf.every(name => String(sent.get(name) ?? '').trim() === '')) {
    throw invalidRequest(`"${oneOf[0]}" is required`);
  }
  const given = operation.variables.filter(variable => sent.has(variable.restName));
  const variables = Object.fromEntries(given.map(variable => [variable.name, sent.get(variable.restName)]));
  return { variables, dryRun };
}

const requiredOf = (variables: readonly Variable[]) =>
  variables.filter(variable => variable.required).map(variable => variable.restName);

function parseObject(body: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw invalidRequest(`invalid JSON: ${(error as Error).message}`);
  }
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw invalidRequest(`invalid JSON: the body must be an object, got ${inWords(value)}`);
  }
  return value as Record<string, unknown>;
}

/** A value for a message: a short one as it is. */
function inWords(value: unknown): string {
  if (typeof value === 'object') return Array.isArray(value) ? 'an array' : 'an object';
  const text = JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function isOfType(value: unknown, type: ReturnType<typeof jsonTypeOf>): boolean {
  return type === 'integer' ? Number.isSafeInteger(value) : typeof value === type;
}
