import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mock, type TestContext, test } from 'node:test';
import type { Verdict } from '../../src/identity/identity.ts';
import { createKey, type SigningKey } from '../support/issuer.ts';
import { eventually } from '../support/server.ts';
import { startLab } from './lab.ts';

const minute = 60_000;
const began = Date.UTC(2030, 0, 1);

const reasonOf = (verdict: Verdict) => ('person' in verdict ? 'accepted' : verdict.refusal.reason);

/** A clock that a test moves; the timers of retries are moved apart, so that one try is over before the next. */
function clock(t: TestContext) {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  let now = began;
  return {
    now: () => now,
    pass(ms: number) {
      now += ms;
    },
  };
}

test('check 11: a key that is not known costs one look at the published ones, however many ask', async t => {
  const { now, pass } = clock(t);
  await using lab = await startLab({ now });
  const keysAsked = () => lab.issuer.asked.filter(path => path === '/keys').length;
  assert.equal(keysAsked(), 1);
  const unknown = await createKey('unknown');
  pass(31_000);
  const tokens = await Promise.all(
    Array.from({ length: 20 }, (_, index) => lab.issuer.token({ jti: String(index) }, { key: unknown })),
  );
  assert.equal(reasonOf(await lab.identity.check(tokens[0])), 'signature');
  assert.equal(keysAsked(), 2);
  for (let second = 0; second < 10; second++) {
    const verdicts = await Promise.all(
      Array.from({ length: 100 }, (_, index) => lab.identity.check(tokens[(second + index) % tokens.length])),
    );
    assert.deepEqual(new Set(verdicts.map(reasonOf)), new Set(['signature']));
    pass(1_000);
  }
  assert.equal(keysAsked(), 2, '1,000 of them in 10 s: no more');
  pass(30_000);
  await lab.identity.check(tokens[0]);
  assert.equal(keysAsked(), 3);
});

test('check 12: a new key is taken without a restart, the old one until the kept keys are too old', async t => {
  const { now, pass } = clock(t);
  await using lab = await startLab({ now });
  const old = lab.issuer.keys[0] as SigningKey;
  const tokenOfOld = (jti: string) => lab.issuer.token({ jti }, { key: old });
  pass(minute);
  const fresh = await createKey('second');
  lab.issuer.keys.splice(0, 1, fresh);
  assert.equal(reasonOf(await lab.identity.check(await tokenOfOld('1'))), 'accepted', 'nobody has told us yet');
  assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token())), 'accepted');
  assert.equal(reasonOf(await lab.identity.check(await tokenOfOld('2'))), 'signature');
});

test('check 12: a key that was withdrawn is refused once the kept keys are ten minutes old', async t => {
  const { now, pass } = clock(t);
  await using lab = await startLab({ now });
  const old = lab.issuer.keys[0] as SigningKey;
  lab.issuer.keys.splice(0, 1, await createKey('second'));
  pass(9 * minute);
  assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token({ jti: '1' }, { key: old }))), 'accepted');
  pass(minute);
  assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token({ jti: '2' }, { key: old }))), 'signature');
});

test('check 14: while the provider is down, known keys are good for an hour, and then no longer', async t => {
  const { now, pass } = clock(t);
  await using lab = await startLab({ now });
  const token = await lab.issuer.token({ exp: began / 1000 + 7_200 });
  const check = async () => reasonOf(await lab.identity.check(token));
  lab.issuer.script.discovery = lab.issuer.script.keys = (_req, res) => void res.destroy();
  const failed = () => lab.logged.filter(line => line.includes('cannot be read')).length;
  pass(11 * minute);
  assert.deepEqual(lab.identity.keys(), { up: true, age: 11 * minute });
  assert.equal(await check(), 'accepted');
  assert.equal(failed(), 1);
  assert.deepEqual(lab.identity.keys(), { up: false, age: 11 * minute });
  pass(45 * minute);
  mock.timers.tick(1_000);
  await eventually(() => failed() === 2, 'it has tried again');
  assert.equal(await check(), 'accepted');
  assert.equal(lab.identity.waiting(), undefined);
  pass(5 * minute);
  mock.timers.tick(2_000);
  assert.equal(await check(), 'unavailable');
  assert.match(lab.identity.waiting() ?? '', /\/keys|openid-configuration/);
  await eventually(() => failed() === 3, 'it has tried again');
  delete lab.issuer.script.discovery;
  delete lab.issuer.script.keys;
  mock.timers.tick(4_000);
  await eventually(() => lab.identity.waiting() === undefined, 'it recovers by itself');
  assert.equal(await check(), 'accepted');
});

test('check 15: what is no small set of keys from the provider itself is none', async () => {
  const elsewhere = createServer((_req, res) => res.end(JSON.stringify({ keys: [] })));
  await new Promise<void>(resolve => elsewhere.listen(0, '127.0.0.1', resolve));
  const foreign = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/keys`;
  let askedElsewhere = 0;
  elsewhere.on('request', () => askedElsewhere++);
  const answers: readonly (readonly [string, (res: import('node:http').ServerResponse) => unknown, RegExp])[] = [
    ['HTML', res => res.setHeader('content-type', 'text/html').end('<html>sign in</html>'), /answers no JSON/],
    ['10 MB', res => res.end(JSON.stringify({ keys: [], pad: 'x'.repeat(10e6) })), /answers more than 524288 bytes/],
    ['a redirect', res => res.writeHead(302, { location: foreign }).end(), /answers 302/],
    ['no key', res => res.end('{"keys":[]}'), /publishes no key/],
    ['other JSON', res => res.end('[1]'), /is no set of keys/],
    ['a broken connection', res => res.destroy(), /keys: /],
  ];
  try {
    for (const [what, answer, expected] of answers) {
      await using lab = await startLab({
        early: true,
        prepare: issuer => {
          issuer.script.keys = (_req, res) => void answer(res);
        },
      });
      await eventually(() => expected.test(lab.identity.waiting() ?? ''), `${what}: ${lab.identity.waiting()}`);
      assert.equal(reasonOf(await lab.identity.check(await lab.issuer.token())), 'unavailable', what);
    }
    assert.equal(askedElsewhere, 0);
  } finally {
    elsewhere.close();
  }
});

test('discovery names its own issuer, and private addresses need a flag', async () => {
  const cases = [
    [{ issuer: 'https://other.example.com', jwks_uri: 'https://other.example.com/keys' }, {}, /names the issuer/],
    [{ issuer: 7, jwks_uri: 'https://other.example.com/keys' }, {}, /is no discovery document/],
    [{ keys: 'file:///etc/passwd' }, {}, /is no http or https URL/],
    [{ keys: 'http://169.254.169.254/keys' }, {}, /169\.254\.169\.254 is a link-local address/],
    [{ keys: 'http://93.184.216.34/keys' }, {}, /is a public address; it is spoken to by https only/],
    [{ keys: 'https://127.0.0.1:1/keys' }, { allowPrivateKeys: false }, /127\.0\.0\.1 is a private address/],
    [{ keys: 'https://[::ffff:10.0.0.1]/keys' }, { allowPrivateKeys: false }, /is a private address/],
    [{ keys: 'https://localhost:1/keys' }, { allowPrivateKeys: false }, /is a private address/],
    [{ keys: 'http://localhost:1/keys' }, { allowPrivateKeys: false }, /is not encrypted/],
    [{}, { allowPrivateIssuer: false }, /is not encrypted/],
  ] as const;
  for (const [document, settings, expected] of cases) {
    await using lab = await startLab({
      early: true,
      settings,
      prepare: issuer => {
        issuer.script.discovery = (_req, res) => {
          const { keys, ...others } = document as { keys?: string };
          res.end(JSON.stringify({ issuer: issuer.url, ...(keys && { jwks_uri: keys }), ...others }));
        };
      },
    });
    const said = () => lab.identity.waiting() ?? 'ready';
    await eventually(() => !said().includes('not read yet'), 'the first try');
    assert.match(said(), expected);
  }
});
