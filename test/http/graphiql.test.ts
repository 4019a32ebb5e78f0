import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { chromium, type Page } from 'playwright-core';
import { startOllama } from '../../src/demo/ollama.ts';
import { createOllamaDriver } from '../../src/drivers/ollama/index.ts';
import { testGateway } from '../support/gateway.ts';
import { eventually, send, startServer, textOf } from '../support/server.ts';

const browser = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(
  path => path && existsSync(path),
);
const skip = browser ? false : 'there is no Chromium here; CHROMIUM can name one';
/** A folder to leave pictures in. */
const pictures = process.env.SCREENSHOTS;

/** A page of a browser that knows no other machine than this one, and what it complained about. */
async function openBrowser(t: TestContext) {
  const profile = await mkdtemp(join(tmpdir(), 'graphiql-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: browser as string,
    headless: true,
    viewport: { width: 1400, height: 900 },
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
    ],
  });
  const page = context.pages()[0] ?? (await context.newPage());
  t.after(async () => {
    await picture(page, 'end');
    await context.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', error => complaints.push(error.message));
  page.on('requestfailed', request => complaints.push(`${request.url()}: ${request.failure()?.errorText}`));
  page.on('request', request => asked.push(request.url()));
  page.on('websocket', socket => asked.push(socket.url()));
  return { page, complaints, asked };
}

/** Waits until the result has a line with each of these. */
async function shown(page: Page, ...lines: RegExp[]) {
  for (const line of lines) {
    await page.locator('.result-window .view-line').filter({ hasText: line }).first().waitFor({ timeout: 10_000 });
  }
}
const open = (page: Page, tab: string) => page.getByRole('button', { name: tab, exact: true }).click();
const run = (page: Page) => page.getByRole('button', { name: /^Execute query/ }).click();
const picture = async (page: Page, name: string) => {
  if (pictures) await page.screenshot({ path: join(pictures, `graphiql-${name}.png`) });
};

test('GraphiQL starts a pull and follows it, with nothing but this server to talk to', { skip }, async t => {
  await using ollama = await startOllama({
    registry: [{ name: 'smollm2:135m', layers: [{ bytes: 271e6 }] }],
    timings: { pullMs: 4_000 },
  });
  const driver = createOllamaDriver({ endpoint: ollama.url, keepAliveDefault: '5m' });
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }), graphiql: true });
  const { page, complaints, asked } = await openBrowser(t);

  await page.goto(server.graphqlUrl);
  await page.getByRole('button', { name: /^Execute query/ }).waitFor({ timeout: 20_000 });
  assert.equal(await page.title(), 'model-manager');
  assert.deepEqual(await page.getByRole('tab').locator('button:first-child').allInnerTexts(), [
    'watchJobs',
    'watchModels',
    'listModels',
    'pullModel',
    'listBackends',
  ]);
  await picture(page, 'loaded');

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
    await open(page, tab);
    // For a moment after a tab was opened, GraphiQL runs what the one before was named.
    const seen = shown(page, line);
    for (let runs = 0; runs < 20; runs++) {
      await run(page);
      if (await Promise.race([seen.then(() => true), page.waitForTimeout(250).then(() => false)])) break;
    }
    await seen;
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
