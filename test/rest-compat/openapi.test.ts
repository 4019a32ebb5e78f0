import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { schemaFiles } from '../../src/commands/schema.ts';
import { errorCodes } from '../../src/errors.ts';
import { routesOf } from '../../src/rest-compat/routes.ts';
import { schemaCheck } from '../mcp/schemaCheck.ts';
import { caseOf, restRequestOf, startCaseWorld } from '../support/cases.ts';
import { documented, openApi, type Parameter, problemOf, resolved, type Schema } from '../support/openapi.ts';
import { serveRest } from '../support/rest.ts';
import { operations } from '../support/server.ts';

interface Contract {
  readonly paths: Record<
    string,
    Record<
      string,
      {
        readonly operationId: string;
        readonly tool?: string;
        readonly success: string;
        readonly parameters?: readonly string[];
        readonly body?: { readonly required: readonly string[]; readonly properties: readonly string[] };
        readonly answer?: { readonly required: readonly string[]; readonly properties: readonly string[] };
      }
    >
  >;
  readonly schemas: Record<
    string,
    { readonly required: readonly string[]; readonly properties: Record<string, string> }
  >;
}

/** What older clients rely on. */
const contract = JSON.parse(
  readFileSync(new URL('../fixtures/rest/contract.json', import.meta.url), 'utf8'),
) as Contract;

/** Fields that the schema of one route has and the shared one has not. */
const elsewhere: Record<string, readonly string[]> = { Backend: ['backends'] };

const without = (expected: readonly string[], found: readonly string[]) =>
  expected.filter(each => !found.includes(each));
const propertiesOf = (schema: Schema) => Object.keys(resolved(schema).properties ?? {});
/** What the contract knows of a name: all but what asks for a dry run, which older clients never send. */
const isOld = (name: string) => name !== 'dryRun';
const inWords = (parameters: readonly Parameter[] = []) => parameters.map(each => `${each.in} ${each.name}`).sort();

test('the document is OpenAPI 3.1: paths, operations, parameters and responses are what they have to be', () => {
  assert.match(openApi.openapi, /^3\.1\.\d+$/);
  assert.ok(openApi.info.title && openApi.info.version);
  const ids = documented.map(({ operation }) => operation.operationId);
  assert.deepEqual(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    [],
  );
  for (const { path, method, operation } of documented) {
    const where = `${method} ${path}`;
    assert.match(path, /^\/([\w.-]+|\{\w+\})(\/([\w.-]+|\{\w+\}))*$/, where);
    assert.match(method, /^(get|post|delete)$/);
    assert.match(operation.operationId, /^[a-z]\w+$/i);
    assert.ok(operation.summary, where);
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `path ${name}`);
    const { parameters = [] } = operation;
    assert.deepEqual(
      inWords(parameters).filter(name => name.startsWith('path')),
      inPath,
      where,
    );
    for (const parameter of parameters) {
      assert.ok(parameter.schema, where);
      if (parameter.in === 'path') assert.equal(parameter.required, true, where);
    }
    assert.equal(new Set(inWords(parameters)).size, parameters.length, where);
    assert.equal(operation.requestBody !== undefined, method === 'post', where);
    assert.ok(Object.keys(operation.responses).length > 0, where);
    for (const [status, { description, content }] of Object.entries(operation.responses)) {
      assert.match(status, /^([1-5]\d\d|default)$/, where);
      assert.ok(description, where);
      for (const [type, { schema }] of Object.entries(content ?? {})) {
        assert.match(type, /^(application\/(json|yaml)|text\/plain)$/);
        assert.ok(schema, where);
      }
    }
  }
});

test('the document is plain YAML: no anchors, which not every reader follows', () => {
  assert.doesNotMatch(schemaFiles()['openapi.yaml'] ?? '', /[:-] [&*]\w/);
});

test('every schema is JSON Schema 2020-12, and every reference leads somewhere', () => {
  for (const [name, schema] of Object.entries(openApi.components.schemas)) {
    assert.match(name, /^[A-Za-z0-9._-]+$/);
    assert.equal(schema.type, 'object', name);
    assert.doesNotThrow(() => schemaCheck(inlined(schema)), name);
  }
  const references = JSON.stringify(openApi).matchAll(/"\$ref":"([^"]+)"/g);
  const used = new Set([...references].map(([, reference]) => reference));
  for (const reference of used) {
    assert.match(reference ?? '', /^#\/components\/schemas\/\w+$/);
    assert.ok(resolved({ $ref: reference ?? '' }), reference);
  }
  const unused = Object.keys(openApi.components.schemas).filter(name => !used.has(`#/components/schemas/${name}`));
  assert.deepEqual(unused, []);
});

/** The schema with its references written out. */
function inlined(schema: Schema): Schema {
  return JSON.parse(JSON.stringify(schema), (_, value) =>
    typeof value?.$ref === 'string' ? inlined(resolved(value)) : value,
  );
}

/** The status of the answer: that of a dry run comes before it. */
const successOf = (responses: object) =>
  Object.keys(responses)
    .filter(status => status !== 'default')
    .at(-1);

test('every route is documented as it is, and nothing else is', () => {
  const routes = routesOf(operations).map(({ rest, operation }) =>
    [rest.method.toLowerCase(), rest.path.replace('...}', '}'), operation.name, rest.status].join(' '),
  );
  const described = documented
    .filter(({ operation }) => !['healthz', 'readyz', 'backendz', 'getOpenAPI'].includes(operation.operationId))
    .map(({ method, path, operation }) =>
      [method, path, operation.operationId, successOf(operation.responses)].join(' '),
    );
  assert.deepEqual(described.sort(), routes.sort());
});

test('routes, parameters, bodies and answers have the names that older clients know', () => {
  for (const [path, methods] of Object.entries(contract.paths)) {
    for (const [method, expected] of Object.entries(methods)) {
      const where = `${method} ${path}`;
      const found = openApi.paths[path]?.[method] ?? assert.fail(where);
      assert.equal(found.operationId, expected.operationId, where);
      assert.equal(found['x-mcp-tool'], expected.tool, where);
      assert.ok(expected.success in found.responses, where);
      const parameters = found.parameters?.filter(({ name }) => isOld(name));
      assert.deepEqual(inWords(parameters), expected.parameters ?? [], where);
      const body = found.requestBody?.content['application/json']?.schema;
      if (expected.body) {
        assert.deepEqual(body?.required ?? [], expected.body.required, where);
        assert.deepEqual(
          Object.keys(body?.properties ?? {})
            .filter(isOld)
            .sort(),
          [...expected.body.properties].sort(),
          where,
        );
      }
      const schema = found.responses[expected.success]?.content?.['application/json']?.schema;
      // Of two answers the second is that of a dry run.
      const answer = schema?.anyOf?.[0] ?? schema;
      if (expected.answer && answer) {
        assert.deepEqual(without(expected.answer.properties, propertiesOf(answer)), [], where);
        assert.deepEqual(without(expected.answer.required, resolved(answer).required ?? []), [], where);
      }
    }
  }
});

test('shared schemas have the fields that older clients know, of the same types, and write what they count on', () => {
  for (const [name, { required, properties }] of Object.entries(contract.schemas)) {
    const found = openApi.components.schemas[name] ?? assert.fail(name);
    assert.deepEqual(without(required, found.required ?? []), [], `${name} always has`);
    assert.deepEqual(
      without(Object.keys(properties), [...propertiesOf(found), ...(elsewhere[name] ?? [])]),
      [],
      `${name} has`,
    );
    for (const [field, type] of Object.entries(properties)) {
      const schema = found.properties?.[field];
      if (schema) assert.equal(resolved(schema).type, type, `${name}.${field}`);
    }
  }
  assert.deepEqual(propertiesOf(inlined(answerOf('getBackend'))), [...propertiesOf(schemaOf('Backend')), 'backends']);
});

const schemaOf = (name: string) => openApi.components.schemas[name] ?? assert.fail(name);
const answerOf = (operationId: string) =>
  documented.find(({ operation }) => operation.operationId === operationId)?.operation.responses[200]?.content?.[
    'application/json'
  ]?.schema ?? assert.fail(operationId);

test('every route answers what the document says, when it answers and when it refuses', async () => {
  await using world = await startCaseWorld();
  await using server = await serveRest({ gateway: world.gateway });
  for (const operation of operations.filter(({ rest }) => rest)) {
    const { prepare, asks, refusal } = caseOf(operation);
    const asked = restRequestOf(operation, { ...asks, ...(await prepare?.(world)) });
    const answer = await server.send(asked.line, asked.body);
    assert.equal(problemOf(operation.name, answer.status, answer.json), '', asked.line);
    if (!refusal) continue;
    const { line, body } = restRequestOf(operation, refusal.asks);
    const refused = await server.send(line, body);
    assert.ok(refused.status >= 400);
    assert.equal(problemOf(operation.name, refused.status, refused.json), '', line);
  }
});

test('the check of answers is strict: nothing may be missing, of another type, or too much', () => {
  const model = { name: 'a:1b', sizeBytes: 0, loaded: false, backend: 'ollama' };
  assert.equal(problemOf('listModels', 200, { models: [model] }), '');
  assert.equal(problemOf('listModels', 200, { models: [], errors: { ollama: 'down' } }), '');
  for (const wrong of [
    {},
    { models: null },
    { models: [{ ...model, colour: 'red' }] },
    { models: [{ ...model, sizeBytes: '0' }] },
    { models: [{ ...model, sizeBytes: 0.5 }] },
    { models: [{ ...model, digest: null }] },
    { models: [{ ...model, running: { name: 'a:1b' } }] },
    { models: [], errors: { ollama: 5 } },
    { models: [], more: true },
  ]) {
    assert.notEqual(problemOf('listModels', 200, wrong), '', JSON.stringify(wrong));
  }
  for (const code of errorCodes) assert.equal(problemOf('listModels', 400, { error: { code, message: '' } }), '');
  assert.notEqual(problemOf('listModels', 400, { error: { code: 'teapot', message: '' } }), '');
});
