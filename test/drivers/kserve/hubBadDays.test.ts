import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type EmulatedHub, startHub } from '../../../src/demo/hub.ts';
import type { FitResult } from '../../../src/domain.ts';
import type { GatewayError } from '../../../src/errors.ts';
import { answer, callOf, serve, soon } from '../scripted.ts';
import { tiny } from './hubLab.ts';
import { serving, startUncached } from './uncached.ts';

const id = 'acme-labs/Nova-4B-Instruct';
/** No preset serves it. */
const other = 'acme/other';
const secret = 'hf_theOperatorsOwn1';
const about = `/api/models/${id}`;

interface Day {
  readonly what: string;
  /** As the flag is written; the usual one when absent. */
  readonly timeout?: string;
  /** What goes wrong. */
  bad(hub: EmulatedHub): unknown;
  /** End of the reason of a preset, whose own word counts. */
  readonly clause: RegExp;
  /** What who asks for the repository is told. */
  readonly error: [code: string, message: RegExp];
}

const lookup = (words: RegExp) => new RegExp(`the Hugging Face Hub lookup failed \\(.*${words.source}`);
const days: readonly Day[] = [
  {
    what: 'is down',
    bad: hub => hub.stop(),
    clause: lookup(/connection refused at .*\?\)$/),
    error: ['backend_error', /connection refused/],
  },
  {
    what: 'never answers',
    timeout: '300ms',
    bad: hub => hub.trouble({ kind: 'silent' }),
    clause: /did not answer within 300ms$/,
    error: ['backend_error', /did not answer within 300ms: /],
  },
  {
    what: 'answers later than anybody waits',
    timeout: '300ms',
    bad: hub => hub.trouble({ kind: 'slow', ms: 5_000 }),
    clause: /did not answer within 300ms$/,
    error: ['backend_error', /did not answer within 300ms: /],
  },
  {
    what: 'wants no more requests',
    bad: hub => hub.trouble({ kind: 'limited', seconds: 60 }),
    clause: lookup(/wants no more requests for 60 s\)$/),
    error: ['backend_error', /wants no more requests for (60|59) s/],
  },
  {
    what: 'answers 200 with a web page',
    bad: hub => hub.trouble({ kind: 'page' }),
    clause: lookup(/with a web page.* \(HTTP 200\)\)$/),
    error: ['backend_error', /with a web page/],
  },
  {
    what: 'has a list of more than 8 MiB',
    bad(hub) {
      const body = `["${'x'.repeat(9 * 2 ** 20)}"]`;
      for (const each of [id, other]) hub.fault({ kind: 'answer', path: `/api/models/${each}/tree/main`, body });
    },
    clause: lookup(/is larger than 8 MiB\)$/),
    error: ['backend_error', /is larger than 8 MiB/],
  },
  {
    what: 'hides it from who has no token',
    bad: hub => [id, other].map(each => hub.publish(tiny(each, { private: true }))),
    clause: /the Hugging Face Hub refused the repository metadata \(gated or private\)$/,
    error: ['invalid_request', /is gated or private; configure a hub token with access \(HTTP 401\)$/],
  },
];

async function startDay(t: TestContext, models = [tiny(id), tiny(other)], flags: Record<string, string> = {}) {
  const hub = await startHub({ models, tokens: { [secret]: [id] } });
  t.after(() => hub.close());
  const world = await startUncached({ hfEndpoint: hub.url, ...flags });
  t.after(() => world[Symbol.asyncDispose]());
  const ask = (request: object): Promise<FitResult> =>
    soon(Promise.resolve(world.driver.checkFit?.(callOf(), request) ?? assert.fail('no fit')), 'a fit', 8_000);
  return { hub, ...world, ask };
}

for (const { what, timeout, bad, clause, error } of days) {
  test(`where the Hub ${what} the word of a preset counts, and without one it is an error in words`, async t => {
    const { hub, ask } = await startDay(t, undefined, timeout ? { hfTimeout: timeout } : {});
    await bad(hub);
    const fit = await ask({ preset: 'nova-4b' });
    assert.match(fit.reason ?? '', /; weights from the preset's requirements: /);
    assert.match(fit.reason ?? '', clause);
    assert.deepEqual([fit.weightsSource, fit.downloadBytes], ['preset', undefined]);
    const refused = await ask({ model: other }).then(
      () => assert.fail('there is nothing to go by'),
      (refused: GatewayError) => refused,
    );
    assert.match(refused.message, error[1]);
    assert.equal(refused.code, error[0]);
  });
}

test('a gated repository is weighed, and that it needs a token is said', async t => {
  const { ask } = await startDay(t, [tiny(id, { gated: 'auto' })]);
  const fit = await ask({ preset: 'nova-4b' });
  assert.deepEqual([fit.gated, fit.tokenConfigured, fit.weightsSource], [true, false, 'tree']);
  assert.match(fit.reason ?? '', /; the repository is gated and no hub token is configured$/);
});

test('a private repository takes a token, out of the Secret of the operator', async t => {
  const models = [tiny(id, { private: true })];
  const closed = await startDay(t, models);
  const without = await closed.ask({ preset: 'nova-4b' });
  assert.deepEqual([without.gated, without.weightsSource], [true, 'preset']);
  assert.match(without.reason ?? '', /refused the repository metadata \(gated or private\)$/);

  const open = await startDay(t, models, { hfTokenSecret: 'hub' });
  const data = { token: Buffer.from(secret).toString('base64') };
  open.cluster.put({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hub', namespace: serving }, data });
  const fit = await open.ask({ preset: 'nova-4b' });
  assert.deepEqual(
    [fit.private, fit.gated, fit.tokenConfigured, fit.weightsBytes, fit.weightsSource],
    [true, false, true, 995, 'safetensors-index'],
  );
});

test('a total that is wrong by more than one percent is not believed', async t => {
  const index = '{"metadata":{"total_size":7},"weight_map":{"a":"model-00001-of-00001.safetensors"}}';
  const files = [
    { path: 'model-00001-of-00001.safetensors', bytes: 1_000 },
    { path: 'model.safetensors.index.json', text: index },
  ];
  const { ask } = await startDay(t, [{ id, files }]);
  const fit = await ask({ preset: 'nova-4b' });
  assert.deepEqual([fit.weightsBytes, fit.weightsSource], [1_000, 'safetensors-shards']);
});

test('who is redirected to by the Hub gets neither a request nor the token', async t => {
  const elsewhere = await serve(t, (_, response) => answer(response, 200, { id }));
  const { hub, cluster, ask } = await startDay(t, [tiny(id)], { hfTokenSecret: 'hub' });
  const data = { token: Buffer.from(secret).toString('base64') };
  cluster.put({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'hub', namespace: serving }, data });
  const headers = { location: `${elsewhere.endpoint}${about}` };
  hub.fault({ kind: 'answer', path: about, status: 307, body: '', headers });
  const fit = await ask({ preset: 'nova-4b' });
  assert.match(fit.reason ?? '', /a redirect to .*, which is not followed \(HTTP 307\)\)$/);
  assert.equal(elsewhere.requests.length, 0);
  assert.ok(!(fit.reason ?? '').includes(secret));
});
