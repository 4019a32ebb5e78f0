import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isEnumType } from 'graphql';
import { schema } from '../src/resolvers/schema.ts';
import { callTool } from './mcp/muster.ts';
import { caseOf, restRequestOf, startCaseWorld, toolArgumentsOf } from './support/cases.ts';
import { refusalOf, serveRest } from './support/rest.ts';
import { ask, operations } from './support/server.ts';

/** What differs from one question to the next: ids and times of jobs. */
const settled = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, inner) =>
      inner !== null && /^(id|jobId|createdAt|startedAt|finishedAt)$/.test(key) ? key : inner,
    ),
  );

/** The contract's word of every enum value. No two enums may have different words for one name. */
const words = new Map<unknown, string>();
for (const type of Object.values(schema.getTypeMap()).filter(isEnumType)) {
  if (type.name.startsWith('__')) continue;
  for (const { name, value } of type.getValues()) {
    assert.equal(words.get(name) ?? value, value, `${type.name}.${name}`);
    words.set(name, value);
  }
}

/**
 * What the graph says, without the ways it has of its own: an enum value is a word of the contract, null is absent, and a
 * list of failures or labels is an object.
 */
function facts(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) {
    if (key === 'errors') return Object.fromEntries(value.map(({ backend, message }) => [backend, message]));
    if (key === 'nodeSelector') return Object.fromEntries(value.map(label => [label.key, label.value]));
    return value.map(item => facts(item));
  }
  if (typeof value === 'object' && value !== null) {
    const known = Object.entries(value).filter(([, inner]) => inner !== null);
    return Object.fromEntries(known.map(([name, inner]) => [name, facts(inner, name)]));
  }
  return words.get(value) ?? value;
}

/** Without zeros and nulls, where the graph has null for "unknown" and the old faces have 0, or the other way round. */
const withoutZeros = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (_, inner) => (inner === 0 || inner === false || inner === null ? undefined : inner)),
  );

test('every stored operation says the same on all faces, and refuses in the same words', {
  timeout: 60_000,
}, async () => {
  await using world = await startCaseWorld();
  await using rest = await serveRest({ gateway: world.gateway });
  const { server } = rest;

  for (const operation of operations.filter(({ type }) => type !== 'subscription')) {
    const { name, text, rootKey } = operation;
    const { prepare, asks, refusal } = caseOf(operation);
    if (asks) {
      const prepared = async () => ({ ...asks, ...(await prepare?.(world)) });

      const graph = await ask(server, text, await prepared());
      assert.equal(graph.json.errors, undefined, `${name}: ${graph.text}`);
      const expected = facts(settled(graph.json.data[rootKey]));

      if (operation.rest) {
        const { line, body } = restRequestOf(operation, await prepared());
        const answer = await rest.send(line, body);
        assert.equal(answer.status, operation.rest.status, `${line}: ${answer.text}`);
        assert.deepEqual(withoutZeros(settled(answer.json)), withoutZeros(expected), line);
      }
      if (operation.tool) {
        const answer = await callTool(
          `${server.url}/mcp`,
          operation.tool.name,
          toolArgumentsOf(operation, await prepared()),
        );
        assert.equal(answer.isError, false, `${operation.tool.name}: ${answer.text}`);
        assert.deepEqual(withoutZeros(settled(answer.data)), withoutZeros(expected), operation.tool.name);
        assert.deepEqual(answer.data, answer.structuredContent);
      }
    }

    if (!refusal) {
      assert.deepEqual(operation.variables, [], `${name} can be asked wrongly, so it needs a refusal`);
      continue;
    }
    const refused = await ask(server, text, refusal.asks);
    const [error] = refused.json.errors;
    const { code, http } = error.extensions;
    assert.equal(code, refusal.code, name);
    assert.equal(refused.json.data[rootKey] ?? null, null);
    if (operation.rest) {
      const { line, body } = restRequestOf(operation, refusal.asks);
      assert.equal(refusalOf(await rest.send(line, body)), `${http.status} ${code}: ${error.message}`, line);
    }
    if (operation.tool) {
      const answer = await callTool(`${server.url}/mcp`, operation.tool.name, toolArgumentsOf(operation, refusal.asks));
      assert.deepEqual([answer.isError, answer.text], [true, `${code}: ${error.message}`]);
    }
  }
});

test('REST and MCP write the same, zeros and all', { timeout: 60_000 }, async () => {
  await using world = await startCaseWorld();
  await using rest = await serveRest({ gateway: world.gateway });
  for (const operation of operations.filter(each => each.rest && each.tool)) {
    const { prepare, asks } = caseOf(operation);
    const { line, body } = restRequestOf(operation, { ...asks, ...(await prepare?.(world)) });
    const answer = await rest.send(line, body);
    const args = toolArgumentsOf(operation, { ...asks, ...(await prepare?.(world)) });
    const { data, text } = await callTool(`${rest.url}/mcp`, operation.tool?.name ?? '', args);
    assert.deepEqual(settled(data), settled(answer.json), line);
    assert.equal(JSON.stringify(settled(JSON.parse(text))), JSON.stringify(settled(answer.json)), 'in the same order');
  }
});
