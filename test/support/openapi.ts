/** The OpenAPI document as a check of answers, stricter than the document: nothing may be in an answer that is not in it. */
import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { schemaFiles } from '../../src/commands/schema.ts';

export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly additionalProperties?: Schema | boolean;
  readonly description?: string;
  readonly [keyword: string]: unknown;
}

interface Content {
  readonly [type: string]: { readonly schema: Schema };
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly required?: boolean;
  readonly schema: Schema;
}

export interface OpenApiOperation {
  readonly operationId: string;
  readonly 'x-mcp-tool'?: string;
  readonly summary?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

export interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export const openApi = parse(schemaFiles()['openapi.yaml'] as string) as OpenApi;

/** Every operation of the document with its method and path. */
export const documented = Object.entries(openApi.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

const formats = {
  int64: { type: 'number' as const, validate: Number.isSafeInteger },
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/,
};

const ajv = new Ajv2020({ strict: true, allErrors: true, formats });
ajv.addVocabulary(['components']);

/** The schema with every object closed. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  return 'properties' in inner && !('additionalProperties' in inner)
    ? { ...inner, additionalProperties: false }
    : inner;
}

const components = closed(openApi.components) as OpenApi['components'];
const checks = new Map<string, (value: unknown) => string>();

/** What is wrong with a body, or ''. The response is that of the status, else the default one. */
export function problemOf(operationId: string, status: number, body: unknown): string {
  const key = `${operationId} ${status}`;
  let check = checks.get(key);
  if (!check) {
    const { operation } = documented.find(each => each.operation.operationId === operationId) ?? assert.fail(key);
    const response = operation.responses[status] ?? operation.responses.default ?? assert.fail(key);
    const schema = response.content?.['application/json']?.schema ?? assert.fail(`${key} has no schema`);
    const validate = ajv.compile({ ...(closed(schema) as object), components });
    check = value => (validate(value) ? '' : ajv.errorsText(validate.errors));
    checks.set(key, check);
  }
  return check(body);
}

/** The schema behind a reference. */
export const resolved = (schema: Schema): Schema =>
  schema.$ref ? (openApi.components.schemas[schema.$ref.replace('#/components/schemas/', '')] as Schema) : schema;
