import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startOllama } from '../../src/demo/ollama.ts';
import { createOllamaDriver } from '../../src/drivers/ollama/index.ts';
import { noBrowser, openBrowser, openGraphiql, picture, run, runTab, shown } from '../support/browser.ts';
import { testGateway } from '../support/gateway.ts';
import { eventually, send, startServer, textOf } from '../support/server.ts';

test('GraphiQL starts a pull and follows it, with nothing but this server to talk to', { skip: noBrowser }, async t => {
  await using ollama = await startOllama({
    registry: [{ name: 'smollm2:135m', layers: [{ bytes: 271e6 }] }],
    timings: { pullMs: 4_000 },
  });
  const driver = createOllamaDriver({ endpoint: ollama.url, keepAliveDefault: '5m' });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }), graphiql: true });
  const { page, complaints, asked } = await openBrowser(t);

  await openGraphiql(page, server.graphqlUrl);
  assert.equal(await page.title(), 'model-manager');
  assert.deepEqual(await page.getByRole('tab').locator('button:first-child').allInnerTexts(), [
    'watchJobs',
    'loadModel',
    'watchServe',
    'watchModels',
    'listModels',
    'pullModel',
    'listBackends',
  ]);
  await picture(page, 'loaded');
  await page.evaluate('scrollTo(9, 9)');
  assert.deepEqual(await page.evaluate('[scrollX, scrollY]'), [0, 0], 'the page itself does not scroll');

  await run(page);
  await shown(page, /"snapshot":\s*true/, /"items":\s*\[\]/);
  await send(server.graphqlUrl, { query: textOf('pullModel'), variables: { model: 'smollm2:135m' } });
  await shown(page, /"phase":\s*"RUNNING"/, /"percent":\s*[1-9]/);
  await picture(page, 'progress');
  await shown(page, /"phase":\s*"SUCCEEDED"/, /"percent":\s*100/);
  await picture(page, 'succeeded');
  assert.equal(server.counts.members, 1);
  await page.getByRole('button', { name: /^Stop query/ }).click();
  await eventually(() => server.counts.members === 0, 'no member left');

  for (const [tab, line] of [
    ['listModels', /"name":\s*"smollm2:135m"/],
    ['pullModel', /"model":\s*"smollm2:135m"/],
  ] as const) {
    await runTab(page, tab, line);
    await picture(page, tab);
  }
  await page.getByRole('button', { name: 'Show Documentation Explorer' }).click();
  await page.getByText('Subscription', { exact: true }).first().waitFor();
  await picture(page, 'documentation');

  assert.deepEqual(complaints, []);
  const own = new RegExp(`^(blob:)?(http|ws)://127\\.0\\.0\\.1:${server.port}/`);
  assert.deepEqual(
    asked.filter(url => !own.test(url) && !url.startsWith('data:')),
    [],
  );
  assert.ok(asked.includes(server.socketUrl), 'subscriptions go over a WebSocket');
});

test('the page comes with a policy that lets it talk to this server only', async () => {
  await using server = await startServer({ graphiql: true });
  const page = await send(server.graphqlUrl, undefined, { headers: { accept: 'text/html,application/xhtml+xml,*/*' } });
  assert.equal(page.status, 200);
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.match(
    policy,
    new RegExp(`connect-src 'self' ws://127\\.0\\.0\\.1:${server.port} wss://127\\.0\\.0\\.1:${server.port};`),
  );
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe-eval/);
  // Apart from links for people, nothing in the page is to be loaded from elsewhere.
  assert.doesNotMatch(page.text, /<(?:script|link|img|iframe)[^>]+(?:src|href)="(?:https?:)?\/\//);
});

test('who asks for JSON, or asks a question, gets no page; nor does anybody when it is off', async () => {
  await using server = await startServer({ graphiql: true });
  const html = { accept: 'text/html' };
  const asked = await send(`${server.graphqlUrl}?query={__typename}`, undefined, {
    headers: { accept: 'text/html, */*' },
  });
  assert.deepEqual(asked.json, { data: { __typename: 'Query' } });
  assert.equal((await send(server.graphqlUrl)).status, 400);
  const head = await send(server.graphqlUrl, undefined, { method: 'HEAD', headers: html });
  assert.deepEqual([head.status, head.text], [200, '']);

  await using bare = await startServer({ graphiql: false });
  const { status, text } = await send(bare.graphqlUrl, undefined, { headers: html });
  assert.equal(status, 406);
  assert.doesNotMatch(text, /<html/i);
});
