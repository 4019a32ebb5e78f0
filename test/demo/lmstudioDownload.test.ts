import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import {
  instant,
  type LmstudioOptions,
  manualClock,
  type RegistryModel,
  startLmstudio,
} from '../../src/demo/lmstudio.ts';

const bounded = { timeout: 10_000 };
const recorded = (name: string) =>
  readFileSync(new URL(`../fixtures/lmstudio/${name}`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map(line => JSON.parse(line));

const start = Date.parse('2026-08-22T08:00:00Z');

// A byte per millisecond.
const small: RegistryModel = { name: 'acme/small', bytes: 1000, pullMs: 1000 };

async function started(t: TestContext, options: LmstudioOptions = {}) {
  const clock = manualClock(start);
  const server = await startLmstudio({ clock, timings: instant, registry: [small], ...options });
  t.after(() => server.close());
  const download = async (body: object) => {
    const sent = { method: 'POST', body: JSON.stringify(body) };
    const answer = await fetch(`${server.url}/api/v1/models/download`, sent);
    return { status: answer.status, body: await answer.json() };
  };
  const poll = async (id = 'job_0000000001') => {
    const answer = await fetch(`${server.url}/api/v1/models/download/status/${id}`);
    return { status: answer.status, body: await answer.json() };
  };
  return { server, clock, download, poll };
}

describe('a download', bounded, () => {
  test('shows the shapes that were recorded, from its start to the end of its finalizing', async t => {
    const bytes = 2_279_145_003;
    const speed = 7_834_921.55;
    const model = { name: 'acme/big', bytes, pullMs: (1000 * bytes) / speed, finalize: { ms: 11_000 } };
    const { clock, download, poll, server } = await started(t, { registry: [model] });
    const [first, second, , finalizing, completed] = recorded('download.ndjson');
    const id = 'job_0000000001';

    assert.deepEqual((await download({ model: 'acme/big' })).body, { ...first, job_id: id });
    await clock.advance(2000);
    const moving = (await poll()).body;
    assert.deepEqual(Object.keys(moving), Object.keys(second));
    assert.equal(moving.downloaded_bytes, second.downloaded_bytes);
    assert.ok(Math.abs(moving.bytes_per_second - second.bytes_per_second) < 0.01);
    assert.match(moving.estimated_completion, /^2026-08-22T08:05:01\.\d{3}Z$/);

    await clock.advance(289_000);
    assert.deepEqual((await poll()).body, { ...finalizing, job_id: id });
    assert.deepEqual(server.models(), []);
    await clock.advance(11_000);
    const { completed_at: _, ...rest } = completed;
    const { completed_at: at, ...end } = (await poll()).body;
    assert.deepEqual(end, { ...rest, job_id: id });
    assert.match(at, /^2026-08-22T08:05:01\.\d{3}Z$/);
    assert.deepEqual(server.models(), ['acme/big']);
  });

  test('can be paused, goes back when it goes on, and can fail in its own words, as was recorded', async t => {
    // 1.5 MB in a second.
    const model = { name: 'acme/big', bytes: 1_000_000_000, pullMs: 1_000_000_000 / 1500 };
    const registry = [{ ...model, failure: { at: 400_000_001, error: 'checksum mismatch' } }];
    const { clock, download, poll, server } = await started(t, { registry });
    const [first, paused, , moving, failed] = recorded('download-paused.ndjson');
    const id = { job_id: 'job_0000000001' };
    const started_at = first.started_at;
    assert.deepEqual((await download({ model: 'acme/big' })).body, { ...first, ...id });
    await clock.advance(400_000_000 / 1500);
    server.pauseDownload(id.job_id);
    await clock.advance(3_600_000);
    assert.deepEqual((await poll()).body, { ...paused, ...id, started_at });
    assert.deepEqual(server.downloads(), [{ id: id.job_id, name: 'acme/big', status: 'paused', bytes: 400_000_000 }]);
    server.resumeDownload(id.job_id, 10_000_001);
    // Until the next byte has come, nothing is known of the speed.
    await clock.advance(1 / 1500);
    const { estimated_completion: _, ...again } = (await poll()).body;
    assert.deepEqual(
      { ...again, bytes_per_second: Math.round(again.bytes_per_second) },
      { ...moving, ...id, started_at },
    );
    await clock.advance(3_600_000);
    const { error } = (await poll()).body;
    assert.equal(error, failed.error);
    assert.deepEqual(server.models(), []);
  });

  test('can have a state that nobody has heard of', async t => {
    const finalize = { ms: 5000, status: 'verifying' };
    const { clock, download, poll } = await started(t, { registry: [{ ...small, finalize }] });
    await download({ model: 'acme/small' });
    await clock.advance(1000);
    assert.partialDeepStrictEqual((await poll()).body, { status: 'verifying', downloaded_bytes: 1000 });
    await clock.advance(5000);
    assert.equal((await poll()).body.status, 'completed');
  });

  test('of a model that is there has no job', async t => {
    const { download } = await started(t, { models: [small] });
    assert.deepEqual((await download({ model: 'acme/small' })).body, { status: 'already_downloaded' });
  });

  test('may be mistaken for one that is there', async t => {
    const { server, download } = await started(t, { registry: [{ ...small, mistakenForDownloaded: true }] });
    assert.deepEqual((await download({ model: 'acme/small' })).body, { status: 'already_downloaded' });
    assert.deepEqual(server.models(), []);
  });

  test('that is asked for again while it runs is the same one', async t => {
    const { clock, download } = await started(t);
    await download({ model: 'acme/small' });
    await clock.advance(400);
    assert.deepEqual((await download({ model: 'acme/small' })).body, {
      job_id: 'job_0000000001',
      status: 'downloading',
      bytes_per_second: 1000,
      estimated_completion: '2026-08-22T08:00:01.000Z',
      total_size_bytes: 1000,
      downloaded_bytes: 400,
      started_at: '2026-08-22T08:00:00.000Z',
    });
  });

  test('goes on when nobody asks, and does not bring back what was removed since', async t => {
    const { server, clock, download, poll } = await started(t);
    await download({ model: 'acme/small' });
    await clock.advance(60_000);
    assert.deepEqual(server.models(), ['acme/small']);
    server.removeModel('acme/small');
    assert.equal((await poll()).body.status, 'completed');
    assert.deepEqual(server.models(), []);
    assert.equal((await download({ model: 'acme/small' })).body.job_id, 'job_0000000002');
  });

  test('stands still where it stalls', async t => {
    const { clock, download, poll } = await started(t, { registry: [{ ...small, stall: { at: 500, ms: 10_000 } }] });
    await download({ model: 'acme/small' });
    await clock.advance(10_000);
    assert.equal((await poll()).body.downloaded_bytes, 500);
    await clock.advance(1000);
    assert.equal((await poll()).body.status, 'completed');
  });

  test('fails as often as it is told, at a byte or while it is finalized', async t => {
    const failure = { at: 'finalize' as const, error: { message: 'disk full' }, times: 1 };
    const { clock, download, poll } = await started(t, { registry: [{ ...small, failure }] });
    await download({ model: 'acme/small' });
    await clock.advance(1000);
    assert.partialDeepStrictEqual((await poll()).body, { status: 'failed', error: { message: 'disk full' } });
    await download({ model: 'acme/small' });
    await clock.advance(1000);
    assert.equal((await poll('job_0000000002')).body.status, 'completed');
  });

  test('is forgotten by a restart, when it was not complete', async t => {
    const { server, clock, download, poll } = await started(t, {
      registry: [small, { ...small, name: 'acme/fast', pullMs: 0 }],
    });
    await download({ model: 'acme/fast' });
    await download({ model: 'acme/small' });
    await clock.advance(500);
    await server.restart();
    assert.deepEqual(await poll('job_0000000002'), {
      status: 404,
      body: { error: { type: 'job_not_found', message: 'Download job not found' } },
    });
    await clock.advance(60_000);
    assert.deepEqual(server.models(), ['acme/fast']);
  });
});

describe('a reference', bounded, () => {
  const link = 'https://huggingface.co/lmstudio-community/Qwen3-8B-GGUF';
  const registry: RegistryModel[] = [
    { ...small, name: 'qwen3-8b@q4_k_m', reference: link, quantization: 'Q4_K_M' },
    { ...small, name: 'qwen3-8b@q8_0', reference: link, quantization: 'Q8_0' },
  ];

  test('may be a link, which lands under a key of another shape', async t => {
    const { server, clock, download } = await started(t, { registry });
    await download({ model: link });
    await clock.advance(1000);
    assert.deepEqual(server.models(), ['qwen3-8b@q4_k_m']);
  });

  test('may be a link with a quantization, which an id of the catalog may not have', async t => {
    const { server, clock, download } = await started(t, { registry });
    await download({ model: link, quantization: 'q8_0' });
    await clock.advance(1000);
    assert.deepEqual(server.models(), ['qwen3-8b@q8_0']);
    const refused = await download({ model: 'acme/small', quantization: 'Q8_0' });
    assert.deepEqual([refused.status, refused.body.error.type], [400, 'not_implemented']);
  });

  test('that nobody knows is refused', async t => {
    const { download } = await started(t);
    for (const model of ['acme/none', `${link}-none`, link]) {
      const { status, body } = await download({ model });
      assert.deepEqual([status, body.error.type], [404, 'model_not_found']);
    }
  });
});
