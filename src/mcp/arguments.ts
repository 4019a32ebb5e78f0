import { backendError } from '../errors.ts';
import { dryRunName, notABoolean, refuseMisspelt } from '../operations/dryRun.ts';
import { jsonTypeOf, maxInt } from '../operations/input.ts';
import type { Variable } from '../operations/load.ts';

type JsonType = ReturnType<typeof jsonTypeOf>;

/**
 * The variables of an operation from a tool's arguments, as forgiving as callers are used to: agents write `"true"` for
 * true and `""` for nothing, so an optional argument that makes no sense counts as not given, and one that no variable is
 * named after is ignored. Only a required argument is insisted on; that refusal is a `backend_error` by contract.
 */
export function variablesOfArguments(
  variables: readonly Variable[],
  args: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const variable of variables) {
    const { name, toolName, required } = variable;
    const isThere = Object.hasOwn(args, toolName);
    const value = isThere ? meaningOf(variable, args[toolName]) : undefined;
    if (name === dryRunName && isThere && value === undefined && args[toolName] !== null)
      throw notABoolean(toolName, args[toolName]);
    if (value !== undefined) given[name] = value;
    else if (required && isThere)
      throw backendError(`argument "${toolName}" is not ${withArticle(jsonTypeOf(variable))}`);
    else if (required) throw backendError(`required argument "${toolName}" not found`);
  }
  return given;
}

/** Whether a call is to be told, not done. */
export function asksDryRun(args: Readonly<Record<string, unknown>>): boolean {
  refuseMisspelt(Object.keys(args));
  const given = Object.hasOwn(args, dryRunName) ? (args[dryRunName] ?? false) : false;
  const meant = toBoolean(given);
  if (meant === undefined) throw notABoolean(dryRunName, given);
  return meant;
}

/** What an argument means; undefined when it means nothing. */
function meaningOf(variable: Variable, argument: unknown): unknown {
  const type = jsonTypeOf(variable);
  switch (type) {
    case 'string':
      return typeof argument === 'string' && (variable.required || argument.trim() !== '') ? argument : undefined;
    case 'boolean':
      // Without a default, "not given" is an answer of its own: only a real boolean may take its place.
      return variable.required || variable.defaultValue !== undefined || typeof argument === 'boolean'
        ? toBoolean(argument)
        : undefined;
    default:
      return toNumber(argument, type);
  }
}

function toBoolean(argument: unknown): boolean | undefined {
  if (typeof argument === 'boolean') return argument;
  if (typeof argument === 'number') return argument !== 0;
  const word = typeof argument === 'string' ? argument.trim().toLowerCase() : undefined;
  return word === 'true' ? true : word === 'false' ? false : undefined;
}

function toNumber(argument: unknown, type: JsonType): number | undefined {
  const isText = typeof argument === 'string' && argument.trim() !== '';
  const number = isText ? Number(argument) : argument;
  if (typeof number !== 'number' || !Number.isFinite(number)) return undefined;
  if (type === 'number') return number;
  return Math.abs(number) <= maxInt ? Math.trunc(number) : undefined;
}

const withArticle = (type: JsonType) => (type === 'integer' ? `an ${type}` : `a ${type}`);
