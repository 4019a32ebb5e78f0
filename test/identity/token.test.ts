import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { exportSPKI, SignJWT } from 'jose';
import { refusalAnswer } from '../../src/identity/challenge.ts';
import type { Verdict } from '../../src/identity/identity.ts';
import { tokenProblems } from '../../src/identity/token.ts';
import { createKey, platform, type SigningKey } from '../support/issuer.ts';
import { send, within } from '../support/server.ts';
import { bearer, serveLab, startLab } from './lab.ts';

/** Somewhere in 2030, on a whole second. */
const began = Date.UTC(2030, 0, 1);
const seconds = began / 1000;

const reasonOf = (verdict: Verdict) => ('person' in verdict ? 'accepted' : verdict.refusal.reason);
const messageOf = (verdict: Verdict) => ('person' in verdict ? 'accepted' : verdict.refusal.message);

test('check 5: the clocks may differ by 30 s, not by more', async () => {
  await using lab = await startLab({ now: () => began });
  const check = async (claims: object) => lab.identity.check(await lab.issuer.token({ ...claims }));
  assert.equal(reasonOf(await check({ exp: seconds - 29 })), 'accepted');
  const late = await check({ exp: seconds - 31 });
  assert.equal(reasonOf(late), 'expired');
  assert.match(messageOf(late), /expired/);
});

test('check 5: on the wire 31 s are 401, 29 s are 200', async () => {
  await using lab = await serveLab({ now: () => began });
  const url = `${lab.server.url}/api/v1/backends`;
  const late = await send(url, undefined, { headers: bearer(await lab.issuer.token({ exp: seconds - 31 })) });
  assert.equal(late.status, 401);
  assert.match(late.json.error_description, /expired/);
  const inTime = await send(url, undefined, { headers: bearer(await lab.issuer.token({ exp: seconds - 29 })) });
  assert.equal(inTime.status, 200);
});

test('check 6: a token that is not valid yet is refused', async () => {
  await using lab = await startLab({ now: () => began });
  assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token({ nbf: seconds + 31 }))), 'early');
  assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token({ nbf: seconds + 29 }))), 'accepted');
});

test('check 7: the issuer is the configured one to the letter', async () => {
  await using lab = await startLab();
  for (const iss of [
    'https://other.example.com',
    `${lab.issuer.url}/`,
    lab.issuer.url.toUpperCase(),
    [lab.issuer.url],
  ]) {
    assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token({ iss }))), 'issuer', String(iss));
  }
  assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token({ iss: undefined }))), 'issuer');
});

test('check 8: a token for somebody else is refused with both lists, one for several is taken', async () => {
  await using lab = await serveLab({ settings: { audiences: [platform, 'muster'] } });
  const url = `${lab.server.url}/api/v1/backends`;
  const other = await send(url, undefined, { headers: bearer(await lab.issuer.token({ aud: ['a', 'b"\\\r\nx'] })) });
  assert.equal(other.status, 401);
  const lists = 'which matches none of the trusted audiences [platform, muster]';
  assert.ok(
    other.json.error_description.startsWith(`the bearer is an id_token for audience [a, b"\\\r\nx], ${lists}: `),
  );
  const header = other.headers.get('www-authenticate') ?? '';
  assert.match(header, /^Bearer resource_metadata="https:[^"]*", error="invalid_token", error_description="/);
  assert.ok(header.includes(`audience [a, b\\"\\\\ x], ${lists}: `), header);
  const [line = '{}'] = lab.logged.concat(lab.server.logged).filter(each => each.includes('request refused'));
  const { caller, source, path, aud, trustedAudiences } = JSON.parse(line);
  assert.deepEqual(
    { caller, source, path, aud, trustedAudiences },
    {
      caller: 'jane@example.com',
      source: '127.0.0.1',
      path: '/api/v1/backends',
      aud: ['a', 'b"\\\r\nx'],
      trustedAudiences: [platform, 'muster'],
    },
  );
  const several = await send(url, undefined, { headers: bearer(await lab.issuer.token({ aud: ['a', 'muster'] })) });
  assert.equal(several.status, 200);
  for (const aud of [undefined, [], '', 7, {}]) {
    assert.notEqual(reasonOf(await lab.identity.check(await lab.issuer.token({ aud }))), 'accepted', String(aud));
  }
});

test('an audience of another script or of endless length is still an answer', async () => {
  await using lab = await serveLab();
  const url = `${lab.server.url}/api/v1/backends`;
  for (const aud of ['模型', 'x'.repeat(8_000), Array.from({ length: 500 }, (_, index) => `a${index}`)]) {
    const { status, headers } = await send(url, undefined, { headers: bearer(await lab.issuer.token({ aud })) });
    assert.equal(status, 401);
    const header = headers.get('www-authenticate') ?? '';
    assert.ok(header.length < 2_048, String(header.length));
    assert.ok(header.includes(`none of the trusted audiences [${platform}]`), header);
  }
});

test('a token without one of the claims that are needed is refused', async () => {
  await using lab = await startLab();
  for (const claims of [
    { exp: undefined },
    { iat: undefined },
    { sub: undefined },
    { sub: '' },
    { sub: 7 },
    { exp: 'tomorrow' },
    { iat: 'today' },
    { sub: 'a\nb' },
  ]) {
    const verdict = await lab.identity.check(await lab.issuer.token(claims));
    assert.equal(reasonOf(verdict), 'claims', JSON.stringify(claims));
  }
});

test('the caller is the email, else the subject; people are told apart by issuer and subject', async () => {
  await using lab = await startLab();
  const callerOf = async (claims: object) => {
    const verdict = await lab.identity.check(await lab.issuer.token({ ...claims }));
    assert.ok('person' in verdict, messageOf(verdict));
    return verdict.person.caller;
  };
  const jane = await callerOf({});
  const subject = JSON.stringify([lab.issuer.url, 'jane']);
  assert.deepEqual(jane, { name: 'jane@example.com', anonymous: false, subject, scope: '' });
  assert.equal((await callerOf({ email: undefined })).name, 'jane');
  assert.equal((await callerOf({ email: '' })).name, 'jane');
  assert.equal((await callerOf({ email: 'a\u2028b' })).name, 'jane', 'one line of a log stays one line');
  assert.equal((await callerOf({ email: 'new@example.com' })).subject, subject);
  assert.notEqual((await callerOf({ sub: 'anna' })).subject, subject);
});

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

test('check 9: alg none, however it is written, is no signature', async () => {
  await using lab = await startLab();
  const [, payload] = (await lab.issuer.token()).split('.');
  for (const alg of ['none', 'None', 'NONE', 'nOnE', '']) {
    for (const signature of ['', 'AAAA']) {
      const verdict = await lab.identity.check(`${encode({ alg, kid: 'first' })}.${payload}.${signature}`);
      assert.ok(['signature', 'malformed'].includes(reasonOf(verdict)), `${alg}: ${reasonOf(verdict)}`);
    }
  }
});

test('check 10: the public key as a secret signs nothing', async () => {
  await using lab = await startLab();
  const [, payload] = (await lab.issuer.token()).split('.');
  const [key] = lab.issuer.keys as [SigningKey];
  const secrets = [await exportSPKI(key.pair.publicKey), JSON.stringify(key.jwk), key.jwk.n as string];
  const claims = JSON.parse(Buffer.from(payload as string, 'base64url').toString());
  for (const secret of secrets) {
    for (const alg of ['HS256', 'HS384', 'HS512']) {
      const forged = await new SignJWT(claims)
        .setProtectedHeader({ alg, kid: 'first' })
        .sign(new TextEncoder().encode(secret));
      assert.equal(reasonOf(await lab.identity.check(forged)), 'signature', alg);
    }
  }
});

test('keys that a token brings along are not looked at', async () => {
  await using lab = await startLab();
  const evil = await createKey('first');
  const asked = lab.issuer.asked.length;
  for (const header of [
    { jwk: evil.jwk },
    { jku: `${lab.issuer.url}/evil` },
    { x5u: `${lab.issuer.url}/evil` },
    { jwk: evil.jwk, kid: undefined },
  ]) {
    const token = await lab.issuer.token({}, { key: evil, header: header as object });
    assert.equal(reasonOf(await lab.identity.check(token)), 'signature', JSON.stringify(Object.keys(header)));
  }
  assert.equal(lab.issuer.asked.length, asked, 'nothing was asked for');
  const critical = await lab.issuer.token({}, { header: { b64: true, crit: ['b64'] } });
  assert.notEqual(reasonOf(await lab.identity.check(critical.replace(/\.[^.]*$/, '.AAAA'))), 'accepted');
});

test('each algorithm that is taken is taken, others are not', async () => {
  for (const [alg, expected] of [
    ['PS256', 'accepted'],
    ['ES256', 'accepted'],
    ['EdDSA', 'accepted'],
    ['RS512', 'signature'],
    ['ES384', 'signature'],
  ] as const) {
    const key = await createKey('other', alg);
    await using lab = await startLab({ prepare: issuer => void issuer.keys.unshift(key) });
    assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token())), expected, alg);
  }
});

test('check 17: two tokens, and one of 64 KiB, are refused, and the server goes on', async () => {
  await using lab = await serveLab();
  const token = await lab.issuer.token();
  const raw = (headers: string) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const socket = connect(lab.server.port, '127.0.0.1', () => {
      socket.write(`GET /api/v1/backends HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n`);
    });
    let text = '';
    socket.on('data', chunk => {
      text += chunk;
    });
    socket.on('close', () => resolve(text.split('\r\n')[0] as string));
    // Who sends on after the answer may be cut off.
    socket.on('error', error => text === '' && reject(error));
    return within(promise, 'the answer');
  };
  const line = `authorization: Bearer ${token}\r\n`;
  assert.equal(await raw(line), 'HTTP/1.1 200 OK');
  assert.equal(await raw(line + line), 'HTTP/1.1 401 Unauthorized');
  assert.equal(await raw(`${line}authorization: Bearer other\r\n`), 'HTTP/1.1 401 Unauthorized');
  assert.match(await raw(`authorization: Bearer ${'a'.repeat(64 * 1024)}\r\n`), /^HTTP\/1\.1 431 /);
  for (const value of ['Basic amFuZTpzZWNyZXQ=', 'Bearer', `Bearer ${token} x`, `Bearer ${token},`, token]) {
    assert.equal(await raw(`authorization: ${value}\r\n`), 'HTTP/1.1 401 Unauthorized', value.slice(0, 20));
  }
  assert.equal(await raw(`authorization: bearer ${token}\r\n`), 'HTTP/1.1 200 OK');
  const large = await lab.identity.check('a'.repeat(16 * 1024 + 1));
  assert.match(messageOf(large), /larger than 16384 bytes/);
});

test('a token that was checked is not checked again for a minute, and not past its expiry', async () => {
  let now = began;
  await using lab = await startLab({ now: () => now });
  const [key] = lab.issuer.keys as [SigningKey];
  const long = await lab.issuer.token();
  const short = await lab.issuer.token({ exp: seconds + 20 });
  assert.equal(reasonOf(await lab.identity.check(long)), 'accepted');
  assert.equal(reasonOf(await lab.identity.check(short)), 'accepted');
  const first = await lab.identity.check(long);
  now += 59_000;
  assert.equal(await lab.identity.check(long), first, 'the same verdict');
  assert.equal(reasonOf(await lab.identity.check(short)), 'expired');
  now += 2_000;
  assert.notEqual(await lab.identity.check(long), first);
  assert.equal(key.kid, 'first');
});

test('check 51: a signature that is wrong at its beginning or its end is answered alike, also beside one that was taken', async () => {
  await using lab = await startLab();
  const token = await lab.issuer.token();
  assert.equal(reasonOf(await lab.identity.check(token)), 'accepted');
  const [head, payload, signature = ''] = token.split('.') as [string, string, string];
  const other = (letter = '') => (letter === 'A' ? 'B' : 'A');
  const verdicts = await Promise.all(
    [0, 1, 100, signature.length - 2].map(place => {
      const wrong = signature.slice(0, place) + other(signature[place]) + signature.slice(place + 1);
      return lab.identity.check(`${head}.${payload}.${wrong}`);
    }),
  );
  const forged = await lab.identity.check(await lab.issuer.token({}, { key: { ...(await createKey('first')) } }));
  const unknown = await lab.identity.check(await lab.issuer.token({}, { key: { ...(await createKey('unknown')) } }));
  for (const verdict of [...verdicts, unknown]) assert.deepEqual(verdict, forged);
  assert.equal(reasonOf(forged), 'signature');
});

test('whatever a token is refused for, the answer is 401 and says why; 503 only where none can be checked', () => {
  for (const reason of tokenProblems) {
    const { status, headers, body } = refusalAnswer(
      { reason, message: 'why "it" is' },
      'https://models.example.com',
      '',
    );
    assert.equal(status, reason === 'unavailable' ? 503 : 401, reason);
    assert.equal(headers['www-authenticate']?.includes('error_description="why \\"it\\" is"') ?? false, status === 401);
    assert.equal(JSON.parse(body).error_description, 'why "it" is');
  }
});
