import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ExecutionResult, execute, GraphQLObjectType, GraphQLSchema, GraphQLString, parse } from 'graphql';
import { pino } from 'pino';
import { createCall } from '../../src/call.ts';
import { invalidRequest } from '../../src/errors.ts';
import type { Operation } from '../../src/operations/load.ts';
import { compile, createRun } from '../../src/operations/run.ts';
import type { Context } from '../../src/resolvers/builder.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { callOf } from '../support/backends.ts';
import { caseOf, startCaseWorld } from '../support/cases.ts';
import { operations } from '../support/server.ts';

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
/** What differs from one run to the next. */
const settled = (value: unknown) =>
  JSON.parse(
    JSON.stringify(value, (key, inner) => (/^(id|jobId|createdAt|startedAt|finishedAt)$/.test(key) ? key : inner)),
  );

const called = operations.filter(({ type }) => type !== 'subscription');

for (const operation of called) {
  const { name, document } = operation;
  test(`${name} compiled gives what it gives interpreted, data and refusal`, async () => {
    const { prepare, asks, refusal } = caseOf(operation);
    const compiled = compile(schema, operation, { disableLeafSerialization: false });
    const both = [
      (contextValue: Context, variableValues: Record<string, unknown>) =>
        execute({ schema, document, contextValue, variableValues }),
      (context: Context, variables: Record<string, unknown>) => compiled(undefined, context, variables),
    ];
    await using world = await startCaseWorld();
    const context = { gateway: world.gateway, call: callOf(), face: 'mcp' as const };
    if (asks) {
      const [interpreted, fast] = await inTurn(both, async run => {
        const variables = { ...asks, ...(await prepare?.(world)) };
        return (await run(context, variables)) as ExecutionResult;
      });
      assert.equal(interpreted.errors, undefined);
      assert.deepEqual(settled(fast), settled(interpreted));
      assert.notEqual(interpreted.data?.[operation.rootKey], null);
    }

    if (!refusal) return;
    const [refused, fastRefused] = await inTurn(
      both,
      async run => (await run(context, refusal.asks)) as ExecutionResult,
    );
    const facts = ({ errors = [], data }: ExecutionResult) => ({
      data: plain(data ?? null),
      errors: errors.map(({ message, path, originalError }) => [
        message,
        path,
        (originalError as { code?: string })?.code,
      ]),
    });
    assert.deepEqual(facts(fastRefused), facts(refused));
    assert.equal(facts(refused).errors[0]?.[2], refusal.code);
  });
}

async function inTurn<A, B>(items: readonly A[], use: (item: A) => Promise<B>): Promise<[B, B]> {
  const first = await use(items[0] as A);
  return [first, await use(items[1] as A)];
}

test('what is run is written in contract words, times in RFC 3339', async () => {
  await using world = await startCaseWorld();
  const run = createRun(schema);
  const named = (name: string) => operations.find(each => each.name === name) as Operation;
  const context = { gateway: world.gateway, call: callOf(), face: 'mcp' as const };
  const model = (await run(named('getModel'), { model: 'chat:8b' }, context)) as Record<string, unknown>;
  assert.match(String(plain(model).modifiedAt), /^2026-08-22T08:00:00\.000Z$/);
  const pulled = (await run(named('pullModel'), { model: 'slow:1b' }, context)) as { job: Record<string, unknown> };
  assert.deepEqual([pulled.job.type, pulled.job.phase], ['pull', 'pending']);
});

/** A run over a graph of one field, which does what the test says. */
function runOf(resolve: () => unknown, log = pino({ level: 'silent' })) {
  const one = new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { one: { type: GraphQLString, resolve } } }),
  });
  const operation = {
    ...operations[0],
    document: parse('query one { one }'),
    name: 'one',
    rootKey: 'one',
    answer: { kind: 'leaf', schema: {} },
  } as unknown as Operation;
  const call = createCall({ log, requestId: 'request-1' });
  return createRun(one)(operation, {}, { gateway: {} as Context['gateway'], call, face: 'mcp' });
}

test('a refusal is thrown as it is, anything else is masked and logged under its request', async () => {
  const refusal = invalidRequest('no');
  await assert.rejects(
    runOf(() => {
      throw refusal;
    }),
    error => error === refusal,
  );

  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const fault = () => {
    throw new TypeError('secret of the house');
  };
  await assert.rejects(runOf(fault, log), {
    code: 'internal_error',
    status: 500,
    message: 'unexpected error; the log has it under request request-1',
  });
  assert.equal(lines.length, 1);
  assert.match(JSON.stringify(lines[0]), /secret of the house/);
  assert.equal(lines[0]?.requestId, 'request-1');

  const late = () => Promise.reject(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
  await assert.rejects(runOf(late), {
    code: 'backend_error',
    message: 'the backend did not answer in time; ask again, or look at its health',
  });
});

test('every stored operation can be compiled, and one that cannot is named', () => {
  const options = { disableLeafSerialization: true };
  for (const operation of operations) assert.doesNotThrow(() => compile(schema, operation, options));
  const document = parse('query other { info { version } }');
  const operation = { ...(operations[0] as Operation), name: 'some', document };
  assert.throws(() => compile(schema, operation, options), /cannot compile some: /);
});
