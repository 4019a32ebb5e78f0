/** The clients people have, where they have to sign in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Client,
  discoverOAuthServerInfo,
  extractWWWAuthenticateParams,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { createClient } from 'graphql-ws';
import { WebSocket } from 'ws';
import { noBrowser, openBrowser, openGraphiql, run, shown } from '../support/browser.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { createInbox, textOf, within } from '../support/server.ts';
import { baseUrl, serveLab } from './lab.ts';

const gateway = () => testGateway({ drivers: [fakeDriver({ models: ['qwen3:8b'] })] });

test('check 18: the MCP SDK finds the provider from our answer, and goes on with its token', async () => {
  await using lab = await serveLab({
    gateway: gateway(),
    prepare: issuer => {
      issuer.script.discovery = (_req, res) =>
        res.end(
          JSON.stringify({
            issuer: issuer.url,
            jwks_uri: `${issuer.url}/keys`,
            authorization_endpoint: `${issuer.url}/auth`,
            token_endpoint: `${issuer.url}/token`,
            response_types_supported: ['code'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['RS256'],
          }),
        );
    },
  });
  /** As the one who brings the public name to the server. */
  const fetchFn = (url: string | URL, init?: RequestInit) => fetch(String(url).replace(baseUrl, lab.server.url), init);
  const serverUrl = `${baseUrl}/mcp`;
  const refused = await fetchFn(serverUrl, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json' },
  });
  await refused.text();
  const { resourceMetadataUrl, error } = extractWWWAuthenticateParams(refused);
  assert.equal(error, 'invalid_token');
  for (const known of [resourceMetadataUrl, undefined]) {
    const found = await discoverOAuthServerInfo(serverUrl, { fetchFn, ...(known && { resourceMetadataUrl: known }) });
    assert.equal(found.authorizationServerUrl, lab.issuer.url);
    assert.equal(found.resourceMetadata?.resource, serverUrl);
    assert.equal(found.authorizationServerMetadata?.token_endpoint, `${lab.issuer.url}/token`);
  }
  const client = new Client({ name: 'test', version: '1' });
  const authProvider = { token: () => lab.issuer.token() };
  await client.connect(new StreamableHTTPClientTransport(new URL(serverUrl), { fetch: fetchFn, authProvider }));
  const { structuredContent } = await client.callTool({ name: 'list_models', arguments: {} });
  assert.ok(JSON.stringify(structuredContent).includes('qwen3:8b'));
  await client.close();
});

test('graphql-ws comes again by itself when its token expires, with the next one', async () => {
  await using lab = await serveLab({ gateway: gateway() });
  const given: string[] = [];
  const codes: number[] = [];
  const client = createClient({
    url: lab.server.socketUrl,
    webSocketImpl: WebSocket,
    retryWait: () => Promise.resolve(),
    // The first one has a second left at least.
    connectionParams: async () => {
      const left = given.length === 0 ? 1 : 600;
      const token = await lab.issuer.token({ exp: Math.ceil(Date.now() / 1000) + left });
      given.push(token);
      return { Authorization: `Bearer ${token}` };
    },
    on: { closed: event => codes.push((event as { code: number }).code) },
  });
  // Before the server goes: it would come again.
  await using _ = { [Symbol.asyncDispose]: async () => client.dispose() };
  const states = createInbox<unknown>();
  client.subscribe(
    { query: textOf('watchJobs') },
    { next: value => states.push(value), error: error => states.push(error), complete: () => states.push('complete') },
  );
  for (const which of ['first', 'second']) {
    const state = (await states.next(`the state, with the ${which} token`)) as { data: { jobs: object } };
    assert.partialDeepStrictEqual(state, { data: { jobs: { items: [], snapshot: true } } });
  }
  assert.equal(given.length, 2);
  assert.deepEqual(codes, [4403]);
});

test('graphql-ws gives up on a token that will never be good', async () => {
  await using lab = await serveLab({ gateway: gateway() });
  let connected = 0;
  const client = createClient({
    url: lab.server.socketUrl,
    webSocketImpl: WebSocket,
    retryWait: () => Promise.resolve(),
    connectionParams: async () => {
      connected++;
      return { Authorization: `Bearer ${await lab.issuer.token({ aud: 'other' })}` };
    },
  });
  // Before the server goes: it would come again.
  await using _ = { [Symbol.asyncDispose]: async () => client.dispose() };
  const failed = new Promise<unknown>(resolve => {
    client.subscribe({ query: textOf('watchJobs') }, { next() {}, error: resolve, complete() {} });
  });
  assert.equal(((await within(failed, 'the failure')) as { code: number }).code, 4401);
  assert.equal(connected, 1);
});

test('GraphiQL takes a token among its headers, for questions and for streams', { skip: noBrowser }, async t => {
  await using lab = await serveLab({ gateway: gateway(), graphiql: true });
  const { page, asked } = await openBrowser(t);
  await openGraphiql(page, lab.server.graphqlUrl);
  const token = await lab.issuer.token();
  await page.getByRole('button', { name: 'Headers' }).click();
  const editor = page.locator('.monaco-editor[data-uri$="headers.json"]').first();
  await editor.click();
  await page.keyboard.press('Control+A');
  // The editor closes what is opened.
  await page.keyboard.insertText(`{"authorization": "Bearer ${token}`);
  await run(page);
  await shown(page, /"snapshot":\s*true/);
  assert.equal(lab.server.counts.members, 1);
  await page.getByRole('button', { name: /^Stop query/ }).click();
  assert.ok(!asked.some(url => url.startsWith('ws')), 'a WebSocket would have no token');
  assert.deepEqual(await page.context().cookies(), []);
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.ok(!stored.includes(token), 'the token goes with the tab');
});
