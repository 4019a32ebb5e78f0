import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildSchema, findBreakingChanges } from 'graphql';
import { parse } from 'yaml';
import { docsFiles, schemaFiles } from '../../src/commands/schema.ts';
import { toolNamesOf } from '../../src/mcp/index.ts';
import { loadOperations } from '../../src/operations/load.ts';
import { printedSchema, schema } from '../../src/resolvers/schema.ts';

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
/** What clients of the last release rely on. A release replaces these files; nothing else does. */
const released = (name: string) => read(`../fixtures/released/${name}`);

const generated = { schema: schemaFiles(), docs: docsFiles() };
for (const [folder, files] of Object.entries(generated)) {
  for (const [name, text] of Object.entries(files)) {
    test(`${folder}/${name} is what the code says`, () => {
      // No diff of thousands of lines: git has it after that command.
      assert.ok(read(`../../${folder}/${name}`) === text, 'it is stale: run `npm run schema` and commit the file');
    });
  }
}

test('the graph breaks no client of the last release', () => {
  const changes = findBreakingChanges(buildSchema(released('schema.graphql')), buildSchema(printedSchema()));
  assert.deepEqual(
    changes.map(({ type, description }) => `${type}: ${description}`),
    [],
  );
});

test('no tool of the last release is gone', () => {
  const names = toolNamesOf(loadOperations(schema));
  const gone = (JSON.parse(released('tools.json')) as string[]).filter(name => !names.includes(name));
  assert.deepEqual(gone, []);
});

interface OpenApi {
  readonly paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
  readonly components: { schemas: Record<string, { required?: string[]; properties?: Record<string, unknown> }> };
}

test('REST keeps its routes, statuses, and the fields of its schemas', () => {
  const before = parse(released('openapi.yaml')) as OpenApi;
  const now = parse(schemaFiles()['openapi.yaml'] as string) as OpenApi;
  const gone: string[] = [];
  for (const [path, methods] of Object.entries(before.paths)) {
    for (const [method, { responses }] of Object.entries(methods)) {
      const kept = now.paths[path]?.[method]?.responses ?? {};
      for (const status of Object.keys(responses)) if (!(status in kept)) gone.push(`${method} ${path} ${status}`);
    }
  }
  for (const [name, { required = [], properties = {} }] of Object.entries(before.components.schemas)) {
    const kept = now.components.schemas[name];
    for (const field of Object.keys(properties))
      if (!(field in (kept?.properties ?? {}))) gone.push(`${name}.${field}`);
    for (const field of required) if (!kept?.required?.includes(field)) gone.push(`${name}.${field} always written`);
  }
  assert.deepEqual(gone, []);
});

test('the OpenAPI document has what clients look for in it', () => {
  const { components } = parse(read('../../schema/openapi.yaml')) as OpenApi;
  assert.ok(components.schemas.Backend?.required?.includes('loading'));
  assert.ok('keepAliveScope' in (components.schemas.Loading?.properties ?? {}));
  assert.ok(components.schemas.NodeInfo);
});

test('every root field is reached by a stored operation, or is for the graph alone', () => {
  const graphOnly = ['Query.node', 'Query.reasons', 'Subscription.nodes', 'Subscription.presets'];
  const reached = new Set(
    loadOperations(schema).map(({ type, document }) => {
      const [operation] = document.definitions;
      const field = operation?.kind === 'OperationDefinition' ? operation.selectionSet.selections[0] : undefined;
      return `${type}.${field?.kind === 'Field' ? field.name.value : ''}`.replace(/^./, first => first.toUpperCase());
    }),
  );
  const roots = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const fields = roots.flatMap(root => Object.keys(root?.getFields() ?? {}).map(field => `${root?.name}.${field}`));
  assert.deepEqual(fields.filter(field => !reached.has(field)).sort(), graphOnly);
});
