import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { hubError } from '../../../src/drivers/kserve/hub/facts.ts';
import { createHub } from '../../../src/drivers/kserve/hub.ts';
import { answer, callOf, failure, serve } from '../scripted.ts';
import { recording, silent, startLab, tiny } from './hubLab.ts';

test('what is recorded of the Hub gives the facts it stands for', async t => {
  type Answers = Record<string, { status: number; body: unknown }>;
  const path = new URL('../../fixtures/kserve/fit/hub-responses.json', import.meta.url);
  const answers: Answers = JSON.parse(readFileSync(path, 'utf8'));
  const { endpoint } = await serve(t, (seen, response) => {
    const { status, body } = answers[seen.path] ?? { status: 404, body: { error: 'no' } };
    answer(response, status, body);
  });
  const hub = createHub({ endpoint, token: async () => undefined, timeoutMs: 4_000, log: silent });
  const table: [id: string, revision: string, weights: unknown, downloadBytes: number | undefined, words?: string][] = [
    ['acme-labs/Nova-4B-Instruct', 'main', { bytes: 8_044_936_192, source: 'safetensors-index' }, 16_099_094_228],
    ['north-ai/Atlas-70B-Chat', 'fp8', { bytes: 73_048_000_000, source: 'safetensors-shards' }, 73_048_091_200],
    ['acme-labs/Pico-1B', 'main', { bytes: 2_471_645_608, source: 'tree' }, 4_943_347_827],
    ['orbit/Lyra-20B', 'main', { bytes: 11_000_000_000, source: 'tree' }, 11_000_000_900],
    ['big-lab/Mega-8B', 'main', { bytes: 16_060_522_496, source: 'tree' }, 16_060_523_396],
    ['acme-labs/Docs-Only', 'main', undefined, 100],
    ['acme-labs/Missing-1B', 'main', undefined, undefined, 'acme-labs/Missing-1B is not on the hub'],
    [
      'gate-keeper/Closed-9B',
      'main',
      undefined,
      undefined,
      'gate-keeper/Closed-9B is gated or private; configure a hub token with access (HTTP 401)',
    ],
  ];
  for (const [id, revision, weights, downloadBytes, words] of table) {
    const facts = await hub.weights(callOf(), id, revision, []);
    assert.deepEqual([facts.weights, facts.downloadBytes, facts.miss?.words], [weights, downloadBytes, words], id);
  }
  const pico = await hub.weights(callOf(), 'acme-labs/Pico-1B', 'main', ['*.bin', '.git*']);
  assert.equal(pico.downloadBytes, 2_471_646_308);
  const { repository } = await hub.weights(callOf(), 'orbit/Lyra-20B', 'main', []);
  assert.deepEqual(repository, { id: 'orbit/Lyra-20B', gated: true, private: false });
});

test('models of every sort are weighed by what tells most of them', async t => {
  const { hub } = await startLab(t, {
    tokens: { hf_readsEverything: ['acme/support-assistant-8b'] },
    token: async () => 'hf_readsEverything',
  });
  const weighed = async (id: string) => {
    const { weights, miss } = await hub.weights(callOf(), id, 'main', []);
    return [weights?.source ?? miss?.why, weights?.bytes];
  };
  assert.deepEqual(await weighed('Qwen/Qwen3-0.6B'), ['tree', 1_503_295_368]);
  assert.deepEqual(await weighed('Qwen/Qwen3-8B'), ['safetensors-index', 16_381_470_720]);
  assert.deepEqual(await weighed('openai/gpt-oss-20b'), ['safetensors-index', 13_761_264_768]);
  assert.deepEqual(await weighed('mistralai/Mistral-Small-3.2-24B-Instruct-2506'), [
    'safetensors-index',
    48_022_792_280,
  ]);
  assert.deepEqual(await weighed('ggml-org/gemma-3-4b-it-GGUF'), ['tree', 7_471_235_296]);
  const [source, bytes] = await weighed('acme/support-assistant-70b-fp8');
  assert.equal(source, 'safetensors-shards');
  assert.ok(Math.abs(Number(bytes) - 72_681_857_024) < 1_000_000);
  assert.deepEqual(await weighed('acme/support-assistant-8b'), ['tree', 16_060_575_610]);
});

test('an index that may not be read is a warning, and the files count', async t => {
  const { log, lines } = recording('warn');
  const { hub } = await startLab(t, { log });
  const facts = await hub.weights(callOf(), 'google/gemma-3-27b-it', 'main', []);
  assert.equal(facts.weights?.source, 'tree');
  assert.equal(facts.repository?.gated, true);
  assert.equal(facts.miss, undefined);
  assert.deepEqual(
    lines.map(({ repository, reason }) => [repository, reason]),
    [
      [
        'google/gemma-3-27b-it',
        'model.safetensors.index.json of google/gemma-3-27b-it is gated or private; configure a hub token with access (HTTP 401)',
      ],
    ],
  );
});

test('a token opens what it may open, and says so where it may not', async t => {
  const { id } = tiny('acme/closed');
  const models = [tiny(id, { gated: 'manual' }), tiny('acme/secret', { private: true })];
  const tokens = { hf_goodToken1: [id, 'acme/secret'], hf_poorToken1: [] };
  const using = async (token: string | undefined) => {
    const { hub } = await startLab(t, { models, tokens, token: async () => token });
    return Promise.all([id, 'acme/secret'].map(each => hub.weights(callOf(), each, 'main', [])));
  };
  const [closed, secret] = await using('hf_goodToken1');
  assert.deepEqual(closed?.weights, { bytes: 995, source: 'safetensors-index' });
  assert.deepEqual(secret?.weights, { bytes: 995, source: 'safetensors-index' });
  assert.equal(secret?.repository?.private, true);

  const [listed, hidden] = await using('hf_poorToken1');
  assert.equal(listed?.weights?.source, 'tree');
  assert.deepEqual([hidden?.miss?.why, hidden?.miss?.status], ['missing', 404]);

  for (const token of [undefined, 'hf_wrongToken']) {
    const [, refused] = await using(token);
    assert.deepEqual([refused?.miss?.why, refused?.miss?.status], ['refused', 401], token);
  }
});

test('a revision that is missing is not a repository that is missing', async t => {
  const { hub } = await startLab(t);
  const { repository, miss } = await hub.weights(callOf(), 'Qwen/Qwen3-8B', 'fp8', []);
  assert.equal(repository?.id, 'Qwen/Qwen3-8B');
  assert.equal(miss?.why, 'missing');
  assert.equal(miss?.words, 'Qwen/Qwen3-8B has no revision fp8 on the hub');
});

test('another revision has other files', async t => {
  const models = [tiny('acme/x', { revisions: { 'refs/pr/1': [{ path: 'a.gguf', bytes: 7 }], v2: [] } })];
  const { hub, server } = await startLab(t, { models });
  const weights = async (revision: string) => (await hub.weights(callOf(), 'acme/x', revision, [])).weights?.bytes;
  assert.equal(await weights('refs/pr/1'), 7);
  assert.equal(await weights('v2'), undefined);
  assert.equal(await weights(server.commit('acme/x')), 995);
});

test('a list of files is read to its last page', async t => {
  const files = Array.from({ length: 25 }, (_, place) => ({ path: `part/${place}.safetensors`, bytes: 100 }));
  const { hub, server } = await startLab(t, { models: [{ id: 'acme/many', files }], pageEntries: 10 });
  const { value } = await hub.files(callOf(), 'acme/many', 'main');
  assert.equal(value?.length, 25);
  assert.equal(server.requests.length, 3);
});

test('a repository that was renamed is found under its former name and in other letters', async t => {
  const { hub } = await startLab(t, { models: [tiny('acme/New')], renamed: { 'acme/old': 'acme/New' } });
  for (const id of ['acme/old', 'ACME/new']) {
    const { repository, weights } = await hub.weights(callOf(), id, 'main', []);
    assert.equal(repository?.id, 'acme/New', id);
    assert.deepEqual(weights, { bytes: 995, source: 'safetensors-index' }, id);
  }
});

test('a search gives what the Hub finds, most downloads first', async t => {
  const { hub, server } = await startLab(t);
  const hits = await hub.search(callOf(), 'qwen3 & co', 7);
  assert.equal(hits.length, 0);
  assert.deepEqual(Object.fromEntries(server.requests[0]?.query ?? []), {
    search: 'qwen3 & co',
    limit: '7',
    sort: 'downloads',
    direction: '-1',
    full: 'true',
  });
  const [first, second, ...others] = await hub.search(callOf(), 'QWEN3', 20);
  assert.deepEqual([first?.id, second?.id, others], ['Qwen/Qwen3-0.6B', 'Qwen/Qwen3-8B', []]);
  const { author, downloads, pipelineTag, library, tags } = first ?? {};
  assert.deepEqual([author, downloads, pipelineTag, library], ['Qwen', 8_412_930, 'text-generation', 'transformers']);
  assert.ok(tags?.includes('license:apache-2.0'));
  assert.equal((await hub.search(callOf(), '', 3)).length, 3);
});

test('a server that does not keep to the limit is cut short', async t => {
  const { endpoint } = await serve(t, (_, response) => answer(response, 200, [{ id: 'a/1' }, { id: 'a/2' }]));
  const hub = createHub({ endpoint, token: async () => undefined, timeoutMs: 4_000, log: silent });
  assert.deepEqual(
    (await hub.search(callOf(), 'a', 1)).map(({ id }) => id),
    ['a/1'],
  );
});

test('what is no name is refused before anybody is asked', async t => {
  const { hub, server } = await startLab(t);
  for (const id of ['nova', '../x', 'a/b/c', 'a/b?c', 'a/%2e%2e', 'a/b\n'])
    for (const ask of [
      () => hub.repository(callOf(), id),
      () => hub.files(callOf(), id, 'main'),
      () => hub.weights(callOf(), id, 'main', []),
    ]) {
      const error = await failure(ask());
      assert.equal(error.code, 'invalid_request', id);
      assert.match(error.message, /is no Hugging Face repository \(owner\/name\)$/);
    }
  for (const revision of ['..', 'a b', 'x/../../y', ''])
    assert.match(
      (await failure(hub.weights(callOf(), 'a/b', revision, []))).message,
      /^invalid request: ".*" is no revision of a repository$/,
    );
  assert.equal(server.requests.length, 0);
});

test('a miss is the failure it stands for where nothing stands in', () => {
  const words = 'a/b is what it is';
  const code = (why: 'missing' | 'refused' | 'timeout' | 'failed') => hubError({ why, words });
  assert.deepEqual([code('missing').code, code('missing').message], ['not_found', `model not found: ${words}`]);
  assert.deepEqual([code('refused').code, code('refused').message], ['invalid_request', `invalid request: ${words}`]);
  assert.deepEqual([code('timeout').code, code('timeout').message], ['backend_error', words]);
  assert.equal(code('timeout').details?.timedOut, true);
  assert.deepEqual(
    [code('failed').code, code('failed').message],
    ['backend_error', `the Hugging Face Hub lookup failed (${words})`],
  );
});
