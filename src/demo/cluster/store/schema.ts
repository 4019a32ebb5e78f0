import { badRequest, invalid, type Problem } from '../status.ts';
import { schemaOf } from './catalogue.ts';
import type { Kind } from './kinds.ts';
import { isRecord, type KubernetesObject } from './object.ts';

/** What a definition says of the objects of its kind, as far as it is heeded here. */
interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-int-or-string'?: boolean;
}

/** Every object has these, whatever its schema says. */
const everywhere = ['apiVersion', 'kind', 'metadata'];

/**
 * An object as its schema in a version wants it: without unknown fields, with defaults. Built-in kinds and kinds without a
 * schema take everything. Throws `Invalid` for what does not fit, and `BadRequest` for unknown fields when that is strict.
 */
export function fitted(kind: Kind, version: string, object: KubernetesObject, isStrict: boolean): KubernetesObject {
  const schema = schemaOf(kind, version) as Schema | undefined;
  if (!schema) return object;
  const unknown: string[] = [];
  const root = { ...schema, 'x-kubernetes-embedded-resource': true };
  const result = shaped(root, object, '', unknown) as KubernetesObject;
  if (isStrict && unknown.length > 0) {
    const fields = unknown.map(path => `unknown field "${path}"`).join(', ');
    const words = `cannot be handled as a ${kind.kind}: strict decoding error: ${fields}`;
    throw badRequest(`${kind.kind} in version "${version}" ${words}`);
  }
  const problems = misfits(schema, result, '');
  if (problems.length > 0) throw invalid(kind, object.metadata.name, problems);
  return result;
}

const below = (path: string, field: string) => (path === '' ? field : `${path}.${field}`);

/** Tells which fields it leaves out. */
function shaped(schema: Schema, value: unknown, path: string, unknown: string[]): unknown {
  const { properties = {}, additionalProperties, items } = schema;
  if (Array.isArray(value)) {
    return items ? value.map((item, index) => shaped(items, item, `${path}[${index}]`, unknown)) : value;
  }
  if (!isRecord(value)) return value;
  const result: Record<string, unknown> = {};
  for (const [field, part] of Object.entries(value)) {
    const known = properties[field] ?? (isRecord(additionalProperties) ? additionalProperties : undefined);
    const isKept =
      additionalProperties === true ||
      schema['x-kubernetes-preserve-unknown-fields'] ||
      (schema['x-kubernetes-embedded-resource'] && everywhere.includes(field));
    if (schema['x-kubernetes-embedded-resource'] && field === 'metadata') result[field] = part;
    else if (known) result[field] = shaped(known, part, below(path, field), unknown);
    else if (isKept) result[field] = part;
    else unknown.push(below(path, field));
  }
  for (const [field, known] of Object.entries(properties)) {
    const isMissing = result[field] === undefined || (result[field] === null && !known.nullable);
    if (known.default !== undefined && isMissing) {
      result[field] = shaped(known, known.default, below(path, field), unknown);
    }
  }
  return result;
}

function misfits(schema: Schema, value: unknown, path: string): readonly Problem[] {
  if (value === null && schema.nullable) return [];
  if (!isOfType(schema, value)) {
    const said = JSON.stringify(Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value);
    return [[path, `Invalid value: ${said}: ${path} in body must be of type ${schema.type}: ${said}`]];
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items ? value.flatMap((item, index) => misfits(items, item, `${path}[${index}]`)) : [];
  }
  if (!isRecord(value)) return wrongs(schema, value).map(words => [path, words.replace('%', path)]);
  const { properties = {}, additionalProperties, required = [] } = schema;
  const missing = required.filter(field => value[field] === undefined);
  return [
    ...missing.map(field => [below(path, field), 'Required value'] as const),
    ...Object.entries(value).flatMap(([field, part]) => {
      const known =
        properties[field] ?? (isRecord(additionalProperties) ? (additionalProperties as Schema) : undefined);
      return known ? misfits(known, part, below(path, field)) : [];
    }),
  ];
}

function isOfType({ type, ...schema }: Schema, value: unknown): boolean {
  if (schema['x-kubernetes-int-or-string']) return typeof value === 'string' || Number.isInteger(value);
  if (type === undefined) return true;
  if (type === 'object') return isRecord(value);
  if (type === 'array') return Array.isArray(value);
  if (type === 'integer') return Number.isInteger(value);
  // The names of the others are those of JavaScript.
  const own: string = typeof value;
  return own === type;
}

/** What is wrong with a text, number or boolean of the right type; `%` stands for its path. */
function wrongs(schema: Schema, value: unknown): readonly string[] {
  const { pattern, minimum, maximum, minLength, maxLength } = schema;
  const shown = JSON.stringify(value);
  const found: string[] = [];
  const wrong = (words: string) => found.push(`Invalid value: ${shown}: % in body ${words}`);
  if (schema.enum && !schema.enum.includes(value)) {
    found.push(
      `Unsupported value: ${shown}: supported values: ${schema.enum.map(each => JSON.stringify(each)).join(', ')}`,
    );
  }
  if (typeof value === 'number') {
    if (minimum !== undefined && value < minimum) wrong(`should be greater than or equal to ${minimum}`);
    if (maximum !== undefined && value > maximum) wrong(`should be less than or equal to ${maximum}`);
  }
  if (typeof value === 'string') {
    if (minLength !== undefined && value.length < minLength) wrong(`should be at least ${minLength} chars long`);
    if (maxLength !== undefined && value.length > maxLength)
      found.push(`Too long: may not be more than ${maxLength} bytes`);
    if (pattern !== undefined && !new RegExp(pattern).test(value)) wrong(`should match '${pattern}'`);
  }
  return found;
}
