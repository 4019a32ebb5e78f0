import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { eventually, send } from '../support/server.ts';
import { bearer, serveLab } from './lab.ts';

test('check 13: without keys at the start the process is up, not ready, answers 503, and recovers by itself', async t => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  await using lab = await serveLab({
    early: true,
    prepare: issuer => {
      issuer.script.keys = (_req, res) => void res.writeHead(500).end();
    },
  });
  const { url, graphqlUrl } = lab.server;
  const failed = () => lab.logged.filter(line => line.includes('cannot be read')).length;
  await eventually(() => failed() === 1, 'the first try has failed');
  const headers = bearer(await lab.issuer.token());
  assert.equal((await send(`${url}/healthz`)).status, 200);
  const ready = await send(`${url}/readyz`);
  assert.equal(ready.status, 503);
  assert.match(ready.text, /\/keys: answers 500/);
  for (const init of [{}, { headers }]) {
    for (const [target, body] of [
      [`${url}/api/v1/backends`, undefined],
      [graphqlUrl, { query: '{ __typename }' }],
      [`${url}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    ] as const) {
      const answer = await send(target, body, init);
      assert.equal(answer.status, 503, target);
      assert.equal(answer.headers.get('retry-after'), '5');
      assert.equal(answer.json.error, 'temporarily_unavailable');
    }
  }
  mock.timers.tick(1_000);
  await eventually(() => failed() === 2, 'the second try has failed');
  mock.timers.tick(1_000);
  assert.equal(failed(), 2, 'the pause grows');
  delete lab.issuer.script.keys;
  mock.timers.tick(1_000);
  await eventually(() => lab.identity.waiting() === undefined, 'the keys are read');
  assert.equal((await send(`${url}/readyz`)).status, 200);
  assert.equal((await send(`${url}/api/v1/backends`, undefined, { headers })).status, 200);
});
