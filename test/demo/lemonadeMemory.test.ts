import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { instant, type LemonadeOptions, manualClock, startLemonade } from '../../src/demo/lemonade.ts';

const bounded = { timeout: 10_000 };

const a = { name: 'A', bytes: 1, loadMs: 30_000 };
const b = { name: 'B', bytes: 1, loadMs: 30_000 };
const embedder = { name: 'E', bytes: 1, labels: ['embeddings'] };

async function started(t: TestContext, options: LemonadeOptions = {}) {
  const clock = manualClock();
  const server = await startLemonade({ clock, timings: instant, models: [a, b, embedder], ...options });
  t.after(() => server.close());
  const post = async (path: string, body: object | string) => {
    const sent = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await fetch(server.url + path, { method: 'POST', body: sent });
    return { status: answer.status, body: await answer.json() };
  };
  const load = (name: string, more: object = {}) => post('/api/v1/load', { model_name: name, ...more });
  const unload = (name: string) => post('/api/v1/unload', { model_name: name });
  const get = async (path: string) => (await fetch(server.url + path)).json();
  const words = (): string[] => server.loaded().map(each => `${each.name} ${each.status}`);
  return { server, clock, post, load, unload, get, words };
}

describe('a load', bounded, () => {
  test('answers when the model is in memory, and names it as it was asked for', async t => {
    const { load, clock, server } = await started(t, { models: [{ name: 'user.Two', bytes: 1, loadMs: 30_000 }] });
    const loading = load('user.Two');
    await clock.sleeping();
    assert.deepEqual(server.loaded(), []);
    await clock.advance(30_000);
    assert.deepEqual(await loading, {
      status: 200,
      body: { status: 'success', model_name: 'user.Two', checkpoint: 'emulated/Two-GGUF:Q4_K_M', recipe: 'llamacpp' },
    });
    assert.deepEqual(server.loaded(), [{ name: 'Two', status: 'ready', pinned: false, contextLength: 4096, busy: 0 }]);
  });

  test('of a loaded model answers at once, unless it wants other options', async t => {
    const { load, clock, server } = await started(t);
    server.load('A', { pinned: true });
    assert.equal((await load('A')).status, 200);
    const again = load('A', { ctx_size: 8192 });
    await clock.sleeping();
    await clock.advance(30_000);
    await again;
    assert.partialDeepStrictEqual(server.loaded(), [{ name: 'A', contextLength: 8192, pinned: true }]);
  });

  test('takes the place of another model of its type: the old one is gone before the new one has come', async t => {
    const { load, clock, server, words, get } = await started(t, { timings: { ...instant, unloadMs: 2000 } });
    server.load('A');
    server.load('E');
    const loading = load('B');
    await clock.sleeping();
    assert.deepEqual(words(), ['A evicting', 'E ready']);
    await clock.advance(2000);
    assert.deepEqual(words(), ['E ready']);
    assert.equal((await get('/v1/health')).model_loaded, 'E');
    await clock.advance(30_000);
    await loading;
    assert.deepEqual(words(), ['E ready', 'B ready']);
  });

  test('evicts who was used least recently where there is room for several', async t => {
    const { load, clock, server, words, post } = await started(t, {
      maxModels: 2,
      models: [a, b, { name: 'C', bytes: 1 }],
    });
    server.load('A');
    server.load('B');
    await clock.advance(1000);
    await post('/v1/chat/completions', { model: 'A', messages: [] });
    await load('C');
    assert.deepEqual(words(), ['A ready', 'C ready']);
  });

  test('waits for the load before it', async t => {
    const { load, clock, words, server } = await started(t, { maxModels: 2 });
    const first = load('A');
    await clock.sleeping();
    const second = load('B');
    await server.requested('/api/v1/load', 2);
    await clock.advance(30_000);
    assert.deepEqual(words(), ['A ready']);
    await clock.sleeping();
    await clock.advance(30_000);
    await Promise.all([first, second]);
    assert.deepEqual(words(), ['A ready', 'B ready']);
  });

  test('goes on when its client has gone', async t => {
    const { server, clock, words } = await started(t);
    const abort = new AbortController();
    const body = '{"model_name":"A"}';
    const load = fetch(`${server.url}/v1/load`, { method: 'POST', body, signal: abort.signal });
    await clock.sleeping();
    abort.abort();
    await assert.rejects(load);
    await clock.advance(30_000);
    assert.equal(await (await server.requested('/v1/load')).ended, 'cut');
    assert.deepEqual(words(), ['A ready']);
  });

  test('downloads first what is not there, without a word', async t => {
    const registry = [{ name: 'Far', files: [{ name: 'far.gguf', bytes: 100 }], pullMs: 5000 }];
    const { load, clock, server, words } = await started(t, { registry });
    const loading = load('Far');
    await clock.sleeping();
    await clock.advance(4999);
    assert.deepEqual(server.models(), ['A', 'B', 'E']);
    await clock.advance(1);
    assert.equal((await loading).status, 200);
    assert.deepEqual(words(), ['Far ready']);
    assert.ok(server.models().includes('Far'));
  });

  test('that fails says so in the words of the backend, and costs every other model its place', async t => {
    const broken = { name: 'Gone', bytes: 1, loadError: '… HTTP error 404 … not found' };
    const { load, server } = await started(t, { models: [a, embedder, broken] });
    server.load('E');
    assert.deepEqual(await load('Gone'), {
      status: 500,
      body: {
        error: {
          code: 'model_load_error',
          message: "Failed to load model 'Gone': … HTTP error 404 … not found",
          param: 'model',
          requested_model: 'Gone',
          type: 'model_load_error',
        },
      },
    });
    assert.deepEqual(server.loaded(), []);
  });

  test('lets just one model use the NPU', async t => {
    const models = [
      { name: 'N', bytes: 1, recipe: 'flm' },
      { name: 'H', bytes: 1, recipe: 'ryzenai-llm', labels: ['embeddings'] },
    ];
    const { load, words } = await started(t, { models });
    await load('N');
    await load('H');
    assert.deepEqual(words(), ['H ready']);
  });

  test('shows as loading on a server that manages to list it', async t => {
    const { load, clock, get } = await started(t, { listsLoading: true });
    const loading = load('A');
    await clock.sleeping();
    assert.partialDeepStrictEqual((await get('/v1/health')).all_models_loaded, [
      { model_name: 'A', status: 'loading', backend_health: 'stopped', loaded: false, device: 'none' },
    ]);
    await clock.advance(30_000);
    await loading;
  });
});

describe('a pin', bounded, () => {
  test('keeps a model in its slot: there is no room for another one', async t => {
    const { load, server, get, words } = await started(t);
    server.load('A', { pinned: true });
    const { status, body } = await load('B');
    assert.deepEqual(
      [status, body.error.code, body.error.message],
      [409, 'slots_pinned_error', 'All loaded models of type standard/llm are pinned. Unload a model first.'],
    );
    assert.deepEqual(words(), ['A ready']);
    assert.partialDeepStrictEqual((await get('/v1/health')).pinned_models, { llm: 1, embedding: 0 });
  });

  test('is set and taken away by a load, and left alone by one that does not say', async t => {
    const { load, server } = await started(t, { models: [{ ...a, loadMs: 0 }] });
    const pinned = async (more: object) => {
      assert.equal((await load('A', more)).status, 200);
      return server.loaded()[0]?.pinned;
    };
    assert.equal(await pinned({ pinned: true }), true);
    assert.equal(await pinned({}), true);
    assert.equal(await pinned({ pinned: 'no' }), true);
    assert.equal(await pinned({ pinned: false }), false);
    assert.equal(await pinned({ pinned: 1 }), false);
  });

  test('is gone after an unload, and unknown before 10.8', async t => {
    const { load, unload, server } = await started(t, { models: [{ ...a, loadMs: 0 }] });
    await load('A', { pinned: true });
    await unload('A');
    await load('A');
    assert.equal(server.loaded()[0]?.pinned, false);
    const old = await started(t, { version: '10.7.0', models: [{ ...a, loadMs: 0 }] });
    await old.load('A', { pinned: true });
    assert.equal(old.server.loaded()[0]?.pinned, false);
  });
});

describe('an unload', bounded, () => {
  test('of one model leaves the others', async t => {
    const { unload, server, words } = await started(t);
    server.load('A');
    server.load('E');
    assert.deepEqual(await unload('A'), {
      status: 200,
      body: { status: 'success', message: 'Model unloaded successfully', model_name: 'A' },
    });
    assert.deepEqual(words(), ['E ready']);
  });

  for (const body of ['{"model_name":""}', '{}', '', '{"model_name":', '[]', '{"model_name":5}']) {
    test(`with the body ${JSON.stringify(body)} unloads everything`, async t => {
      const { post, server } = await started(t);
      server.load('A', { pinned: true });
      server.load('E');
      assert.deepEqual(await post('/api/v1/unload', body), {
        status: 200,
        body: { status: 'success', message: 'All models unloaded successfully' },
      });
      assert.deepEqual(server.loaded(), []);
    });
  }

  test('of a model that is not loaded, or that does not exist, is refused alike', async t => {
    const { unload } = await started(t);
    for (const name of ['A', 'Nope']) {
      assert.deepEqual(await unload(name), { status: 404, body: { error: `Model not loaded: ${name}` } });
    }
  });

  test('waits for the request that the model answers, and then for its process', async t => {
    const { unload, clock, server, words, post } = await started(t, {
      timings: { ...instant, tokenMs: 1000, unloadMs: 2000 },
      complete: () => 'one two three',
    });
    server.load('A');
    const chat = post('/v1/chat/completions', { model: 'A', messages: [] });
    await clock.sleeping();
    const unloading = unload('A');
    await server.requested('/api/v1/unload');
    await clock.advance(2999);
    assert.deepEqual(words(), ['A in_use']);
    await clock.advance(1);
    assert.equal((await chat).status, 200);
    await clock.sleeping();
    assert.deepEqual(words(), ['A evicting']);
    await clock.advance(2000);
    assert.equal((await unloading).status, 200);
    assert.deepEqual(words(), []);
  });

  test('of a model whose process died by itself is no error', async t => {
    const { unload, server } = await started(t);
    server.load('A');
    server.crash('A');
    assert.deepEqual(server.loaded(), []);
    assert.equal((await unload('A')).status, 200);
    assert.equal((await unload('A')).status, 404);
  });
});

describe('a delete', bounded, () => {
  const remove = ({ post }: Awaited<ReturnType<typeof started>>, name: string) =>
    post('/api/v1/delete', { model_name: name });

  test('takes a model out of memory and off the disk, but not out of the catalog', async t => {
    const world = await started(t);
    world.server.load('A');
    assert.deepEqual(await remove(world, 'A'), {
      status: 200,
      body: { status: 'success', message: 'Deleted model: A' },
    });
    assert.deepEqual(world.server.loaded(), []);
    assert.deepEqual(world.server.models(), ['B', 'E']);
    const all = (await world.get('/v1/models?show_all=true')).data;
    assert.partialDeepStrictEqual(all, [{ id: 'A', downloaded: false }]);
    assert.equal((await remove(world, 'A')).status, 200, 'what is not there can be deleted');
  });

  test('forgets a model that was registered by hand', async t => {
    const world = await started(t, { models: [{ name: 'user.Two', bytes: 1 }] });
    assert.equal((await remove(world, 'Two')).status, 200);
    assert.deepEqual(await remove(world, 'Two'), { status: 422, body: { error: 'Model not found: Two' } });
  });

  test('tells names by their case, and leaves the models of other folders alone', async t => {
    const world = await started(t, { models: [a, { name: 'extra.X', bytes: 1 }] });
    assert.deepEqual(await remove(world, 'a'), { status: 422, body: { error: 'Model not found: a' } });
    assert.equal((await remove(world, 'X')).status, 500);
    assert.deepEqual(world.server.models(), ['A', 'X']);
  });
});

describe('a completion', bounded, () => {
  test('loads what it needs and keeps it busy until its last word', async t => {
    const { server, clock, words, get } = await started(t, {
      timings: { ...instant, tokenMs: 100 },
      models: [{ ...a, loadMs: 500 }],
      complete: (model, prompt) => `${model} heard ${prompt}`,
    });
    const body = JSON.stringify({ model: 'A', stream: true, messages: [{ role: 'user', content: 'you' }] });
    const asked = fetch(`${server.url}/api/v1/chat/completions`, { method: 'POST', body });
    await clock.sleeping();
    await clock.advance(500);
    const answer = await asked;
    assert.deepEqual(words(), ['A in_use']);
    assert.partialDeepStrictEqual((await get('/v1/health')).all_models_loaded, [
      { status: 'in_use', backend_health: 'busy', is_busy: true, is_streaming: true },
    ]);
    await clock.sleeping();
    await clock.advance(300);
    const lines = (await answer.text()).split('\n\n').filter(line => line !== '');
    assert.equal(lines.at(-1), 'data: [DONE]');
    const chunks = lines.slice(0, -1).map(line => JSON.parse(line.slice('data: '.length)));
    assert.equal(chunks.map(chunk => chunk.choices[0].delta.content ?? '').join(''), 'A heard you');
    assert.equal(chunks.at(-1).choices[0].finish_reason, 'stop');
    assert.deepEqual(words(), ['A ready']);
    assert.equal((await get('/v1/health')).all_models_loaded[0].last_use, clock.now());
  });

  test('lets go of its model when its client has gone', async t => {
    const { server, clock, words } = await started(t, { timings: { ...instant, tokenMs: 100 } });
    server.load('A');
    const abort = new AbortController();
    const body = JSON.stringify({ model: 'A', stream: true, messages: [] });
    await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body, signal: abort.signal });
    await clock.sleeping();
    abort.abort();
    assert.equal(await (await server.requested('/v1/chat/completions')).ended, 'cut');
    assert.deepEqual(words(), ['A ready']);
  });

  test('of an unknown model is refused like a load; embeddings load too', async t => {
    const { post, words } = await started(t);
    const { status, body } = await post('/v1/chat/completions', { model: 'Nope', messages: [] });
    assert.deepEqual([status, body.error.code], [404, 'model_not_found']);
    const vectors = await post('/v1/embeddings', { model: 'E', input: ['a', 'b'] });
    assert.equal(vectors.body.data.length, 2);
    assert.deepEqual(words(), ['E ready']);
  });
});

describe('a server that blocks', bounded, () => {
  const paths = ['/api/v1/health', '/api/v1/models', '/api/v1/system-info'];
  /** Asks for all of them; resolves when all are on the server. */
  const askAll = async (world: Awaited<ReturnType<typeof started>>) => {
    const done: string[] = [];
    const all = Promise.all(paths.map(path => world.get(path).then(() => done.push(path))));
    await Promise.all(paths.map(path => world.server.requested(path)));
    return { done, all };
  };

  test('answers nothing while it loads, its health included', async t => {
    const world = await started(t, { blocks: ['load'] });
    const { load, clock } = world;
    const loading = load('A');
    await clock.sleeping();
    const { done, all } = await askAll(world);
    await clock.advance(29_999);
    assert.deepEqual(done, []);
    await clock.advance(1);
    assert.equal((await loading).status, 200);
    await all;
  });

  test('answers nothing while it downloads either, where it is told so', async t => {
    const registry = [{ name: 'Far', files: [{ name: 'far.gguf', bytes: 100 }], pullMs: 5000 }];
    const world = await started(t, { blocks: ['load', 'pull'], registry });
    const { clock, post } = world;
    const pulling = post('/v1/pull', { model_name: 'Far' });
    await clock.sleeping();
    const { done, all } = await askAll(world);
    await clock.advance(4999);
    assert.deepEqual(done, []);
    await clock.advance(1);
    await pulling;
    await all;
  });

  test('answers again after a restart', async t => {
    const { server, load, clock, get } = await started(t, { blocks: ['load'] });
    const loading = load('A');
    await clock.sleeping();
    const restarted = server.restart();
    await assert.rejects(loading);
    await restarted;
    assert.equal((await get('/v1/health')).status, 'ok');
    assert.deepEqual(server.loaded(), []);
  });
});

describe('a restart', bounded, () => {
  test('empties the memory and keeps the disk', async t => {
    const { server, words, get } = await started(t);
    server.load('A', { pinned: true });
    await server.restart();
    assert.deepEqual(words(), []);
    assert.deepEqual(server.models(), ['A', 'B', 'E']);
    await server.stop();
    await assert.rejects(get('/v1/health'));
    await server.start('11.8.0');
    assert.equal((await get('/v1/health')).version, '11.8.0');
  });
});
