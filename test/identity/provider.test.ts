/** A provider that others wrote issues the tokens: the gateway as it is started, on all its faces. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  Client,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { createClient } from 'graphql-ws';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { pino } from 'pino';
import { WebSocket } from 'ws';
import { serve } from '../../src/commands/serve.ts';
import { parseServe } from '../../src/config/parse.ts';
import { callTool } from '../mcp/muster.ts';
import { freePort } from '../support/ports.ts';
import { type OidcProvider, redirectUri, refreshed, signIn, signInAt, startProvider } from '../support/provider.ts';
import { createInbox, eventually, openSocket, openStream, send, textOf, within } from '../support/server.ts';
import { bearer } from './lab.ts';

/** The gateway as it is started for the tokens of a provider; the resource is what MCP clients ask tokens for. */
async function startFor(t: TestContext, provider: OidcProvider) {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const { settings } = parseServe(
    [
      ...['--listen', `127.0.0.1:${port}`, '--enable-oauth', '--oauth-provider', 'dex', '--oauth-base-url', url],
      ...['--dex-issuer-url', provider.url, '--dex-client-id', 'platform', '--allow-private-oauth-urls'],
      ...['--oauth-trusted-audiences', `muster,${url}/mcp`, '--metrics-listen', `127.0.0.1:${metricsPort}`],
    ],
    {},
    { buildable: [] },
  );
  const lines: string[] = [];
  const served = await serve(settings, pino({ level: 'debug' }, { write: line => lines.push(line) }), {});
  t.after(served.stop);
  let ready = false;
  for (let tries = 0; !ready && tries < 500; tries++) ready = (await send(`${url}/readyz`)).status === 200;
  assert.ok(ready, lines.join(''));
  const metrics = async () => (await send(`http://127.0.0.1:${metricsPort}/metrics`)).text;
  return { url, metrics, graphqlUrl: `${url}/graphql`, socketUrl: `ws://127.0.0.1:${port}/graphql`, lines };
}

/** The time of the provider and of the gateway, which a test moves; timers go on as ever. It begins on a whole second. */
function stoppedClock(t: TestContext) {
  let now = Math.floor(Date.now() / 1000) * 1000;
  t.mock.timers.enable({ apis: ['Date'], now });
  return {
    pass(ms: number) {
      now += ms;
      t.mock.timers.setTime(now);
    },
  };
}

/** A change of nothing, on every face: who asked for it is in the audit trail. */
const cancel = { query: 'mutation { cancelJob(id: "none") { id } }' };

test('check 48: one person, signed in at a provider that others wrote, is the same on every face, and their token is nowhere', async t => {
  await using provider = await startProvider(['platform', 'muster', 'stranger']);
  const { url, graphqlUrl, socketUrl, metrics, lines } = await startFor(t, provider);
  for (const client of ['platform', 'muster']) {
    const { id_token: token } = await signIn(provider, client, 'jane');
    assert.partialDeepStrictEqual(decodeJwt(token), { iss: provider.url, aud: client, sub: 'jane' });
    const headers = bearer(token);
    const before = lines.length;

    assert.equal((await send(`${url}/api/v1/jobs`, undefined, { headers })).status, 200);
    const cancelled = await send(`${url}/api/v1/jobs/none`, undefined, { method: 'DELETE', headers });
    assert.equal(cancelled.status, 404);
    const asked = await send(graphqlUrl, cancel, { headers });
    assert.equal(asked.json.errors[0].extensions.code, 'not_found');
    const stream = await openStream(graphqlUrl, { query: textOf('watchJobs') }, headers);
    assert.equal((await stream.nextPayload('the state')).data.jobs.snapshot, true);
    stream.leave();
    const socket = await openSocket(socketUrl, { payload: { Authorization: `Bearer ${token}` } });
    socket.send({ type: 'subscribe', id: '1', payload: { query: textOf('watchJobs') } });
    assert.equal((await socket.next('the state')).payload.data.jobs.snapshot, true);
    socket.send({ type: 'subscribe', id: '2', payload: cancel });
    while ((await socket.next('the refusal')).id !== '2');
    socket.raw.terminate();
    assert.equal((await callTool(`${url}/mcp`, 'list_jobs', {}, { headers })).isError, false);
    assert.equal((await callTool(`${url}/mcp`, 'cancel_job', { id: 'none' }, { headers })).code, 'not_found');

    const entries = lines
      .slice(before)
      .map(line => JSON.parse(line))
      .filter(({ action }) => action !== undefined);
    assert.deepEqual(
      entries.map(({ caller, face, action, outcome }) => `${caller} ${face} ${action} ${outcome}`),
      ['rest', 'graphql', 'graphql', 'mcp'].map(face => `jane@example.com ${face} cancelJob refused`),
    );
    const came = await metrics();
    assert.match(
      came,
      /model_manager_http_requests_total\{surface="graphql",route="\/graphql",method="POST",code="200"\} [1-9]/,
    );
    assert.match(came, /model_manager_mcp_tool_calls_total\{tool="cancel_job",code="not_found"\} [1-9]/);
    for (const secret of [token, ...token.split('.'), 'jane']) {
      assert.ok(!came.includes(secret), 'no label of a metric has it');
    }
    for (const secret of [token, ...token.split('.')]) assert.ok(!lines.join('').includes(secret), 'no line has it');
  }
  const { id_token: other } = await signIn(provider, 'stranger', 'jane');
  const refused = await send(`${url}/api/v1/jobs`, undefined, { headers: bearer(other) });
  assert.equal(refused.status, 401);
  assert.match(refused.json.error_description, /for audience \[stranger\], .* trusted audiences \[platform, muster, /);
  assert.deepEqual(provider.went, [], 'the provider asked nobody for anything');
});

test('check 12: a provider that others wrote changes its key; new tokens are taken without a restart', async t => {
  const clock = stoppedClock(t);
  await using provider = await startProvider(['platform']);
  const { url } = await startFor(t, provider);
  const statusWith = async (token: string) =>
    (await send(`${url}/api/v1/jobs`, undefined, { headers: bearer(token) })).status;
  const before = await signIn(provider, 'platform', 'jane');
  assert.equal(await statusWith(before.id_token), 200);
  const keysAsked = () => provider.asked.filter(path => path === '/jwks').length;
  assert.equal(keysAsked(), 1);
  await provider.rotate();
  const after = await refreshed(provider, 'platform', before);
  const kidOf = (token: string) => decodeProtectedHeader(token).kid;
  assert.notEqual(kidOf(after.id_token), kidOf(before.id_token));
  // Half a minute after the keys were read at the start a key that is not known is looked for.
  clock.pass(31_000);
  assert.equal(await statusWith(after.id_token), 200);
  assert.equal(keysAsked(), 2);
  // What was signed with a key that is withdrawn is refused, also where the same token was taken a minute ago.
  clock.pass(61_000);
  assert.equal(await statusWith(before.id_token), 401);
  assert.equal(await statusWith(after.id_token), 200);
});

test('check 19: a WebSocket whose token expires is closed with 4403, and its client goes on with a refreshed one', async t => {
  const clock = stoppedClock(t);
  await using provider = await startProvider(['platform']);
  const { socketUrl } = await startFor(t, provider);
  provider.lifetime = 1;
  let tokens = await signIn(provider, 'platform', 'jane');
  const first = tokens;
  const given: string[] = [];
  const codes: number[] = [];
  const client = createClient({
    url: socketUrl,
    webSocketImpl: WebSocket,
    retryWait: () => Promise.resolve(),
    connectionParams: async () => {
      if (given.length > 0) {
        provider.lifetime = 600;
        tokens = await refreshed(provider, 'platform', tokens);
      }
      given.push(tokens.id_token);
      return { Authorization: `Bearer ${tokens.id_token}` };
    },
    on: { closed: event => codes.push((event as { code: number }).code) },
  });
  // Before the server goes: it would come again.
  t.after(() => client.dispose());
  const states = createInbox<unknown>();
  client.subscribe(
    { query: textOf('watchJobs') },
    { next: value => states.push(value), error: error => states.push(error), complete: () => states.push('complete') },
  );
  for (const which of ['first', 'refreshed']) {
    const state = await states.next(`the state, with the ${which} token`);
    assert.partialDeepStrictEqual(state, { data: { jobs: { snapshot: true } } });
  }
  assert.deepEqual(codes, [4403]);
  const [old, fresh] = given.map(token => decodeJwt(token));
  assert.deepEqual([old?.sub, fresh?.sub], ['jane', 'jane']);
  assert.notEqual(given[0], given[1]);
  await client.dispose();

  clock.pass(32_000);
  const late = await openSocket(socketUrl, { init: false });
  late.send({ type: 'connection_init', payload: { Authorization: `Bearer ${first.id_token}` } });
  const { code, reason } = await within(late.closed, 'the end of the socket');
  assert.equal(code, 4403);
  assert.match(reason, /the token has expired/);
});

test('check 18: the MCP SDK, without a token, finds the provider from our answer, registers, signs in and calls a tool', async t => {
  await using provider = await startProvider(['platform']);
  const { url, lines } = await startFor(t, provider);
  const fetched: string[] = [];
  const fetchFn = (target: string | URL, init?: RequestInit) => {
    fetched.push(String(target));
    return fetch(target, init);
  };
  let registered: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined;
  let discovery: Awaited<ReturnType<NonNullable<OAuthClientProvider['discoveryState']>>>;
  let verifier = '';
  const starts: URL[] = [];
  const authProvider: OAuthClientProvider = {
    redirectUrl: redirectUri,
    clientMetadata: {
      client_name: 'a client of the suite',
      redirect_uris: [redirectUri],
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    clientInformation: () => registered,
    saveClientInformation: information => {
      registered = information;
    },
    tokens: () => tokens,
    saveTokens: given => {
      tokens = given;
    },
    discoveryState: () => discovery,
    saveDiscoveryState: state => {
      discovery = state;
    },
    redirectToAuthorization: start => void starts.push(start),
    saveCodeVerifier: given => {
      verifier = given;
    },
    codeVerifier: () => verifier,
  };
  const open = () => new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { fetch: fetchFn, authProvider });

  const before = open();
  await assert.rejects(new Client({ name: 'test', version: '1' }).connect(before), UnauthorizedError);
  assert.ok(fetched.includes(`${url}/.well-known/oauth-protected-resource/mcp`), fetched.join('\n'));
  assert.ok(provider.asked.some(path => path.startsWith('/.well-known/')));
  assert.ok(registered?.client_id, 'it has registered itself at the provider');
  const [start] = starts;
  assert.equal(start?.searchParams.get('resource'), `${url}/mcp`);
  assert.equal(start?.searchParams.get('code_challenge_method'), 'S256');
  const end = await signInAt(start as URL, 'jane');
  await before.finishAuth(end.searchParams);
  await before.close();
  const claims = decodeJwt(tokens?.access_token ?? '');
  assert.partialDeepStrictEqual(claims, { iss: provider.url, aud: `${url}/mcp`, sub: 'jane' });

  const client = new Client({ name: 'test', version: '1' });
  await client.connect(open());
  t.after(() => client.close());
  const { structuredContent, isError } = await client.callTool({ name: 'list_jobs', arguments: {} });
  assert.notEqual(isError, true);
  assert.deepEqual(structuredContent, { jobs: [] });
  const changed = await client.callTool({ name: 'cancel_job', arguments: { id: 'none' } });
  assert.equal(changed.isError, true);
  await eventually(() => lines.some(line => line.includes('"cancelJob"')), 'the entry of the audit trail');
  const entry = lines.map(line => JSON.parse(line)).find(({ action }) => action === 'cancelJob');
  assert.equal(entry.caller, 'jane', 'an access token has no email');
  assert.ok(fetched.every(target => new URL(target).hostname === '127.0.0.1'));
  assert.deepEqual(provider.went, [], 'the provider asked nobody for anything');
});
