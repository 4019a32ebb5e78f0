import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Caller } from '../../src/call.ts';
import { backendError } from '../../src/errors.ts';
import { createRun } from '../../src/operations/run.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { createRest } from '../../src/rest-compat/respond.ts';
import { callOf } from '../support/backends.ts';
import { type FakeDriver, fakeDriver, testGateway } from '../support/gateway.ts';
import { operations, turn } from '../support/server.ts';

/** The REST face over these drivers, asked in process, with what it did counted. */
function face(...drivers: FakeDriver[]) {
  const gateway = testGateway({ drivers });
  const compiled = createRun(schema);
  let runs = 0;
  const rest = createRest({
    operations,
    run: (...args) => {
      runs++;
      return compiled(...args);
    },
    contextFor: (call, reads) => ({ gateway, call, face: 'rest', reads }),
  });
  return {
    runs: () => runs,
    /** Something was done to the backends behind the back of the gateway, and it knows. */
    changed() {
      for (const backend of gateway.registry.backends) backend.changed();
    },
    async get(path: string, { ifNoneMatch, caller }: { ifNoneMatch?: string | undefined; caller?: Caller } = {}) {
      const [only = '', query] = `/api/v1/${path}`.split('?');
      const request = { query: new URLSearchParams(query), body: '', ifNoneMatch };
      const match = rest.match('GET', only);
      const { status, headers, body } = await rest.respond(match, request, callOf(caller && { caller }));
      return { status, headers, etag: headers.etag ?? '', text: String(body) };
    },
  };
}

/** Asks until the answer comes from what is kept. */
async function warm({ get, runs }: ReturnType<typeof face>, path: string) {
  for (let attempt = 0; attempt < 4; attempt++) {
    const before = runs();
    const answer = await get(path);
    if (runs() === before) return answer;
  }
  return assert.fail(`${path} is never kept`);
}

const lists = ['models', 'loaded', 'nodes'];

for (const path of lists) {
  test(`${path}: the kept body is the fresh one, byte for byte, and is not made again`, async () => {
    const rest = face(fakeDriver({ models: ['a:1b', 'b:1b'] }), fakeDriver({ name: 'lemonade', models: ['c:1b'] }));
    const fresh = await rest.get(path);
    const kept = await warm(rest, path);
    assert.deepEqual([kept.status, kept.text, kept.etag], [200, fresh.text, fresh.etag]);
    assert.match(fresh.etag, /^"[\w-]{22}"$/);
    assert.equal(fresh.headers['content-type'], 'application/json');
    assert.deepEqual(kept.headers, fresh.headers);
  });

  test(`${path}: who has the newest body is told so, and sent nothing`, async () => {
    const rest = face(fakeDriver({ models: ['a:1b'] }));
    const { etag } = await rest.get(path);
    for (const ifNoneMatch of [etag, `W/${etag}`, `"other", ${etag}`, `"other",W/${etag} `, '*']) {
      const { status, text, headers } = await rest.get(path, { ifNoneMatch });
      assert.deepEqual([status, text, headers], [304, '', { etag }], ifNoneMatch);
    }
    for (const ifNoneMatch of ['"other"', etag.slice(1, -1), '', '""']) {
      assert.equal((await rest.get(path, { ifNoneMatch })).status, 200, ifNoneMatch);
    }
  });
}

test('a change of what was read is a new body with a new tag, and only that is', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  const rest = face(driver);
  const { etag } = await warm(rest, 'models');
  const loadedBefore = await warm(rest, 'loaded');

  rest.changed();
  assert.equal((await rest.get('models', { ifNoneMatch: etag })).status, 304, 'nothing was different');

  driver.world.models = [...driver.world.models, { backend: 'ollama', name: 'b:1b' }];
  rest.changed();
  const grown = await rest.get('models', { ifNoneMatch: etag });
  assert.equal(grown.status, 200);
  assert.notEqual(grown.etag, etag);
  assert.match(grown.text, /b:1b/);
  assert.equal((await rest.get('loaded')).etag, loadedBefore.etag);

  // What is loaded of a model shows in the list of models as well.
  driver.world.loaded = [{ backend: 'ollama', name: 'b:1b' }];
  rest.changed();
  assert.match((await rest.get('models', { ifNoneMatch: grown.etag })).text, /"loaded": true/);

  driver.world.models = driver.world.models.slice(0, 1);
  driver.world.loaded = [];
  rest.changed();
  assert.equal((await rest.get('models')).etag, etag, 'the same content has the same tag');
});

test('the failure of a backend is part of the answer, and so is the end of it', async () => {
  const broken = fakeDriver({ name: 'lemonade', models: ['b:1b'] });
  const rest = face(fakeDriver({ models: ['a:1b'] }), broken);
  const whole = await warm(rest, 'models');

  const fail = (words: string) => {
    broken.script.models = async (): Promise<never> => {
      throw backendError(words);
    };
    rest.changed();
  };
  fail('lemonade: down');
  const partial = await rest.get('models', { ifNoneMatch: whole.etag });
  assert.equal(partial.status, 200);
  assert.deepEqual(JSON.parse(partial.text).errors, { lemonade: 'lemonade: down' });
  assert.equal((await warm(rest, 'models')).text, partial.text);

  fail('lemonade: still down');
  assert.deepEqual(JSON.parse((await rest.get('models')).text).errors, { lemonade: 'lemonade: still down' });

  delete broken.script.models;
  rest.changed();
  assert.equal((await rest.get('models')).text, whole.text);
});

test('an answer that did not wait for a late backend is not kept, and nobody waits for it because of what is', async t => {
  const slow = fakeDriver({ name: 'lemonade', models: ['b:1b'] });
  const rest = face(fakeDriver({ models: ['a:1b'] }), slow);
  const whole = await warm(rest, 'models');
  const gate = Promise.withResolvers<void>();
  slow.script.models = async () => {
    await gate.promise;
    return slow.world.models;
  };
  rest.changed();

  t.mock.timers.enable({ apis: ['setTimeout'] });
  let partial: Awaited<ReturnType<typeof rest.get>> | undefined;
  const asked = rest.get('models', { ifNoneMatch: whole.etag }).then(answer => {
    partial = answer;
  });
  for (let waited = 0; !partial && waited < 8_000; waited += 500) {
    t.mock.timers.tick(500);
    await turn();
  }
  t.mock.timers.reset();
  assert.ok(partial, 'it waits for a few seconds, not for the end of the look');
  await asked;
  assert.equal(partial.status, 200);
  assert.match(JSON.parse(partial.text).errors.lemonade, /^lemonade has not answered within/);
  assert.equal(partial.headers.etag, undefined);

  gate.resolve();
  const again = await rest.get('models', { ifNoneMatch: whole.etag });
  assert.deepEqual([again.status, again.text], [304, '']);
});

test('a refusal is not kept, and does not replace what is', async () => {
  const driver = fakeDriver({ models: ['a:1b'] });
  const rest = face(driver);
  const good = await warm(rest, 'models');
  driver.script.models = async (): Promise<never> => {
    throw backendError('ollama: down');
  };
  rest.changed();
  for (let attempt = 0; attempt < 3; attempt++) {
    const { status, headers } = await rest.get('models', { ifNoneMatch: good.etag });
    assert.deepEqual([status, headers.etag], [502, undefined]);
  }
  delete driver.script.models;
  rest.changed();
  assert.equal((await rest.get('models', { ifNoneMatch: good.etag })).status, 304);
});

test('what one caller was answered is never given to another', async () => {
  const rest = face(fakeDriver({ models: ['a:1b'] }));
  const caller = (scope: string): Caller => ({ name: scope, anonymous: false, scope });
  await warm(rest, 'models');
  for (const scope of ['jane', 'joe']) {
    const before = rest.runs();
    assert.equal((await rest.get('models', { caller: caller(scope) })).status, 200);
    assert.equal(rest.runs(), before + 1, `${scope} is answered anew`);
  }
  const before = rest.runs();
  await rest.get('models', { caller: { ...caller('jane'), name: 'jane on another device' } });
  assert.equal(rest.runs(), before, 'one scope shares');
});

test('each question has its own answer', async () => {
  const rest = face(fakeDriver({ models: ['a:1b'] }), fakeDriver({ name: 'lemonade', models: ['b:1b'] }));
  const [all, ollama, lemonade] = [
    await warm(rest, 'models'),
    await warm(rest, 'models?backend=ollama'),
    await warm(rest, 'models?backend=lemonade'),
  ];
  assert.equal(new Set([all.text, ollama.text, lemonade.text]).size, 3);
  assert.equal(JSON.parse(ollama.text).models[0].name, 'a:1b');
  assert.equal((await rest.get('models')).text, all.text);
});

test('what does not follow from what was observed alone has no tag', async () => {
  const rest = face(fakeDriver({ models: ['a:1b'] }));
  for (const path of ['jobs', 'backends', 'backend', 'models/a:1b']) {
    assert.deepEqual((await rest.get(path)).headers, { 'content-type': 'application/json' }, path);
  }
});

test('however many questions there are, few answers are kept', async () => {
  const rest = face(fakeDriver({ models: ['a:1b'] }));
  await warm(rest, 'models');
  for (let count = 1; count <= 64; count++) await rest.get(`models?backend=${'+'.repeat(count)}ollama`);
  const before = rest.runs();
  await rest.get('models');
  assert.equal(rest.runs(), before + 1, 'the oldest has made room');
});
