import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type OauthSettings, oauthOf } from '../../src/config/oauth.ts';
import { parseServe } from '../../src/config/parse.ts';
import { ConfigError } from '../../src/config/settings.ts';

const parse = (argv: readonly string[], env: Record<string, string> = {}) =>
  parseServe(argv, env, { buildable: ['ollama'] });

const dex = [
  ...['--enable-oauth', '--oauth-base-url', 'https://models.example.com/'],
  ...['--dex-issuer-url', 'https://dex.example.com/', '--dex-client-id', 'platform'],
];

/** What stops the start, in its order. */
function problemsOf(argv: readonly string[], env?: Record<string, string>): readonly string[] {
  try {
    parse(argv, env);
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems;
  }
}

const settingsOf = (argv: readonly string[], env?: Record<string, string>) =>
  oauthOf(parse(argv, env).settings.oauth) as OauthSettings;

test('nobody has to sign in unless it is asked for, whatever else is given', () => {
  assert.equal(oauthOf(parse(dex.slice(1)).settings.oauth), undefined);
});

test('Dex: its issuer to the letter, its client and the trusted audiences', () => {
  assert.deepEqual(settingsOf([...dex, '--oauth-trusted-audiences', 'muster, portal,platform']), {
    baseUrl: 'https://models.example.com',
    issuer: 'https://dex.example.com/',
    audiences: ['platform', 'muster', 'portal'],
    caFile: '',
    allowPrivateIssuer: false,
    allowPrivateKeys: false,
    downstream: false,
  });
});

test('Google: its issuer is known', () => {
  const google = settingsOf(
    ['--enable-oauth', '--oauth-base-url', 'http://localhost:8080', '--oauth-provider', 'google'],
    {
      GOOGLE_CLIENT_ID: 'g',
      DEX_CA_FILE: '/none',
    },
  );
  assert.equal(google.issuer, 'https://accounts.google.com');
  assert.deepEqual(google.audiences, ['g']);
  assert.equal(google.caFile, '');
});

test('keys may be at private addresses alone, or the provider as a whole', () => {
  const keysOnly = settingsOf([...dex, '--sso-allow-private-ips']);
  assert.deepEqual([keysOnly.allowPrivateIssuer, keysOnly.allowPrivateKeys], [false, true]);
  const whole = settingsOf([...dex, '--allow-private-oauth-urls', '--dex-issuer-url', 'http://dex.dex.svc:5556']);
  assert.deepEqual([whole.allowPrivateIssuer, whole.allowPrivateKeys], [true, true]);
});

test('what is missing or cannot be stops the start', () => {
  assert.deepEqual(problemsOf(['--enable-oauth']), [
    '--oauth-base-url is missing; --enable-oauth needs it, as in https://models.example.com',
    '--dex-issuer-url is missing; --enable-oauth needs it with --oauth-provider dex',
    '--dex-client-id is missing; --enable-oauth needs it with --oauth-provider dex',
  ]);
  assert.deepEqual(problemsOf([...dex.slice(0, 3), '--oauth-provider', 'google']), [
    '--google-client-id is missing; --enable-oauth needs it with --oauth-provider google',
  ]);
  for (const [argv, expected] of [
    [
      ['--oauth-base-url', 'http://models.example.com'],
      /^--oauth-base-url "http:.*" is not encrypted; .* on this machine$/,
    ],
    [['--oauth-base-url', 'models.example.com'], /^--oauth-base-url "models.example.com" is no URL/],
    [['--oauth-base-url', 'http://localhost.evil.example'], /is not encrypted/],
    [['--oauth-base-url', 'https://a.example?b'], /more than a host and a path/],
    [['--dex-issuer-url', 'http://dex.example.com'], /is not encrypted; .* with --allow-private-oauth-urls$/],
    [
      ['--dex-issuer-url', 'https://jane:secret@dex.example.com'],
      /^--dex-issuer-url "https:\/\/…@dex.example.com" has more/,
    ],
    [['--oauth-provider', 'github'], /^--oauth-provider "github" is not one of dex, google$/],
    [['--oauth-trusted-audiences', 'a,,b'], /^--oauth-trusted-audiences has an empty entry in "a,,b"/],
    [['--oauth-trusted-audiences', 'a,'], /has an empty entry/],
    [['--allow-public-client-registration'], /issues no tokens, so no client registers here; drop it$/],
  ] as const) {
    const problems = problemsOf([...dex, ...argv]);
    assert.equal(problems.length, 1, problems.join('\n'));
    assert.match(problems[0] as string, expected);
  }
  assert.deepEqual(problemsOf(['--downstream-oauth']), ['--downstream-oauth needs --enable-oauth']);
  assert.deepEqual(problemsOf([], { OAUTH_TRUSTED_AUDIENCES: ',' }), [
    '--oauth-trusted-audiences has an empty entry in ","; drop a comma (from OAUTH_TRUSTED_AUDIENCES)',
  ]);
});

test('settings of identity without identity are warned of: whoever gave them believes that somebody is asked for a token', () => {
  assert.deepEqual(
    parse(['--dex-issuer-url', 'https://dex.example.com', '--oauth-base-url', 'https://a.example.com']).warnings,
    [
      '--oauth-base-url has no effect without --enable-oauth: nobody is asked for a token',
      '--dex-issuer-url has no effect without --enable-oauth: nobody is asked for a token',
    ],
  );
  assert.deepEqual(problemsOf(['--downstream-api-servers', 'https://far.example.com']), [
    '--downstream-api-servers needs --downstream-oauth',
  ]);
  const [problem = ''] = problemsOf([
    ...dex,
    '--downstream-oauth',
    '--downstream-api-servers',
    'http://far.example.com',
  ]);
  assert.match(problem, /^--downstream-api-servers has an entry that is no https URL in "http:\/\/far.example.com"/);
});

test('the secret of a client is taken, not kept, and said to be of no use', () => {
  const { settings, warnings } = parse(dex, { DEX_CLIENT_SECRET: 'top-secret' });
  assert.deepEqual(warnings, [
    '--dex-client-secret is not used: this server checks tokens and issues none; you need not give it',
  ]);
  assert.ok(!JSON.stringify(settings).includes('top-secret'));
  assert.deepEqual(parse([], { DEX_CLIENT_SECRET: 'top-secret' }).warnings, []);
});
