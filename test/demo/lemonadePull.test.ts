import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import {
  instant,
  type LemonadeOptions,
  manualClock,
  type RegistryModel,
  startLemonade,
} from '../../src/demo/lemonade.ts';

const bounded = { timeout: 10_000 };
const recorded = (name: string) => readFileSync(new URL(`../fixtures/lemonade/${name}`, import.meta.url), 'utf8');

// Two files of 12 582 912 bytes in 1200 ms.
const two: RegistryModel = {
  name: 'Two',
  files: [
    { name: 'Fake-Q4_K_M.gguf', bytes: 9_437_184 },
    { name: 'mmproj-F16.gguf', bytes: 3_145_728 },
  ],
  pullMs: 1200,
};

// 1000 bytes in one second: a byte per millisecond.
const small: RegistryModel = {
  name: 'Small',
  files: [
    { name: 'small.gguf', bytes: 900 },
    { name: 'mmproj.gguf', bytes: 100 },
  ],
  pullMs: 1000,
};

async function started(t: TestContext, options: LemonadeOptions = {}) {
  const clock = manualClock();
  const server = await startLemonade({ clock, timings: { ...instant, tickMs: 300 }, registry: [small], ...options });
  t.after(() => server.close());
  const post = (path: string, body: object, init: RequestInit = {}) =>
    fetch(server.url + path, { method: 'POST', body: JSON.stringify(body), ...init });
  const pull = (model_name: string, init: RequestInit = {}) => post('/api/v1/pull', { model_name, stream: true }, init);
  const get = async (path: string) => (await fetch(server.url + path)).json();
  return { server, clock, post, pull, get };
}

/** The stream of a pull that runs to its end. */
async function streamOf({ pull, clock }: Awaited<ReturnType<typeof started>>, model: string): Promise<string> {
  const text = pull(model).then(answer => answer.text());
  const moved = clock.sleeping().then(() => clock.advance(3_600_000));
  await Promise.race([text, moved]);
  return text;
}

const blocksOf = (stream: string) => stream.split('\n\n').filter(block => block !== '');
const dataOf = (block: string) => JSON.parse(block.replace(/^.*\ndata: /s, ''));
const countsOf = (stream: string) =>
  blocksOf(stream).map(block => {
    const { bytes_downloaded: done, bytes_total: total } = dataOf(block);
    return `${done}/${total}`;
  });

/** Whether the blocks stand in the stream in this order, whatever is between them. */
function assertInOrder(stream: string, expected: readonly string[]): void {
  const blocks = blocksOf(stream);
  let from = 0;
  for (const block of expected) {
    const found = blocks.indexOf(block, from);
    assert.ok(found >= 0, `not there, or too early: ${block}`);
    from = found + 1;
  }
}

describe('a recorded pull', bounded, () => {
  /** Without the events in the middle of a file, which come when they come. */
  const milestones = (stream: string) =>
    blocksOf(stream).filter(block => {
      const { bytes_downloaded: done, bytes_total: total } = dataOf(block);
      return done === 0 || done === total;
    });

  test('of two files is reproduced, with unknown lengths in between and zeros at the end', async t => {
    const world = await started(t, { registry: [two] });
    const stream = await streamOf(world, 'Two');
    assert.deepEqual(milestones(stream), milestones(recorded('pull.sse')));
    const [tick] = blocksOf(stream).filter(block => !milestones(stream).includes(block));
    assert.equal(
      tick,
      'event: progress\ndata: {"bytes_downloaded":3145728,"bytes_previously_downloaded":0,"bytes_total":9437184,"file":"Fake-Q4_K_M.gguf","file_index":1,"percent":33,"total_download_size":12582912,"total_files":2}',
    );
    assert.deepEqual(world.server.models(), ['Two']);
  });

  test('of an installed model is reproduced byte for byte', async t => {
    const world = await started(t, { models: [{ name: 'Two', files: two.files ?? [] }] });
    assert.equal(await streamOf(world, 'Two'), recorded('pull-installed.sse'));
  });

  test('that goes on, is interrupted and has to begin again is reproduced byte for byte', async t => {
    const drop: RegistryModel = {
      name: 'user.Drop',
      files: [{ name: 'Drop-Q4_K_M.gguf', bytes: 41_943_040 }],
      pullMs: 1000,
      failure: { at: 8_388_608 },
    };
    const world = await started(t, { timings: { ...instant, tickMs: 500, retryMs: 2000 }, registry: [drop] });
    assert.match(await streamOf(world, 'Drop'), /event: error\n/);
    assert.deepEqual([...world.server.partials()], [['user.Drop/Drop-Q4_K_M.gguf', 8_388_608]]);
    world.server.publish({ ...drop, interruptions: [20_971_520], failure: { at: 'checksum', times: 1 } });
    assert.equal(await streamOf(world, 'Drop'), recorded('pull-resume.sse'));
    assert.deepEqual([...world.server.partials()], []);
  });

  test('for the NPU is reproduced, with rounded sizes and events about everything', async t => {
    const files = [
      { name: 'config.json', bytes: 1_258_000 },
      { name: 'model.q4nx', bytes: 2_831_155_200 },
      { name: 'tokenizer.json', bytes: 5_000_000 },
      { name: 'tokenizer_config.json', bytes: 1_000_000 },
      { name: 'vocab.json', bytes: 1_000_000 },
    ];
    const total = files.reduce((sum, file) => sum + file.bytes, 0);
    const npu = { name: 'NPU', recipe: 'flm', files, pullMs: (1000 * total) / 419_430_400 };
    const stream = await streamOf(await started(t, { timings: { ...instant, tickMs: 1000 }, registry: [npu] }), 'NPU');
    assertInOrder(stream, blocksOf(recorded('pull-flm.sse')));
    assert.ok(blocksOf(stream).every(block => dataOf(block).total_download_size === 0));
  });

  test('of a collection is reproduced, with an index that starts over for each model', async t => {
    const registry: RegistryModel[] = [
      {
        name: 'Qwen',
        files: [{ name: 'Qwen3-0.6B-Q4_0.gguf', bytes: 381_681_664 }],
        pullMs: 381_681_664 / 200_000,
      },
      {
        name: 'Whisper',
        files: [
          { name: 'ggml-tiny.bin', bytes: 77_691_713 },
          { name: 'vocab.json', bytes: 308_287 },
        ],
        pullMs: 500,
      },
      { name: 'Team', recipe: 'collection.omni', components: ['There', 'Qwen', 'Whisper'] },
    ];
    const models = [{ name: 'There', files: [{ name: 'there.gguf', bytes: 1 }] }];
    const world = await started(t, { timings: { ...instant, tickMs: 1000 }, models, registry });
    const stream = await streamOf(world, 'Team');
    assertInOrder(stream, blocksOf(recorded('pull-collection.sse')));
    assert.doesNotMatch(stream, /there\.gguf/);
    assert.deepEqual(world.server.models(), ['There', 'Qwen', 'Whisper', 'Team']);
  });

  test('of a name outside the catalog is reproduced byte for byte', async t => {
    const { pull } = await started(t);
    const answer = await pull('Nope-GGUF');
    assert.equal(answer.status, 200);
    assert.equal(await answer.text(), recorded('pull-error.sse'));
  });

  test('whose file is a page is reproduced: the page is complete before the error', async t => {
    const expected = recorded('pull-error-late.sse');
    const gone: RegistryModel = {
      name: 'Gone',
      files: [{ name: 'Gone-Q4_K_M.gguf', bytes: 1_048_576 }],
      failure: { at: 'missing', error: dataOf(blocksOf(expected).at(-1) as string).error },
    };
    assert.equal(await streamOf(await started(t, { registry: [gone] }), 'Gone'), expected);
  });

  test('that is cut in the middle of an event has no end', async t => {
    const { server, pull } = await started(t);
    const body = recorded('pull-cut.sse');
    const afterBytes = Buffer.byteLength(body);
    server.fault({
      path: '/api/v1/pull',
      kind: 'answer',
      contentType: 'text/event-stream',
      body: `${body}…`,
      afterBytes,
    });
    await assert.rejects((await pull('Small')).text());
  });
});

describe('a pull', bounded, () => {
  test('is an event stream that nobody may hold back', async t => {
    const { pull, clock } = await started(t);
    const answer = await pull('Small');
    assert.deepEqual(
      ['content-type', 'cache-control', 'x-accel-buffering'].map(name => answer.headers.get(name)),
      ['text/event-stream', 'no-cache', 'no'],
    );
    await clock.sleeping();
    await clock.advance(1000);
    await answer.text();
  });

  test('reports from tick to tick, file by file', async t => {
    const stream = await streamOf(await started(t), 'Small');
    assert.deepEqual(countsOf(stream), [
      '0/900',
      '0/0',
      '300/900',
      '600/900',
      // The tick at 900 loses the race against completion; the small file is done before its first tick.
      '900/900',
      '0/100',
      '0/0',
      '100/100',
      '0/0',
    ]);
  });

  test('is silent while a file is checked', async t => {
    const { pull, clock } = await started(t, { timings: { ...instant, tickMs: 300, verifyMs: 60_000 } });
    const stream = (await pull('Small')).text();
    let ended = false;
    void stream.then(() => {
      ended = true;
    });
    await clock.sleeping();
    await clock.advance(900 + 60_000 + 100 + 59_999);
    assert.equal(ended, false);
    await clock.advance(1);
    assert.match(await stream, /event: complete\n/);
  });

  test('stands still where it stalls', async t => {
    const stream = await streamOf(await started(t, { registry: [{ ...small, stall: { at: 450, ms: 600 } }] }), 'Small');
    assert.deepEqual(countsOf(stream).slice(2, 7), ['300/900', '450/900', '450/900', '600/900', '900/900']);
  });

  test('answers one document to a client that wants no stream', async t => {
    const { post, server } = await started(t, { registry: [{ ...small, pullMs: 0 }] });
    const answer = await post('/api/v1/pull', { model_name: 'Small' });
    assert.deepEqual(await answer.json(), { status: 'success', model_name: 'Small' });
    const refused = await post('/api/v1/pull', { model: 'Nope', model_name: 'Small' });
    assert.equal(refused.status, 400);
    assert.equal((await refused.json()).code, 'unknown_model');
    assert.deepEqual(server.models(), ['Small']);
  });

  test('stops when its client has gone, keeps the bytes, and the next one goes on from there', async t => {
    const world = await started(t);
    const { server, pull, clock } = world;
    const abort = new AbortController();
    await pull('Small', { signal: abort.signal });
    await clock.sleeping();
    await clock.advance(300);
    abort.abort();
    // Whoever answers this has seen the other connection close.
    await world.get('/v1/health');
    // The download notices with its next event, not before.
    await clock.advance(300);
    assert.equal(await (await server.requested('/api/v1/pull')).ended, 'cut');
    assert.deepEqual([...server.partials()], [['Small/small.gguf', 600]]);
    await clock.advance(60_000);
    const stream = await streamOf(world, 'Small');
    assert.deepEqual(countsOf(stream).slice(0, 4), ['0/900', '600/0', '600/900', '900/900']);
    assert.ok(
      blocksOf(stream)
        .slice(1, 4)
        .every(block => dataOf(block).bytes_previously_downloaded === 600),
    );
  });

  test('keeps its bytes over a restart too', async t => {
    const world = await started(t);
    const { server, pull, clock } = world;
    const broken = (await pull('Small')).text();
    await clock.sleeping();
    await clock.advance(300);
    const restarted = server.restart();
    await assert.rejects(broken);
    await restarted;
    assert.deepEqual(await world.get('/v1/downloads'), []);
    assert.equal(countsOf(await streamOf(world, 'Small'))[1], '300/0');
  });

  test('of a model that is being pulled waits without an event, and then finds the files there', async t => {
    const { pull, clock, get } = await started(t);
    const first = (await pull('Small')).text();
    await clock.sleeping();
    const second = await pull('Small');
    const reader = (second.body as ReadableStream<Uint8Array>).getReader();
    let arrived = false;
    const head = reader.read().finally(() => {
      arrived = true;
    });
    await clock.advance(999);
    // Whatever was sent before this answer would be here.
    await get('/v1/health');
    assert.equal(arrived, false);
    await clock.advance(1);
    await first;
    let text = Buffer.from((await head).value ?? []).toString();
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += Buffer.from(next.value);
    assert.deepEqual(countsOf(text), ['0/900', '900/900', '0/100', '100/100', '0/0']);
  });

  test('is no obstacle to a pull of another model', async t => {
    const other = { ...small, name: 'Other' };
    const { pull, clock } = await started(t, { registry: [small, other] });
    const streams = [pull('Small'), pull('Other')].map(async answer => (await answer).text());
    await clock.sleeping(2);
    await clock.advance(1000);
    for (const stream of await Promise.all(streams)) assert.match(stream, /event: complete\n/);
  });
});

describe('a failing pull', bounded, () => {
  test('fails at its byte, keeps what it has, and goes on once the trouble is over', async t => {
    const failure = { at: 950, error: 'HTTP error 503', times: 1 };
    const world = await started(t, { registry: [{ ...small, failure }] });
    assert.deepEqual(dataOf(blocksOf(await streamOf(world, 'Small')).at(-1) as string), { error: 'HTTP error 503' });
    assert.deepEqual([...world.server.partials()], [['Small/mmproj.gguf', 50]]);
    assert.match(await streamOf(world, 'Small'), /event: complete\n/);
  });

  test('gives up after ten checksums that are wrong, with longer and longer waits between', async t => {
    const registry = [{ ...small, pullMs: 0, failure: { at: 'checksum' as const } }];
    const world = await started(t, { timings: { ...instant, retryMs: 2000 }, registry });
    const { clock } = world;
    const began = clock.now();
    const stream = world.pull('Small').then(answer => answer.text());
    const waits = [2, 4, 8, 16, 32, 64, 120, 120, 120, 120];
    for (const seconds of waits) {
      await clock.sleeping();
      await clock.advance(seconds * 1000);
    }
    assert.match(await stream, /Download failed after 11 attempts/);
    assert.equal(clock.now() - began, 606_000);
    assert.equal(countsOf(await stream).filter(count => count === '900/900').length, 11);
  });

  test('fails after 100 % when the files are no model', async t => {
    const registry = [{ ...small, failure: { at: 'validation' as const } }];
    const world = await started(t, { registry });
    const stream = await streamOf(world, 'Small');
    assert.match(stream, /"percent":100.*\n\nevent: error\ndata: \{"error":"Download validation failed\./);
    assert.deepEqual(world.server.models(), []);
  });

  test('says that the repository is not there, or that the machine cannot run it, without a code', async t => {
    const registry: RegistryModel[] = [
      { ...small, checkpoint: 'acme/gone-GGUF:Q4_K_M', failure: { at: 'manifest' } },
      { name: 'Foreign', files: [], supported: false },
    ];
    const world = await started(t, { registry });
    assert.equal(
      await streamOf(world, 'Small'),
      'event: error\ndata: {"error":"Hugging Face repository not found or not accessible: acme/gone-GGUF"}\n\n',
    );
    assert.match(await streamOf(world, 'Foreign'), /^event: error\ndata: \{"error":"Model 'Foreign' is not available/);
  });

  test('is refused before the stream by a server without a way to the registry', async t => {
    const { pull } = await started(t, { offline: true });
    const answer = await pull('Small');
    assert.equal(answer.status, 400);
    assert.deepEqual(await answer.json(), {
      code: 'lemond_offline',
      error: 'Lemond is in offline mode, models not downloaded',
    });
  });

  test('of a model registered by hand leaves it in the catalog', async t => {
    const registry = [{ ...small, name: 'user.Small', failure: { at: 'manifest' as const } }];
    const world = await started(t, { registry });
    await streamOf(world, 'user.Small');
    assert.deepEqual((await world.get('/v1/models')).data, []);
    assert.partialDeepStrictEqual((await world.get('/v1/models?show_all=true')).data, [
      { id: 'Small', downloaded: false },
    ]);
  });
});

describe('the list of downloads', bounded, () => {
  test('has what runs and what is over, for a while, and shows the shapes that were recorded', async t => {
    const slow: RegistryModel = {
      name: 'user.Slow',
      files: [{ name: 'Slow-Q4_K_M.gguf', bytes: 41_943_040 }],
      pullMs: 8000,
    };
    const world = await started(t, {
      timings: { ...instant, tickMs: 1100, listedMs: 600_000 },
      registry: [slow, { ...two, name: 'user.Two', pullMs: 0 }],
    });
    const { post, clock, get } = world;
    await post('/v1/pull', { model_name: 'user.Two' });
    const began = await post('/v1/pull', { model_name: 'user.Slow', stream: true, subscribe: false });
    assert.partialDeepStrictEqual(await began.json(), { id: 'model:user.Slow', status: 'downloading', running: true });
    await clock.sleeping();
    await clock.advance(1100);
    const about = (name: string) => ({ id: `model:${name}`, model_name: name, type: 'model' });
    const nothing = { bytes_downloaded: 0, bytes_total: 0, bytes_previously_downloaded: 0 };
    assert.deepEqual(await get('/v1/downloads'), [
      {
        ...about('user.Two'),
        status: 'completed',
        running: false,
        complete: true,
        file: '',
        file_index: 2,
        total_files: 2,
        ...nothing,
        // Of the last file nothing is counted.
        completed_files_bytes: 9_437_184,
        cumulative_bytes_downloaded: 9_437_184,
        overall_bytes_downloaded: 9_437_184,
        percent: 100,
        total_download_size: 0,
      },
      {
        ...about('user.Slow'),
        status: 'downloading',
        running: true,
        complete: false,
        file: 'Slow-Q4_K_M.gguf',
        file_index: 1,
        total_files: 1,
        ...nothing,
        bytes_downloaded: 5_767_168,
        bytes_total: 41_943_040,
        completed_files_bytes: 0,
        cumulative_bytes_downloaded: 5_767_168,
        overall_bytes_downloaded: 5_767_168,
        percent: 13,
        total_download_size: 41_943_040,
      },
    ]);
    await clock.advance(598_900);
    assert.deepEqual(world.server.models(), ['Slow', 'Two']);
    assert.equal((await get('/v1/downloads')).length, 1, 'the first one is forgotten');
  });

  test('stops a download without a word to its client, a moment after it was told to', async t => {
    const { pull, post, clock, get, server } = await started(t);
    const stream = (await pull('Small')).text();
    await clock.sleeping();
    const stopped = await post('/v1/downloads/control', { id: 'model:Small', action: 'cancel' });
    assert.partialDeepStrictEqual(await stopped.json(), { status: 'cancelled', running: true });
    await clock.advance(300);
    assert.doesNotMatch(await stream, /complete|error/);
    assert.partialDeepStrictEqual(await get('/v1/downloads'), [{ status: 'cancelled', running: false }]);
    assert.deepEqual([...server.partials()], [['Small/small.gguf', 300]]);
  });

  test('forgets on demand, and does not know what it does not have', async t => {
    const { post } = await started(t);
    const control = async (action: string) => {
      const answer = await post('/v1/downloads/control', { id: 'model:Small', action });
      return [answer.status, await answer.json()];
    };
    assert.equal((await control('pause'))[0], 404);
    assert.deepEqual(await control('remove'), [200, { status: 'ok', missing: true }]);
  });

  test('is not there before 10.6', async t => {
    const { get } = await started(t, { version: '10.5.0' });
    assert.equal((await get('/v1/downloads')).error.type, 'not_found');
  });
});
