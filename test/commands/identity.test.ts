import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { serve } from '../../src/commands/serve.ts';
import { parseServe } from '../../src/config/parse.ts';
import { ConfigError } from '../../src/config/settings.ts';
import { issueCertificates } from '../../src/demo/cluster/http/certificate.ts';
import { tokenProblems } from '../../src/identity/token.ts';
import { startIssuer } from '../support/issuer.ts';
import { freePort } from '../support/ports.ts';
import { send } from '../support/server.ts';

/** The gateway as it is started, and what it says. */
async function start(t: TestContext, ...argv: string[]) {
  const { settings } = parseServe(argv, {}, { buildable: [] });
  const lines: string[] = [];
  const served = await serve(settings, pino({}, { write: line => lines.push(line) }), {});
  t.after(served.stop);
  const modes = lines.map(line => JSON.parse(line)).filter(({ identity }) => identity !== undefined);
  assert.equal(modes.length, 1, 'the mode is in one line');
  return { ...served, mode: modes[0] };
}

/** Asks until the gateway is ready, or has given another reason than that it has only begun; returns the last answer. */
async function ready(url: string) {
  for (let tries = 0; ; tries++) {
    const answer = await send(`${url}/readyz`);
    if (!answer.text.includes('not read yet') || tries === 200) return answer;
  }
}

const local = ['--listen', '127.0.0.1:0'];
const oauth = (issuer: string) => [
  ...['--enable-oauth', '--oauth-base-url', 'https://models.example.com', '--dex-issuer-url', issuer],
  ...['--dex-client-id', 'platform', '--oauth-trusted-audiences', 'muster', '--allow-private-oauth-urls'],
];

test('the start says in one line who may come in', async t => {
  const alone = await start(t, ...local);
  assert.match(`${alone.mode.level} ${alone.mode.msg}`, /^30 nobody has to sign in; only this machine/);
  const open = await start(t, '--listen', ':0');
  assert.match(`${open.mode.level} ${open.mode.msg}`, /^40 nobody has to sign in: whoever reaches this port/);
  await using issuer = await startIssuer();
  const metricsPort = await freePort();
  const metrics = ['--metrics-listen', `127.0.0.1:${metricsPort}`];
  const { mode, url } = await start(t, ...local, ...metrics, ...oauth(issuer.url));
  const { identity, audiences, level } = mode;
  assert.deepEqual(
    { identity, audiences, level, issuer: mode.issuer },
    { identity: 'oauth', audiences: ['platform', 'muster'], level: 30, issuer: issuer.url },
  );
  await ready(url);
  assert.equal((await send(`${url}/api/v1/backends`)).status, 401);
  for (const aud of ['one', 'other']) {
    const headers = { authorization: `Bearer ${await issuer.token({ aud })}` };
    assert.equal((await send(`${url}/api/v1/backends`, undefined, { headers })).status, 401);
  }
  const { text } = await send(`http://127.0.0.1:${metricsPort}/metrics`);
  const issuedBy = `{issuer="${issuer.url}"}`;
  assert.ok(text.includes(`\nmodel_manager_jwks_up${issuedBy} 1\n`), text);
  assert.match(text.split(`\nmodel_manager_jwks_age_seconds${issuedBy} `)[1] ?? '', /^[\d.e-]+\n/);
  const failures = [...text.matchAll(/^model_manager_auth_failures_total\{reason="(\w+)"\} (\d+)$/gm)];
  assert.deepEqual(
    Object.fromEntries(failures.map(([, reason, count]) => [reason, Number(count)])),
    { ...Object.fromEntries(tokenProblems.map(reason => [reason, 0])), missing: 1, audience: 2 },
    'each reason is counted apart, and is there before it happens',
  );
});

test('a provider behind a private authority is trusted by its certificate, and by nothing else', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'identity-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [ca, none] = [join(folder, 'ca.pem'), join(folder, 'key.pem')];
  const certificates = issueCertificates();
  writeFileSync(ca, certificates.ca);
  writeFileSync(none, certificates.key);
  await using issuer = await startIssuer();
  const https = createServer(certificates, (req, res) => {
    if (req.url === '/keys') return void res.end(JSON.stringify({ keys: issuer.keys.map(({ jwk }) => jwk) }));
    res.end(JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }));
  });
  await new Promise<void>(resolve => https.listen(0, '127.0.0.1', resolve));
  t.after(() => https.close());
  const url = `https://localhost:${(https.address() as AddressInfo).port}`;
  const headers = { authorization: `Bearer ${await issuer.token({ iss: url })}` };

  const trusting = await start(t, ...local, ...oauth(url), '--dex-ca-file', ca);
  const doubting = await start(t, ...local, ...oauth(url));
  assert.match((await ready(doubting.url)).text, /unable to verify the first certificate|self-signed certificate/);
  assert.equal((await send(`${doubting.url}/api/v1/jobs`, undefined, { headers })).status, 503);
  assert.equal((await ready(trusting.url)).text, 'ok');
  assert.equal((await send(`${trusting.url}/api/v1/jobs`, undefined, { headers })).status, 200);

  for (const [file, expected] of [
    [join(folder, 'none.pem'), /--dex-ca-file cannot be read: ENOENT/],
    [none, /has no certificate/],
  ] as const) {
    await assert.rejects(start(t, ...local, ...oauth(url), '--dex-ca-file', file), error => {
      assert.ok(error instanceof ConfigError);
      assert.match(error.message, expected);
      return true;
    });
  }
});
