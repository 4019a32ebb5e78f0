/** A host with 5,000 models: everything is complete on every face, and nobody else has to wait long for their turn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Model } from '../src/domain.ts';
import { callTool } from './mcp/muster.ts';
import { longestTurn } from './support/eventLoop.ts';
import { fakeDriver, testGateway } from './support/gateway.ts';
import { serveRest } from './support/rest.ts';
import { ask, openSocket, openStream, textOf } from './support/server.ts';

const inTime = { timeout: 60_000 };
/** No turn takes 200 ms; under the test runner promises cost several times as much. */
const longestTurnMs = 400;

const model = (place: number): Omit<Model, 'backend'> => ({
  name: `family-${place % 50}/model-${place}:q4_K_M`,
  sizeBytes: 5_000_000_000 + place,
  digest: String(place).padStart(64, 'a'),
  modifiedAt: new Date(Date.parse('2026-01-01T00:00:00Z') + place * 1000),
  format: 'gguf',
  family: 'qwen3',
  parameterSize: '8.2B',
  quantization: 'Q4_K_M',
  contextLength: 40_960,
  capabilities: ['completion', 'tools'],
});
const models = Array.from({ length: 5_000 }, (_, place) => model(place));
const names = models.map(({ name }) => name);
const sizes = models.map(({ sizeBytes }) => sizeBytes);

async function startLarge() {
  const driver = fakeDriver({ models });
  const rest = await serveRest({ gateway: testGateway({ drivers: [driver] }) });
  const [backend] = rest.server.gateway.registry.backends;
  // What is made on first use is not what is measured.
  await rest.send('GET models/nope');
  await ask(rest.server, '{ info { version } }');
  return {
    rest,
    server: rest.server,
    /** The host has other models from now on, every row of them a new one. */
    become(change: (each: Model, place: number) => Model) {
      driver.world.models = driver.world.models.map((each, place) => change({ ...each }, place));
      backend?.changed();
    },
    [Symbol.asyncDispose]: () => rest[Symbol.asyncDispose](),
  };
}

type Row = { name: string; sizeBytes: number };

/** The rows are all 5,000, in their order. */
function assertComplete(rows: readonly Row[]) {
  assert.deepEqual(
    rows.map(({ name }) => name),
    names,
  );
  assert.deepEqual(
    rows.map(({ sizeBytes }) => sizeBytes),
    sizes,
  );
}

const freeText = `{ models { totalCount items { id name backendName digest sizeBytes modifiedAt format family
  parameterSize quantization contextLength runtime capabilities downloaded loaded running { name } } } }`;

const questions: readonly [what: string, rows: (large: Awaited<ReturnType<typeof startLarge>>) => Promise<Row[]>][] = [
  ['REST', async ({ rest }) => (await rest.send('GET models')).json.models],
  [
    'the text of a stored operation',
    async ({ server }) => (await ask(server, textOf('listModels'))).json.data.models.models,
  ],
  ['free text', async ({ server }) => (await ask(server, freeText)).json.data.models.items],
  [
    'free text with the backend of every row',
    async ({ server }) =>
      (await ask(server, '{ models { items { name sizeBytes backend { name healthy } } } }')).json.data.models.items,
  ],
  ['MCP', async ({ server }) => (await callTool(`${server.url}/mcp`, 'list_models')).data.models],
];

for (const [what, rowsOf] of questions) {
  test(`5,000 models by ${what}: all of them, and no long turn`, inTime, async () => {
    await using large = await startLarge();
    const { answer, ms } = await longestTurn(() => rowsOf(large));
    assertComplete(answer);
    assert.ok(ms < longestTurnMs, `a turn took ${ms} ms`);
  });
}

test('5,000 models as pages: together they are the list', inTime, async () => {
  await using large = await startLarge();
  const query =
    'query ($after: ID) { models(first: 1000, after: $after) { items { name sizeBytes } pageInfo { hasNextPage endCursor } } }';
  const rows: Row[] = [];
  let after: string | undefined;
  do {
    const { items, pageInfo } = (await ask(large.server, query, { after })).json.data.models;
    rows.push(...items);
    after = pageInfo.hasNextPage ? pageInfo.endCursor : undefined;
  } while (after);
  assertComplete(rows);
});

test('5,000 models watched: the whole state, then one change as one row, and no long turn', inTime, async () => {
  await using large = await startLarge();
  const { server } = large;
  const { answer: stream, ms } = await longestTurn(async () => {
    const opened = await openStream(server.graphqlUrl, { query: textOf('watchModels') });
    const { models: event } = (await opened.nextPayload('the whole state')).data;
    assert.equal(event.snapshot, true);
    assertComplete(event.items);
    return opened;
  });
  assert.ok(ms < longestTurnMs, `a turn took ${ms} ms for the whole state`);

  const change = await longestTurn(async () => {
    large.become((each, place) => (place === 2_500 ? { ...each, sizeBytes: 1 } : each));
    return (await stream.nextPayload('the change')).data.models;
  });
  assert.deepEqual(
    [change.answer.snapshot, change.answer.items.map((row: Row) => [row.name, row.sizeBytes]), change.answer.removed],
    [false, [[names[2_500], 1]], []],
  );
  assert.ok(change.ms < longestTurnMs, `a turn took ${change.ms} ms for a change`);
});

test(
  'chaos 31: while 5,000 models are listed again and again, pings are answered and other requests go on',
  inTime,
  async () => {
    await using large = await startLarge();
    const { server, rest } = large;
    const socket = await openSocket(server.socketUrl);
    const { ms } = await longestTurn(async () => {
      let pongs = 0;
      for (const [, rowsOf] of questions) {
        large.become(each => each);
        const list = rowsOf(large);
        socket.send({ type: 'ping' });
        const [rows, pong, health] = await Promise.all([list, socket.next('the pong'), rest.send('GET /healthz')]);
        assert.deepEqual([rows.length, pong.type, health.text], [5_000, 'pong', 'ok']);
        pongs++;
      }
      assert.equal(pongs, questions.length);
    });
    assert.equal(socket.raw.readyState, socket.raw.OPEN);
    assert.ok(ms < longestTurnMs, `a turn took ${ms} ms`);
  },
);
