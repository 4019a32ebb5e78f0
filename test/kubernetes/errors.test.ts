import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../src/errors.ts';
import {
  type Attempt,
  attemptWords,
  type Refusal,
  refusalError,
  type Sender,
  statusError,
  transportError,
} from '../../src/kubernetes/errors.ts';
import { retryAfterOf } from '../../src/kubernetes/transport/retry.ts';
import { callOf } from '../drivers/scripted.ts';

const server = 'https://api.example.com:6443';
const gateway: Sender = { server, asCaller: false, secrets: ['gateway-token-1'] };
const modelConfigs = { group: 'kagent.dev', plural: 'modelconfigs', namespaced: true };
const list: Attempt = { verb: 'list', resource: modelConfigs, namespace: 'kagent' };

const status = (code: number, reason: string, message: string, more: object = {}): Refusal => ({
  status: code,
  contentType: 'application/json',
  text: JSON.stringify({ kind: 'Status', status: 'Failure', code, reason, message, ...more }),
});
const shown = ({ code, message, details }: GatewayError) => ({ code, message, details });

test('what is tried is named: verb, resource, name and namespace', () => {
  const nodes = { group: '', plural: 'nodes', namespaced: false };
  const pods = { group: '', plural: 'pods', namespaced: true };
  assert.equal(attemptWords(list), 'cannot list modelconfigs.kagent.dev in namespace kagent');
  assert.equal(
    attemptWords({ ...list, verb: 'update', name: 'a' }),
    'cannot update modelconfigs.kagent.dev a in namespace kagent',
  );
  assert.equal(attemptWords({ verb: 'watch', resource: pods }), 'cannot watch pods in all namespaces');
  assert.equal(attemptWords({ verb: 'list', resource: nodes }), 'cannot list nodes');
  assert.equal(attemptWords({ verb: 'get', resource: nodes, name: 'n1' }), 'cannot get nodes n1');
  assert.equal(
    attemptWords({ verb: 'get', resource: pods, part: 'log', name: 'p', namespace: 'own' }),
    'cannot get pods/log p in namespace own',
  );
});

const cannot = 'cannot list modelconfigs.kagent.dev in namespace kagent';
const codes: readonly (readonly [number, string, string])[] = [
  [400, 'BadRequest', 'invalid_request'],
  [401, 'Unauthorized', 'backend_error'],
  [403, 'Forbidden', 'forbidden'],
  [404, 'NotFound', 'not_found'],
  [405, 'MethodNotAllowed', 'backend_error'],
  [409, 'Conflict', 'conflict'],
  [409, 'AlreadyExists', 'conflict'],
  [410, 'Expired', 'backend_error'],
  [422, 'Invalid', 'invalid_request'],
  [500, 'InternalError', 'backend_error'],
  [503, 'ServiceUnavailable', 'unavailable'],
  [504, 'Timeout', 'backend_error'],
];
for (const [code, reason, word] of codes) {
  test(`${code} ${reason} is ${word}, in the words of the server`, () => {
    const error = refusalError(list, gateway, status(code, reason, `it is ${reason}`));
    assert.equal(error.code, word);
    assert.ok(error.message.startsWith(`${cannot}: it is ${reason}`), error.message);
    assert.deepEqual(error.details, { reason });
  });
}

test('who asks for patience says how much: in the header, in the document, or not at all', () => {
  const limited = status(429, 'TooManyRequests', 'slow down');
  assert.deepEqual(refusalError(list, gateway, limited).details, { reason: 'TooManyRequests', retryAfterMs: 1_000 });
  assert.equal(refusalError(list, gateway, { ...limited, retryAfterMs: 7_000 }).details?.retryAfterMs, 7_000);
  const said = status(429, 'TooManyRequests', 'slow down', { details: { retryAfterSeconds: 9 } });
  assert.equal(refusalError(list, gateway, { ...said, retryAfterMs: 7_000 }).details?.retryAfterMs, 9_000);
  assert.equal(refusalError(list, gateway, status(503, 'Unavailable', 'away')).details?.retryAfterMs, undefined);
});

test('a refusal of rights says what they are needed for, where the gateway knows', () => {
  const words = 'modelconfigs.kagent.dev is forbidden: User "x" cannot list resource "modelconfigs"';
  assert.equal(
    refusalError(list, gateway, status(403, 'Forbidden', words)).message,
    `${cannot}: ${words}; this is needed to see which models agents can use`,
  );
  const cronJobs = { ...list, resource: { group: 'batch', plural: 'cronjobs', namespaced: true } };
  assert.match(refusalError(cronJobs, gateway, status(403, 'Forbidden', 'no')).message, /: no$/);
});

test('a resource that is not served is told from an object that is not there', () => {
  const unserved = refusalError(list, gateway, {
    status: 404,
    contentType: 'text/plain',
    text: '404 page not found\n',
  });
  assert.deepEqual(shown(unserved), {
    code: 'not_found',
    message: `${cannot}: 404 page not found; does the API server serve this resource?`,
    details: undefined,
  });
  const gone = refusalError({ ...list, verb: 'get', name: 'a' }, gateway, status(404, 'NotFound', 'a is not found'));
  assert.match(gone.message, /: a is not found$/);
  assert.deepEqual(gone.details, { reason: 'NotFound' });
});

test('words come as one line, and not without end', () => {
  const { message } = refusalError(list, gateway, status(500, '', `first\n\tsecond\u0007 ${'x'.repeat(5_000)}`));
  assert.match(message, /: first second x+…$/);
  assert.ok(message.length < 800);
});

test('a refusal without words, or with strange ones, is told by its number', () => {
  const refused = (text: string, code = 503) =>
    refusalError(list, gateway, { status: code, contentType: 'application/json', text }).message;
  assert.equal(refused('{}'), `${cannot}: 503 Service Unavailable`);
  assert.equal(refused('{"message":{"a":1},"reason":7}'), `${cannot}: 503 Service Unavailable`);
  assert.equal(refused('{}', 599), `${cannot}: 599 without a word`);
  const empty = refusalError(list, gateway, { status: 401, contentType: '', text: '' });
  assert.match(empty.message, /: 401 Unauthorized; the API server at /);
  assert.equal(statusError(list, gateway, {}).message, `${cannot}: 500 Internal Server Error`);
});

test('what was sent is not repeated, also where one secret is part of another', () => {
  const attempt = { ...list, secrets: ['gateway-token-1-and-more', 'short'] };
  const words = 'got gateway-token-1 and gateway-token-1-and-more and short';
  const { message } = refusalError(attempt, gateway, status(422, 'Invalid', words));
  assert.equal(message, `${cannot}: got … and … and short`);
});

test('no answer is said with the address and the code of what failed', () => {
  const failed = (error: unknown) => shown(transportError(list, gateway, callOf(), error));
  const coded = (code: string) => Object.assign(new Error(code), { code });
  assert.deepEqual(failed(coded('ECONNREFUSED')), {
    code: 'unavailable',
    message: `${cannot}: the API server at ${server} cannot be reached (ECONNREFUSED)`,
    details: undefined,
  });
  for (const code of ['ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])
    assert.equal(failed(coded(code)).message, `${cannot}: the API server at ${server} cannot be reached (${code})`);
  // As when a name has several addresses.
  const both = new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]);
  assert.match(failed(both).message, /cannot be reached \(ECONNREFUSED\)$/);
  assert.match(failed(new TypeError('failed', { cause: coded('ECONNRESET') })).message, /was lost \(ECONNRESET\)$/);
  assert.deepEqual(failed(coded('DEPTH_ZERO_SELF_SIGNED_CERT')), {
    code: 'backend_error',
    message:
      `${cannot}: the certificate of the API server at ${server} is not accepted (DEPTH_ZERO_SELF_SIGNED_CERT); check ` +
      "the certificate authority and the server's name",
    details: undefined,
  });
  assert.match(failed(coded('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED')).message, /check the client certificate$/);
  const proxied = coded('UND_ERR_ABORTED');
  proxied.message = 'Proxy response (407) !== 200 when HTTP Tunneling';
  assert.equal(failed(proxied).message, `${cannot}: the proxy before the API server at ${server} answered 407`);
  assert.equal(failed(new Error('gateway-token-1 is odd')).message, `${cannot}: … is odd`);
});

test('a time to come back is a number of seconds or a date', () => {
  const now = Date.parse('2026-01-02T03:04:05Z');
  const cases: readonly (readonly [string | undefined, number | undefined])[] = [
    ['7', 7_000],
    ['0', 0],
    ['1.5', 1_500],
    ['-3', 0],
    ['Fri, 02 Jan 2026 03:04:35 GMT', 30_000],
    ['Fri, 02 Jan 2026 03:00:00 GMT', 0],
    ['soon', undefined],
    ['', undefined],
    [undefined, undefined],
  ];
  for (const [header, ms] of cases) assert.equal(retryAfterOf(header, now), ms, header);
});
