/** Check 28: who did what to what, and what came of it, by whichever face. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type AuditEntry, audited } from '../../src/audit/entry.ts';
import { type AuditFile, openAuditFile } from '../../src/audit/file.ts';
import { startReconciler } from '../../src/backends/reconcile.ts';
import { wireNow } from '../../src/backends/serving.ts';
import { type Caller, createCall } from '../../src/call.ts';
import { ConfigError } from '../../src/config/settings.ts';
import { conflict } from '../../src/errors.ts';
import { createMetrics } from '../../src/http/metrics.ts';
import { createLogger } from '../../src/log.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { callTool } from '../mcp/muster.ts';
import { startOnCluster } from '../support/cluster.ts';
import { allFaces, type Face, through } from '../support/facts.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { eventually, openSocket, send, startServer } from '../support/server.ts';
import { fakeWiring, servingDriver } from '../support/serving.ts';

type Line = Partial<AuditEntry> & { readonly level?: string; readonly msg?: string };

/** A logger of the real kind, and the entries it was given. */
function recorder(audit?: AuditFile | 'stdout') {
  const lines: string[] = [];
  const log = createLogger({ format: 'json', verbose: true, audit, stream: { write: line => lines.push(line) } });
  const logged = () => lines.map(line => JSON.parse(line) as Line);
  return { lines, log, logged, entries: () => logged().filter(({ action }) => action !== undefined) };
}

const facts = ({ caller, face, occasion, action, backend, model, object, outcome, code }: Line) =>
  JSON.parse(JSON.stringify({ caller, face, occasion, action, backend, model, object, outcome, code })) as Line;

const faceOf: Record<Face, string> = { REST: 'rest', MCP: 'mcp', GraphQL: 'graphql' };

async function world(t: TestContext) {
  const wiring = fakeWiring({ autoWire: false });
  const { log, lines, entries } = recorder();
  const driver = fakeDriver({ models: ['a:1b', 'b:1b'] });
  const server = await startServer({ gateway: testGateway({ drivers: [driver], wiring, log }), log });
  t.after(() => server.close());
  return { server, driver, lines, entries, wiring };
}

describe('check 28: one entry for each mutation', () => {
  for (const face of allFaces) {
    test(`through ${face}, done or refused`, async t => {
      const { server, driver, entries, wiring } = await world(t);
      const asked = { caller: 'service-account', face: faceOf[face], backend: 'ollama' };
      const table: [string, Record<string, unknown>, Line][] = [
        ['loadModel', { model: 'a:1b' }, { model: 'a:1b', outcome: 'ok' }],
        ['unloadModel', { model: 'a:1b' }, { model: 'a:1b', outcome: 'ok' }],
        ['wireModel', { model: 'a:1b' }, { model: 'a:1b', object: 'a-1b', outcome: 'ok' }],
        ['unwireModel', { model: 'a:1b' }, { model: 'a:1b', outcome: 'ok' }],
        ['pullModel', { model: 'new:1b' }, { model: 'new:1b', outcome: 'ok' }],
        [
          'loadModel',
          { model: 'none:1b', backend: 'ollama' },
          { model: 'none:1b', outcome: 'refused', code: 'not_found' },
        ],
        [
          'unloadModel',
          { model: 'none:1b', backend: 'ollama' },
          { model: 'none:1b', outcome: 'refused', code: 'not_found' },
        ],
        [
          'deleteModel',
          { model: 'no/../x', backend: 'ollama' },
          { model: 'no/../x', outcome: 'refused', code: 'invalid_request' },
        ],
        [
          'wireModel',
          { model: 'none:1b', backend: 'ollama' },
          { model: 'none:1b', outcome: 'refused', code: 'not_found' },
        ],
        ['addBackend', { kind: 'ollama', endpoint: 'http://x' }, { outcome: 'refused', code: 'conflict' }],
        ['removeBackend', { kind: 'ollama' }, { outcome: 'refused', code: 'conflict' }],
      ];
      for (const [action, asks, expected] of table) {
        // Registration is for agents and for the graph.
        if (face === 'REST' && action.endsWith('Backend')) continue;
        const before = entries().length;
        await through(face, server, action, asks);
        const [entry, ...others] = entries().slice(before);
        assert.deepEqual(others, [], action);
        assert.deepEqual(facts(entry ?? {}), { ...asked, action, ...expected }, action);
        assert.match(entry?.requestId ?? '', /^[\w-]{36}$/);
        assert.ok(Number.isInteger(entry?.durationMs), 'durationMs');
        assert.equal(entry?.code === undefined, entry?.reason === undefined);
      }
      // What unwiring before a deletion has left, beside the deletion itself.
      const before = entries().length;
      await through(face, server, 'deleteModel', { model: 'b:1b' });
      assert.deepEqual(entries().slice(before).map(facts), [
        {
          caller: 'service-account',
          occasion: 'deleteModel',
          action: 'unwireModel',
          backend: 'ollama',
          model: 'b:1b',
          outcome: 'ok',
        },
        { ...asked, action: 'deleteModel', model: 'b:1b', outcome: 'ok' },
      ]);

      wiring.failure = new Error('the API server is not there');
      await through(face, server, 'wireModel', { model: 'a:1b' });
      const failed = entries().at(-1);
      assert.deepEqual([failed?.level, failed?.outcome, failed?.code], ['warn', 'failed', 'internal_error']);
      assert.match(failed?.reason ?? '', /the API server is not there/);
      assert.ok(driver.asked.length > 0);
    });

    test(`through ${face}: a cancelled job by its id, and a dry run and a read by nothing`, async t => {
      const { server, driver, entries } = await world(t);
      driver.script.pull = async function* (call) {
        yield { status: 'downloading', bytesCompleted: 1, bytesTotal: 2 };
        await new Promise((_, reject) => call.signal.addEventListener('abort', () => reject(call.signal.reason)));
      };
      const { job } = await through(face, server, 'pullModel', { model: 'slow:1b' });
      assert.equal(entries().at(-1)?.job, server.gateway.jobs.store.list()[0]?.id);
      await through(face, server, 'cancelJob', { id: job.id });
      const { action, model, backend, outcome, job: id } = entries().at(-1) ?? {};
      const expected = ['cancelJob', 'slow:1b', 'ollama', 'ok', server.gateway.jobs.store.list()[0]?.id];
      assert.deepEqual([action, model, backend, outcome, id], expected);

      const before = entries().length;
      const dry = { model: 'a:1b', dryRun: true };
      if (face === 'REST') await send(`${server.url}/api/v1/models/load`, dry);
      if (face === 'MCP') assert.equal((await callTool(`${server.url}/mcp`, 'load_model', dry)).isError, false);
      if (face === 'GraphQL') await through(face, server, 'planLoad', { model: 'a:1b' });
      if (face !== 'REST')
        await through(face, server, 'addBackend', { kind: 'lemonade', endpoint: 'http://x:1', dryRun: true });
      await through(face, server, 'listModels', {});
      assert.equal(entries().length, before);
    });
  }

  test('every mutation of the graph leaves one, also one whose resolver breaks', async () => {
    const names = Object.keys(schema.getMutationType()?.getFields() ?? {});
    assert.ok(names.length >= 9, String(names));
    for (const name of names) {
      const { log, entries } = recorder();
      const { resolve } = schema.getMutationType()?.getFields()[name] ?? {};
      const context = { gateway: undefined, call: createCall({ log }), face: 'mcp' };
      await assert.rejects(async () => resolve?.({}, { model: 'x', id: 'x', kind: 'x' }, context, {} as never));
      assert.deepEqual(
        entries().map(({ action, outcome }) => [action, outcome]),
        [[name, 'failed']],
      );
    }
  });

  test('it has the request id that the client gave, and a reference that is far too long is cut', async t => {
    const { server, lines, entries } = await world(t);
    const headers = { 'x-request-id': 'my-request' };
    await send(`${server.url}/api/v1/models/load`, { model: 'a:1b' }, { headers });
    assert.equal(entries().at(-1)?.requestId, 'my-request');
    const line = lines.find(each => each.includes('"action"'));
    assert.equal(line?.match(/"requestId"/g)?.length, 1, 'a key is there once');
    await send(`${server.url}/api/v1/models/load`, { model: 'x'.repeat(10_000) });
    assert.equal(entries().at(-1)?.model, `${'x'.repeat(512)}…`);
  });

  test('backends that are registered and removed, by their kind and ConfigMap', async t => {
    const { log, entries } = recorder();
    const cluster = await startOnCluster({ log });
    t.after(() => cluster[Symbol.asyncDispose]());
    const server = await startServer({ gateway: cluster.gateway, log });
    t.after(() => server.close());
    await through('GraphQL', server, 'addBackend', { kind: 'ollama', endpoint: 'http://ollama.example:1' });
    await through('MCP', server, 'removeBackend', { kind: 'ollama' });
    const object = 'model-backend-ollama';
    const common = { caller: 'service-account', backend: 'ollama', object, outcome: 'ok' } as const;
    assert.deepEqual(entries().map(facts), [
      { ...common, face: 'graphql', action: 'addBackend' },
      { ...common, face: 'mcp', action: 'removeBackend' },
    ]);
  });
});

describe('check 28: who did it', () => {
  const jane: Caller = { name: 'jane@example.com', anonymous: false, scope: 'jane' };
  const wirable = { backend: 'kserve', reference: 'x', access: { url: 'http://x', model: 'x' } } as never;

  test('the caller, in the entry and in the job', async () => {
    const { log, entries } = recorder();
    const call = createCall({ log, caller: jane });
    await audited(
      call,
      { action: 'loadModel', face: 'rest' },
      () => ({}),
      () => 1,
    );
    const refused = audited(
      call,
      { action: 'loadModel', face: 'rest' },
      () => ({}),
      () => {
        throw conflict('no');
      },
    );
    await assert.rejects(refused, /conflict: no/);
    assert.deepEqual(
      entries().map(({ caller, outcome }) => [caller, outcome]),
      [
        ['jane@example.com', 'ok'],
        ['jane@example.com', 'refused'],
      ],
    );
    const { jobs } = testGateway();
    const spec = { type: 'pull', backend: 'ollama', model: 'x', key: 'x', wire: false } as const;
    assert.equal((await jobs.start(call, spec, async () => undefined)).job.requestedBy, 'jane@example.com');
  });

  test('the gateway itself, where a read has it wire a model, or the caller where it has only their token', async () => {
    const { log, entries } = recorder();
    await wireNow(fakeWiring(), createCall({ log, caller: jane }), wirable, 'wired on read');
    await wireNow(fakeWiring(), createCall({ log, caller: { ...jane, token: () => 't' } }), wirable, 'wired on read');
    await wireNow(fakeWiring(), createCall({ log, caller: jane }), wirable, 'wired on load');
    assert.deepEqual(
      entries().map(({ caller, occasion, action, face }) => [caller, occasion, action, face]),
      [
        ['service-account', 'read', 'wireModel', undefined],
        ['jane@example.com', 'read', 'wireModel', undefined],
        ['jane@example.com', 'loadModel', 'wireModel', undefined],
      ],
    );
  });

  test('the gateway itself, where it wires what it finds served, and cannot', async t => {
    const { log, entries } = recorder();
    const driver = servingDriver();
    const wiring = fakeWiring();
    wiring.failure = new Error('the API server is not there');
    driver.world.models = [
      {
        backend: 'kserve',
        name: 'x',
        running: { backend: 'kserve', name: 'x', status: 'Ready', resource: 'x' },
      } as never,
    ];
    const gateway = testGateway({ drivers: [driver], wiring });
    t.after(startReconciler({ ...gateway, wiring, intervalMs: 60_000, log }));
    await eventually(() => entries().length > 0, 'an entry of the reconciler');
    const [entry] = entries();
    assert.deepEqual(
      [entry?.caller, entry?.occasion, entry?.action, entry?.model, entry?.outcome],
      ['service-account', 'reconcile', 'wireModel', 'x', 'failed'],
    );
  });
});

describe('check 28: --audit-log', () => {
  const folder = (t: TestContext) => {
    const made = mkdtempSync(join(tmpdir(), 'audit-'));
    t.after(() => rmSync(made, { recursive: true, force: true }));
    return made;
  };
  const deed = { action: 'loadModel', face: 'rest' } as const;
  const linesIn = (file: string) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line));

  test('a file has every entry as a line of JSON at once, is appended to, and holds no secret', async t => {
    const path = join(folder(t), 'audit.jsonl');
    writeFileSync(path, '{"old":true}\n');
    const { log, entries } = recorder(openAuditFile(path));
    await audited(
      createCall({ log, requestId: 'r1' }),
      deed,
      () => ({ model: 'hf_abcdefghijklmnop' }),
      () => 1,
    );
    log.info({ action: 'loadModel' }, 'an entry only by its looks');
    const [old, line, ...others] = linesIn(path);
    assert.deepEqual([old, others], [{ old: true }, []]);
    assert.match(line.time, /^\d{4}-.*Z$/);
    const { time: _, durationMs: __, ...rest } = line;
    const expected = {
      caller: 'service-account',
      face: 'rest',
      action: 'loadModel',
      model: '[redacted]',
      outcome: 'ok',
    };
    assert.deepEqual(rest, { ...expected, requestId: 'r1' });
    assert.equal(entries()[0]?.model, '[redacted]');
  });

  test('a file that is moved away is begun again, one that is emptied goes on', async t => {
    const path = join(folder(t), 'audit.jsonl');
    const file = openAuditFile(path);
    const call = createCall({ log: recorder(file).log });
    const entry = (model: string) =>
      audited(
        call,
        deed,
        () => ({ model }),
        () => 1,
      );
    await entry('a');
    renameSync(path, `${path}.1`);
    await entry('b');
    assert.deepEqual(
      [linesIn(`${path}.1`), linesIn(path)].map(lines => lines.map(({ model }) => model)),
      [['a'], ['b']],
    );
    writeFileSync(path, '');
    await entry('c');
    assert.deepEqual(
      linesIn(path).map(({ model }) => model),
      ['c'],
    );
    assert.equal(file.lost, 0);
  });

  test('one that cannot be opened is an error of the start', t => {
    const path = folder(t);
    assert.throws(
      () => openAuditFile(path),
      (error: Error) => error instanceof ConfigError && /--audit-log/.test(error.message),
    );
    assert.throws(() => openAuditFile(join(path, 'none', 'x')), ConfigError);
  });

  test('one that cannot be written later costs no mutation: the log says so, and a metric counts it', async () => {
    const full = openAuditFile('/dev/full');
    const { log, logged } = recorder(full);
    assert.equal(
      await audited(
        createCall({ log }),
        deed,
        () => ({}),
        () => 'done',
      ),
      'done',
    );
    const [entry, error] = logged();
    assert.equal(entry?.action, 'loadModel');
    assert.deepEqual(
      [error?.level, error?.msg],
      ['error', 'an audit entry is in the log only: it cannot be written to --audit-log'],
    );
    const metrics = await createMetrics(testGateway(), { audit: full })
      .serve({ host: '127.0.0.1', port: 0 })
      .catch(error => error);
    assert.ok('close' in metrics);
    metrics.close();
    assert.equal(full.lost, 1);
  });

  test('standard output has the entries instead of the log, as JSON beside lines for people', async () => {
    const lines: string[] = [];
    const stream = { write: (line: string) => lines.push(line) };
    const log = createLogger({ format: 'text', audit: 'stdout', stream });
    await audited(
      createCall({ log }),
      deed,
      () => ({ model: 'a' }),
      () => 1,
    );
    assert.equal(lines.length, 1);
    assert.equal(JSON.parse(lines[0] as string).model, 'a');
  });

  test('without it an entry is a line of the log, for people too', async () => {
    const lines: string[] = [];
    const log = createLogger({ format: 'text', stream: { write: line => lines.push(line) } });
    await audited(
      createCall({ log }),
      deed,
      () => ({ model: 'a' }),
      () => 1,
    );
    assert.match(lines.join(''), /INFO.*: loadModel ok .*model=a/);
    assert.equal(lines.length, 1);
  });
});

describe('check 28: a mutation that is refused before its resolver is asked', () => {
  test('leaves one entry, at once, however often its fragments are spread', async t => {
    const { server, entries } = await world(t);
    // Each is spread twice by the one before, and the last leads back: of fields that limits count there is one.
    const next = (at: number) => `F${(at + 1) % 40}`;
    const fragments = Array.from(
      { length: 40 },
      (_, at) => `fragment F${at} on Mutation { ...${next(at)} ...${next(at)} }`,
    );
    const query = ['mutation { loadModel(modle: "x") { name } ...F0 }', ...fragments].join('\n');
    const { json } = await send(server.graphqlUrl, { query });
    assert.equal(json.errors[0].extensions.code, 'invalid_request');
    assert.equal(json.data, undefined);
    assert.deepEqual(
      entries().map(({ action, outcome }) => `${action} ${outcome}`),
      ['loadModel refused'],
    );
  });

  const refusedAs = (line: Line = {}) => {
    const { action, face, backend, model, job, outcome, code } = line;
    return JSON.parse(JSON.stringify({ action, face, backend, model, job, outcome, code }));
  };

  test('leaves its entry by whichever face, once', async t => {
    const { server, driver, entries } = await world(t);
    const { url, graphqlUrl } = server;
    const graphql = (query: string, variables?: object, headers = {}) =>
      send(graphqlUrl, { query, variables }, { headers });
    const load = 'mutation ($m: String, $k: String) { loadModel(model: $m, keepAlive: $k) { name } }';
    const rest: Line = { action: 'loadModel', face: 'rest', outcome: 'refused', code: 'invalid_request' };
    const inGraph: Line = { ...rest, face: 'graphql' };
    const socket = await openSocket(server.socketUrl);
    const table: [what: string, () => Promise<unknown>, Line][] = [
      ['a body that is no JSON', () => send(`${url}/api/v1/models/load`, '{"model":'), rest],
      [
        'a wrong type',
        () => send(`${url}/api/v1/models/load`, { model: 'a:1b', keepAlive: 7 }),
        { ...rest, model: 'a:1b' },
      ],
      [
        'a path with a wrong query',
        () => send(`${url}/api/v1/models/b:1b?dry_run=false`, undefined, { method: 'DELETE' }),
        { ...rest, action: 'deleteModel', model: 'b:1b' },
      ],
      [
        'no such backend',
        () => through('REST', server, 'loadModel', { model: 'a:1b', backend: 'none' }),
        { ...rest, backend: 'none', model: 'a:1b' },
      ],
      [
        'a tool without what it needs',
        () => callTool(`${url}/mcp`, 'pull_model', { backend: 'ollama' }),
        { action: 'pullModel', face: 'mcp', backend: 'ollama', outcome: 'refused', code: 'backend_error' },
      ],
      [
        'an argument nobody knows',
        () => graphql('mutation { loadModel(modle: "x", backend: "b") { name } }'),
        { ...inGraph, backend: 'b' },
      ],
      ['a variable of another type', () => graphql(load, { m: 7, k: '1m' }), inGraph],
      [
        'the same in a stream',
        () => graphql(load, { m: 'x', k: {} }, { accept: 'text/event-stream' }),
        { ...inGraph, model: 'x' },
      ],
      [
        'the same on a socket',
        async () => {
          socket.send({ type: 'subscribe', id: '1', payload: { query: load, variables: { m: 'y', k: [] } } });
          await socket.next('the refusal');
        },
        { ...inGraph, model: 'y' },
      ],
      [
        'in a fragment, under another name, several times',
        () =>
          graphql(
            'mutation { ...F x: loadModel(no: 1) { name } } fragment F on Mutation { y: loadModel(no: 2) { name } ...F }',
          ),
        inGraph,
      ],
      [
        'a null where there is none',
        () => graphql('mutation ($m: String! = "x") { unloadModel(model: $m) { model } }', { m: null }),
        { ...inGraph, action: 'unloadModel' },
      ],
    ];
    driver.asked.length = 0;
    for (const [what, ask, expected] of table) {
      const before = entries().length;
      await ask();
      assert.deepEqual(entries().slice(before).map(refusedAs), [expected], what);
      assert.ok((entries().at(-1)?.reason?.length ?? 0) > 10, what);
    }
    assert.deepEqual(driver.asked, []);
    socket.raw.terminate();
  });

  test('leaves none where nothing was to be changed, and no long one', async t => {
    const { server, entries } = await world(t);
    const { url, graphqlUrl } = server;
    await send(`${url}/api/v1/models/load`, { model: 7, dryRun: true });
    await send(`${url}/api/v1/models/load`, { model: 'a:1b', dry_run: true });
    await send(`${url}/api/v1/models/b:1b?dryRun=perhaps`, undefined, { method: 'DELETE' });
    await callTool(`${url}/mcp`, 'load_model', { model: 'a:1b', dryRun: 'perhaps' });
    await send(graphqlUrl, { query: 'mutation { addBackend(kind: 7, dryRun: true) { dryRun } }' });
    await send(graphqlUrl, { query: '{ models(no: 1) { totalCount } }' });
    await send(graphqlUrl, { query: 'mutation { nothingLikeIt(no: 1) { name } }' });
    await send(`${graphqlUrl}?query=${encodeURIComponent('mutation { loadModel(no: 1) { name } }')}`);
    assert.deepEqual(entries(), []);
    const query = 'mutation ($m: String!, $w: Boolean) { pullModel(model: $m, wire: $w) { created } }';
    const long = 'x'.repeat(50_000);
    await send(graphqlUrl, { query, variables: { m: long, w: long } });
    assert.equal(entries().length, 1);
    for (const { reason, model } of entries()) assert.ok((reason?.length ?? 0) + (model?.length ?? 0) < 2_000);
  });
});
