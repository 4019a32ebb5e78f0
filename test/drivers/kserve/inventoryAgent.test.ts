/** The inventory by agents: real ones, and others that answer what they like. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import { startCacheAgent } from '../../../src/commands/cacheAgent.ts';
import { createAgents } from '../../../src/drivers/kserve/inventory/agent.ts';
import type { GatewayError } from '../../../src/errors.ts';
import { silent } from '../../support/gateway.ts';
import { answer, failure, type Script, serve } from '../scripted.ts';
import { agentPod, settingsFor } from './agentLab.ts';
import { serving, startLab } from './jobLab.ts';
import { jsonOf } from './world.ts';

/** What is counted on a node where an agent answers by a script. */
async function countOf(t: TestContext, script: Script, timeoutMs = 5_000) {
  await using lab = await startLab();
  const { endpoint } = await serve(t, script);
  agentPod(lab);
  const call = createCall({ log: silent, timeoutMs });
  return await createAgents(lab).count(call, settingsFor(new URL(endpoint).port), 'spark-01');
}

test('a real agent is found on its node, and asked', async t => {
  const root = await mkdtemp(join(tmpdir(), 'agent-'));
  t.after(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'nova-4b'));
  await writeFile(join(root, 'nova-4b', 'config.json'), '{}');
  const { port, stop } = await startCacheAgent(
    { root, listen: { host: '127.0.0.1', port: 0 }, node: 'spark-01' },
    silent,
  );
  t.after(stop);
  for (const node of ['spark-01', undefined]) {
    await using lab = await startLab();
    if (node) agentPod(lab, { name: 'agent-0', node: 'rack-07', podIP: '127.0.0.2' });
    agentPod(lab);
    const { entries, warnings } = await createAgents(lab).count(lab.call, settingsFor(port), node);
    assert.deepEqual(
      entries.map(({ dir, bytes, files, hasModel }) => [dir, bytes, files, hasModel]),
      [['nova-4b', 2, 1, true]],
    );
    assert.deepEqual(warnings, []);
  }
});

test('the answer of the fixture is read', async t => {
  const inventory = jsonOf('inventory/agent-inventory.json');
  const { entries } = await countOf(t, ({ path }, response) => {
    assert.equal(path, '/inventory');
    answer(response, 200, inventory);
  });
  assert.equal(entries.length, 6);
});

test('without a ready agent it says what was looked for', async () => {
  await using lab = await startLab();
  const words = async (node: string | undefined) => {
    const { code, message } = (await failure(
      createAgents(lab).count(lab.call, settingsFor(8081), node),
    )) as GatewayError;
    assert.equal(code, 'unavailable');
    return message;
  };
  const rest =
    ' (pods matching "model-manager.giantswarm.io/component=cache-agent" in model-serving): kserve.inventory.mode is daemonset — run the agent there, or set the mode to pod';
  assert.equal(await words('spark-01'), `backend unavailable: no ready cache-agent pod on spark-01${rest}`);
  agentPod(lab, { name: 'a', ready: 'False' });
  agentPod(lab, { name: 'b', podIP: undefined });
  agentPod(lab, { name: 'c', node: 'rack-07' });
  agentPod(lab, { name: 'd', more: { labels: {} } });
  assert.equal(await words('spark-01'), `backend unavailable: no ready cache-agent pod on spark-01${rest}`);
  lab.cluster.remove('pods', 'c', serving);
  assert.equal(await words(undefined), `backend unavailable: no ready cache-agent pod on any node${rest}`);
});

const who = 'cache-agent agent-1 on spark-01';
const answers: [string, Script, RegExp][] = [
  [
    'a refusal',
    (_, response) => answer(response, 500, 'no\nroot', 'text/plain'),
    /^cache-agent agent-1 on spark-01: HTTP 500: no root$/,
  ],
  [
    'a page',
    (_, response) => answer(response, 200, '<html><title>Sign in</title>', 'text/html'),
    /: no inventory but a web page titled "Sign in"$/,
  ],
  [
    'something else',
    (_, response) => answer(response, 200, { entries: 5 }),
    /: no inventory but the document \{"entries":5\}$/,
  ],
  ['nothing', (_, response) => answer(response, 200, ''), /: no inventory but an empty answer$/],
  [
    'a redirect',
    (_, response) => {
      response.setHeader('location', 'http://evil.example/inventory');
      answer(response, 302, '');
    },
    /: HTTP 302: $/,
  ],
  [
    'half of it',
    (_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{', () => response.destroy());
    },
    /GET \/inventory: the connection to http:\/\/127\.0\.0\.1:\d+ was lost before the answer was complete$/,
  ],
  [
    'too much',
    (_, response) => {
      const piece = Buffer.alloc(1024 * 1024, ' ');
      const more = () => {
        while (response.writable && response.write(piece));
        if (response.writable) response.once('drain', more);
      };
      response.writeHead(200, { 'content-type': 'application/json' });
      more();
    },
    /is larger than 32 MiB$/,
  ],
];

for (const [what, script, message] of answers) {
  test(`an agent that answers ${what} is an error that names it`, async t => {
    const error = (await failure(countOf(t, script))) as GatewayError;
    assert.equal(error.code, 'backend_error');
    assert.match(error.message, message);
    assert.ok(error.message.startsWith(who), error.message);
  });
}

test('an agent that never answers costs the time there is', async t => {
  const error = await failure(countOf(t, () => {}, 300));
  assert.match(
    error.message,
    /^cache-agent agent-1 on spark-01: GET \/inventory: no answer from http:\/\/127\.0\.0\.1:\d+ /,
  );
});

test('an agent at an address of IPv6 is dialled there', async () => {
  await using lab = await startLab();
  agentPod(lab, { podIP: '::1' });
  const error = await failure(createAgents(lab).count(lab.call, settingsFor(9), 'spark-01'));
  assert.match(error.message, /http:\/\/\[::1\]:9/);
});
