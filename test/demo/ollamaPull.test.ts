import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { Ollama } from 'ollama';
import { instant, manualClock, type OllamaOptions, type RegistryModel, startOllama } from '../../src/demo/ollama.ts';

const bounded = { timeout: 10_000 };

const weights = `sha256:${'50e721e49c01'.padEnd(64, '0')}`;
const template = `sha256:${'63bce8d4edf0'.padEnd(64, '0')}`;

// 1000 bytes in one second: a byte per millisecond.
const small: RegistryModel = {
  name: 'llama3.2:3b',
  layers: [
    { bytes: 900, digest: weights },
    { bytes: 100, digest: template },
  ],
  pullMs: 1000,
};

const line = (digest: string, total: number, completed?: number) => ({
  status: `pulling ${digest.slice(7, 19)}`,
  digest,
  total,
  ...(completed === undefined ? {} : { completed }),
});

async function started(t: TestContext, options: OllamaOptions = {}) {
  const clock = manualClock();
  const timings = { ...instant, tickMs: 300 };
  const server = await startOllama({ clock, timings, registry: [small], ...options });
  t.after(() => server.close());
  return { server, clock, client: new Ollama({ host: server.url }) };
}

/** Everything a pull says, by the bytes on the wire. */
async function pulled(url: string, model: string): Promise<object[]> {
  const answer = await fetch(`${url}/api/pull`, { method: 'POST', body: JSON.stringify({ model }) });
  const lines = (await answer.text()).split('\n');
  assert.equal(lines.pop(), '', 'the last line ends too');
  return lines.map(text => JSON.parse(text));
}

describe('a pull', bounded, () => {
  test('reports layer by layer, leaves counts of 0 out and ends with success', async t => {
    const { server, clock } = await started(t, { timings: { ...instant, tickMs: 300, firstByteMs: 300 } });
    const lines = pulled(server.url, 'llama3.2:3b');
    await clock.sleeping();
    await clock.advance(5000);
    assert.deepEqual(await lines, [
      { status: 'pulling manifest' },
      line(weights, 900),
      line(weights, 900, 300),
      line(weights, 900, 600),
      // The tick at 900 loses the race against completion; the small layer is done before its second tick.
      line(template, 100),
      { status: 'verifying sha256 digest' },
      { status: 'writing manifest' },
      { status: 'success' },
    ]);
    assert.deepEqual(server.models(), ['llama3.2:3b']);
  });

  test('reports each layer that is there already as complete', async t => {
    const { server } = await started(t, { models: [{ name: small.name, layers: small.layers }] });
    assert.deepEqual(await pulled(server.url, 'llama3.2:3b'), [
      { status: 'pulling manifest' },
      line(weights, 900, 900),
      line(template, 100, 100),
      { status: 'verifying sha256 digest' },
      { status: 'writing manifest' },
      { status: 'success' },
    ]);
  });

  test('removes the layers that a new version no longer has', async t => {
    const { server } = await started(t, {
      models: [{ name: small.name, layers: [{ bytes: 5, digest: `sha256:${'e'.repeat(64)}` }] }],
      registry: [{ ...small, pullMs: 0 }],
    });
    const statuses = (await pulled(server.url, 'llama3.2:3b')).map(each => 'status' in each && each.status);
    assert.deepEqual(statuses.slice(-3), ['writing manifest', 'removing unused layers', 'success']);
  });

  test('lands under the spelling that exists', async t => {
    const { server, client } = await started(t, { models: [{ name: 'Llama3.2:3B', bytes: 1 }] });
    server.publish({ ...small, pullMs: 0 });
    await client.pull({ model: 'llama3.2:3b' });
    assert.deepEqual(server.models(), ['Llama3.2:3B']);
  });

  test('answers one document to a client that wants no stream', async t => {
    const { server, client } = await started(t, { registry: [{ ...small, pullMs: 0 }] });
    assert.deepEqual(await client.pull({ model: 'llama3.2:3b' }), { status: 'success' });
    await assert.rejects(client.pull({ model: 'nope' }), {
      status_code: 500,
      error: 'pull model manifest: file does not exist',
    });
    assert.equal(server.requests.length, 2);
  });

  test('stops with its client, keeps the bytes, and the next one goes on from there', async t => {
    const { server, clock, client } = await started(t);
    const stream = await client.pull({ model: 'llama3.2:3b', stream: true });
    await clock.sleeping();
    await clock.advance(300);
    stream.abort();
    await assert.rejects(async () => {
      for await (const _ of stream);
    });
    assert.equal(await (await server.requested('/api/pull')).ended, 'cut');
    assert.deepEqual([...server.partials()], [[weights, 300]]);
    await clock.advance(60_000);

    const rest = pulled(server.url, 'llama3.2:3b');
    await clock.sleeping();
    await clock.advance(1000);
    assert.deepEqual((await rest)[1], line(weights, 900, 600));
    assert.deepEqual([...server.partials()], []);
  });

  test('shares its download with another pull, which outlives it', async t => {
    const { server, clock, client } = await started(t);
    const first = await client.pull({ model: 'llama3.2:3b', stream: true });
    await clock.sleeping();
    await clock.advance(400);
    const second = pulled(server.url, 'llama3.2:3b');
    await clock.sleeping(2);
    first.abort();
    await (await server.requested('/api/pull')).ended;
    assert.deepEqual([...server.partials()], []);
    await clock.advance(1000);
    assert.deepEqual((await second)[1], line(weights, 900, 700));
  });

  test('starts from nothing after a restart', async t => {
    const { server, clock, client } = await started(t);
    const { url } = server;
    const stream = await client.pull({ model: 'llama3.2:3b', stream: true });
    await clock.sleeping();
    await clock.advance(300);
    await server.restart();
    assert.equal(server.url, url);
    await assert.rejects(async () => {
      for await (const _ of stream);
    });
    assert.deepEqual([...server.partials()], []);
    const again = pulled(url, 'llama3.2:3b');
    await clock.sleeping();
    await clock.advance(1000);
    assert.deepEqual((await again)[1], line(weights, 900, 300));
  });

  test('of a model of tensors reports one layer and verifies nothing', async t => {
    const registry = [{ ...small, format: 'safetensors' }];
    const { server, clock } = await started(t, { registry });
    const lines = pulled(server.url, 'llama3.2:3b');
    await clock.sleeping();
    await clock.advance(1000);
    assert.deepEqual(await lines, [
      { status: 'pulling manifest' },
      { status: 'pulling model', digest: 'sha256:model', total: 1000, completed: 300 },
      { status: 'pulling model', digest: 'sha256:model', total: 1000, completed: 600 },
      { status: 'pulling model', digest: 'sha256:model', total: 1000, completed: 900 },
      { status: 'writing manifest' },
      { status: 'success' },
    ]);
  });
});

describe('a failing pull', bounded, () => {
  test('of an unknown model says so in its second line, with status 200', async t => {
    const { server } = await started(t);
    assert.deepEqual(await pulled(server.url, 'nope'), [
      { status: 'pulling manifest' },
      { error: 'pull model manifest: file does not exist' },
    ]);
    assert.match(JSON.stringify(await pulled(server.url, 'hf.co/nobody/nothing')), /realm host/);
  });

  test('is an error to the client, and the model is not there', async t => {
    const error = 'pull model manifest: 412: \n\nThis model requires a newer version of Ollama.\n\n';
    const { server, client } = await started(t, { registry: [{ ...small, failure: { at: 'manifest', error } }] });
    const stream = await client.pull({ model: 'llama3.2:3b', stream: true });
    await assert.rejects(
      async () => {
        for await (const _ of stream);
      },
      { message: error },
    );
    assert.deepEqual(server.models(), []);
  });

  test('fails at its byte, keeps what it has, and goes on once the trouble is over', async t => {
    const error = 'max retries exceeded: unexpected EOF';
    const { server, clock } = await started(t, { registry: [{ ...small, failure: { at: 950, error, times: 1 } }] });
    const first = pulled(server.url, 'llama3.2:3b');
    await clock.sleeping();
    await clock.advance(1000);
    assert.deepEqual((await first).at(-1), { error });
    assert.deepEqual([...server.partials()], [[template, 50]]);

    const second = pulled(server.url, 'llama3.2:3b');
    await clock.sleeping();
    await clock.advance(1000);
    assert.deepEqual((await second).at(-1), { status: 'success' });
  });

  test('with a wrong digest fails after 100 % and downloads the layer anew', async t => {
    const { server } = await started(t, { registry: [{ ...small, pullMs: 0, failure: { at: 'verify', times: 1 } }] });
    const [verifying, mismatch] = (await pulled(server.url, 'llama3.2:3b')).slice(-2);
    assert.deepEqual(verifying, { status: 'verifying sha256 digest' });
    assert.match(JSON.stringify(mismatch), /digest mismatch, file must be downloaded again: want sha256:50e721e49c01/);
    const again = await pulled(server.url, 'llama3.2:3b');
    assert.deepEqual(again[1], line(template, 100, 100), 'only the other layer is there');
    assert.deepEqual(again.at(-1), { status: 'success' });
  });

  test('that stalls keeps reporting the same bytes until it moves again', async t => {
    const { server, clock } = await started(t, { registry: [{ ...small, stall: { at: 450, ms: 600 } }] });
    const lines = pulled(server.url, 'llama3.2:3b');
    await clock.sleeping();
    await clock.advance(5000);
    const counts = (await lines).map(each => 'completed' in each && each.completed).filter(count => count !== false);
    assert.deepEqual(counts, [300, 450, 450, 600]);
  });
});
