import { errorCodes, GatewayError } from '../errors.ts';
import { dryRunName, dryRunSchema } from '../operations/dryRun.ts';
import { inputSchemaOf } from '../operations/input.ts';
import type { Operation, RestRoute, Variable } from '../operations/load.ts';
import { type JsonSchema, jsonSchemaOf, type ObjectShape, objectSchema } from '../operations/shape.ts';
import { type Route, routesOf } from './routes.ts';

const text = (description: string) => ({ description, content: { 'text/plain': { schema: { type: 'string' } } } });

/** Routes that are no operations. */
const fixedPaths = {
  '/healthz': {
    get: {
      operationId: 'healthz',
      summary: 'Whether the process serves.',
      responses: { 200: text('`ok`: it does.') },
    },
  },
  '/readyz': {
    get: {
      operationId: 'readyz',
      summary: 'Whether requests should be sent here.',
      responses: { 200: text('`ok`: send requests.'), 503: text('Stopping, or not there yet.') },
    },
  },
  '/backendz': {
    get: {
      operationId: 'backendz',
      summary: 'Whether every backend is healthy.',
      responses: {
        200: text('`ok`: every backend is healthy.'),
        503: text('`backend <name> not healthy: <message>` of each that is not, joined by `; `.'),
      },
    },
  },
  '/api/v1/openapi.yaml': {
    get: {
      operationId: 'getOpenAPI',
      summary: 'Describes this API.',
      responses: {
        200: { description: 'This document.', content: { 'application/yaml': { schema: { type: 'string' } } } },
      },
    },
  },
};

const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: {
          type: 'string',
          enum: errorCodes,
          description: errorCodes.map(code => `\`${code}\`: ${new GatewayError(code, '').status}`).join(', '),
        },
        message: { type: 'string', description: 'A sentence a person can act on.' },
      },
    },
  },
};

/** The OpenAPI 3.1 document of the routes: operations, and the shapes their answers share. */
export function openApiOf(operations: readonly Operation[], version: string): JsonSchema {
  const schemas: Record<string, JsonSchema> = { Error: errorSchema };
  const refer = (shape: ObjectShape): JsonSchema | undefined => {
    if (!shape.name) return undefined;
    schemas[shape.name] ??= objectSchema(shape, refer);
    return { $ref: `#/components/schemas/${shape.name}` };
  };
  const paths: Record<string, Record<string, unknown>> = { ...fixedPaths };
  for (const route of routesOf(operations)) {
    const path = route.rest.path.replace('...}', '}');
    paths[path] = { ...paths[path], [route.rest.method.toLowerCase()]: pathItem(route, refer) };
  }
  const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);
  return {
    openapi: '3.1.0',
    info: {
      title: 'model-manager API',
      version,
      description: 'Models of every backend: list, pull, load, unload, delete, and follow what takes long.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    // Nobody is asked who they are.
    security: [],
    paths: Object.fromEntries(Object.entries(paths).sort(byName)),
    components: { schemas: Object.fromEntries(Object.entries(schemas).sort(byName)) },
  };
}

function pathItem({ operation, rest }: Route, refer: (shape: ObjectShape) => JsonSchema | undefined) {
  const { variables, summary, description, name, tool, answer } = operation;
  const isPost = rest.method === 'POST';
  const parameters = isPost
    ? []
    : [...variables.map(variable => parameter(variable, rest.path)), ...(rest.dryRun ? [dryRunParameter()] : [])];
  return {
    operationId: name,
    summary,
    ...(description !== summary && { description }),
    ...(tool && { 'x-mcp-tool': tool.name }),
    ...(parameters.length > 0 && { parameters }),
    ...(isPost && { requestBody: { required: true, content: json(bodySchema(variables, rest.dryRun !== undefined)) } }),
    responses: {
      ...answersOf(rest, jsonSchemaOf(answer, refer), rest.dryRun && jsonSchemaOf(rest.dryRun.answer, refer)),
      default: {
        description: 'A refusal: switch on `error.code`.',
        content: json({ $ref: '#/components/schemas/Error' }),
      },
    },
  };
}

/** By status: the answer, and that of a dry run, which is always 200. */
function answersOf({ status }: RestRoute, answer: JsonSchema, plan: JsonSchema | undefined) {
  if (!plan) return { [status]: { description: 'The answer.', content: json(answer) } };
  if (status === 200) {
    const either = { anyOf: [answer, plan] };
    return { 200: { description: 'The answer; with `dryRun` what would be done.', content: json(either) } };
  }
  return {
    200: { description: 'With `dryRun`: what would be done.', content: json(plan) },
    [status]: { description: 'The answer.', content: json(answer) },
  };
}

const json = (schema: JsonSchema) => ({ 'application/json': { schema } });

function parameter(variable: Variable, path: string) {
  const { description, ...schema } = inputSchemaOf(variable);
  const inPath = new RegExp(`\\{${variable.restName}(\\.\\.\\.)?\\}`).test(path);
  return {
    name: variable.restName,
    in: inPath ? 'path' : 'query',
    ...((inPath || variable.required) && { required: true }),
    ...(description !== undefined && { description }),
    schema,
  };
}

function dryRunParameter() {
  const { description, ...schema } = dryRunSchema();
  return { name: dryRunName, in: 'query', description, schema };
}

function bodySchema(variables: readonly Variable[], hasDryRun: boolean): JsonSchema {
  const required = variables.filter(variable => variable.required).map(variable => variable.restName);
  return {
    type: 'object',
    ...(required.length > 0 && { required }),
    properties: {
      ...Object.fromEntries(variables.map(variable => [variable.restName, inputSchemaOf(variable)])),
      ...(hasDryRun && { [dryRunName]: dryRunSchema() }),
    },
  };
}
