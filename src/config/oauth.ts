/**
 * The flags of identity as data, and what they mean together. The gateway checks tokens that an identity provider issued; it
 * issues none itself.
 */
import { z } from 'zod';
import type { Setting } from './settings.ts';
import { boolean, type Kind, oneOf, quote, text } from './values.ts';

const providers = ['dex', 'google'] as const;

export interface OauthFlags {
  readonly enable: boolean;
  readonly baseUrl: string;
  readonly provider: (typeof providers)[number];
  readonly dexIssuerUrl: string;
  readonly dexClientId: string;
  readonly dexCaFile: string;
  /** Whether it was given; the secret itself is not kept, for nothing needs it. */
  readonly dexClientSecret: boolean;
  readonly googleClientId: string;
  /** As that of Dex. */
  readonly googleClientSecret: boolean;
  readonly trustedAudiences: readonly string[];
  readonly allowPrivateUrls: boolean;
  readonly ssoAllowPrivateIps: boolean;
  readonly allowPublicClientRegistration: boolean;
  readonly downstream: boolean;
  readonly downstreamApiServers: readonly string[];
}

/** Whose tokens are taken, and what the gateway says of itself to those who have none. */
export interface OauthSettings {
  /** The public URL of the gateway, without a slash at its end. */
  readonly baseUrl: string;
  /** As tokens have it, to the letter. */
  readonly issuer: string;
  /** A token is taken when it is meant for one of them. */
  readonly audiences: readonly string[];
  /** PEM certificates that the provider is trusted by, beside those of the system; '' for none. */
  readonly caFile: string;
  readonly allowPrivateIssuer: boolean;
  readonly allowPrivateKeys: boolean;
  /** Whether work at Kubernetes is done as the caller, with their own token; else as the gateway. */
  readonly downstream: boolean;
}

const url: Kind<string> = { ...text, placeholder: 'URL' };
const clientId: Kind<string> = { ...text, placeholder: 'ID' };

const unusedSecret: Kind<boolean> = { placeholder: 'SECRET', check: z.string().transform(given => given !== '') };

const audiences: Kind<readonly string[]> = {
  placeholder: 'AUDIENCE,…',
  check: z
    .string()
    .transform(given => (given === '' ? [] : given.split(',').map(part => part.trim())))
    .refine(parts => !parts.includes(''), {
      error: issue => `has an empty entry in ${quote((issue.input as string[]).join(','))}; drop a comma`,
    }),
};

const servers: Kind<readonly string[]> = {
  placeholder: 'URL,…',
  check: z
    .string()
    .transform(given => (given === '' ? [] : given.split(',').map(part => part.trim().replace(/\/+$/, ''))))
    .refine(parts => parts.every(part => URL.parse(part)?.protocol === 'https:'), {
      error: issue => `has an entry that is no https URL in ${quote((issue.input as string[]).join(','))}`,
    }),
};

const row = <T>(flag: string, variable: string, kind: Kind<T>, help: string): Setting<T> => ({
  group: 'Identity',
  flag,
  variables: [variable],
  kind,
  default: kind.placeholder === '' ? 'false' : '',
  ...(kind.placeholder !== '' && { defaultMeans: 'none' }),
  help,
});

const notUsed =
  'Not used, and not kept: nobody signs in here. Taken so that settings of other gateways need no change.';

export const oauthFlags: { readonly [Name in keyof OauthFlags]: Setting<OauthFlags[Name]> } = {
  enable: row(
    'enable-oauth',
    'MODEL_MANAGER_OAUTH_ENABLED',
    boolean,
    'Ask everybody for a token of the identity provider.',
  ),
  baseUrl: row(
    'oauth-base-url',
    'MODEL_MANAGER_OAUTH_BASE_URL',
    url,
    'The public URL of this server: https, or http on this machine.',
  ),
  provider: {
    group: 'Identity',
    flag: 'oauth-provider',
    variables: ['MODEL_MANAGER_OAUTH_PROVIDER'],
    kind: oneOf(providers, 'NAME'),
    default: 'dex',
    help: 'Who issues the tokens: dex or google.',
  },
  dexIssuerUrl: row('dex-issuer-url', 'DEX_ISSUER_URL', url, 'The issuer of Dex, to the letter as its tokens have it.'),
  dexClientId: row('dex-client-id', 'DEX_CLIENT_ID', clientId, 'The client at Dex whose tokens are for this server.'),
  dexClientSecret: row('dex-client-secret', 'DEX_CLIENT_SECRET', unusedSecret, notUsed),
  dexCaFile: row(
    'dex-ca-file',
    'DEX_CA_FILE',
    { ...text, placeholder: 'FILE' },
    'Certificates that Dex is trusted by, beside those of the system.',
  ),
  googleClientId: row(
    'google-client-id',
    'GOOGLE_CLIENT_ID',
    clientId,
    'The client at Google whose tokens are for this server.',
  ),
  googleClientSecret: row('google-client-secret', 'GOOGLE_CLIENT_SECRET', unusedSecret, notUsed),
  trustedAudiences: row(
    'oauth-trusted-audiences',
    'OAUTH_TRUSTED_AUDIENCES',
    audiences,
    'Audiences whose tokens are taken beside those of the client, separated by commas.',
  ),
  allowPrivateUrls: row(
    'allow-private-oauth-urls',
    'MODEL_MANAGER_OAUTH_ALLOW_PRIVATE_URLS',
    boolean,
    'Let the identity provider be at a private address, and there speak http.',
  ),
  ssoAllowPrivateIps: row(
    'sso-allow-private-ips',
    'SSO_ALLOW_PRIVATE_IPS',
    boolean,
    'Let the keys of the identity provider be at a private address.',
  ),
  allowPublicClientRegistration: row(
    'allow-public-client-registration',
    'MODEL_MANAGER_OAUTH_ALLOW_PUBLIC_REGISTRATION',
    boolean,
    'Refused: clients register at the identity provider, not here.',
  ),
  downstream: row(
    'downstream-oauth',
    'MODEL_MANAGER_DOWNSTREAM_OAUTH',
    boolean,
    'Work at Kubernetes as the caller, with their token, and not as the gateway itself; needs --enable-oauth.',
  ),
  downstreamApiServers: row(
    'downstream-api-servers',
    'MODEL_MANAGER_DOWNSTREAM_API_SERVERS',
    servers,
    'API servers of other clusters that the tokens of callers may be sent to, separated by commas; backend documents that name others are refused.',
  ),
};

/** What stands in the way of these flags; a sentence each. */
export function oauthProblems(flags: OauthFlags): readonly string[] {
  const { enable, baseUrl, dexIssuerUrl, allowPrivateUrls } = flags;
  const problems: string[] = [];
  if (flags.downstreamApiServers.length > 0 && !flags.downstream) {
    problems.push('--downstream-api-servers needs --downstream-oauth');
  }
  if (!enable) return flags.downstream ? ['--downstream-oauth needs --enable-oauth'] : problems;
  if (flags.allowPublicClientRegistration) {
    problems.push(
      '--allow-public-client-registration has no effect: this server issues no tokens, so no client registers here; drop it',
    );
  }
  if (baseUrl === '')
    problems.push('--oauth-base-url is missing; --enable-oauth needs it, as in https://models.example.com');
  else problems.push(...urlProblems('oauth-base-url', baseUrl, isLoopback(baseUrl), 'on this machine'));
  const { id, missing } = clientOf(flags);
  problems.push(...missing.map(flag => `--${flag} is missing; --enable-oauth needs it with --oauth-provider ${id}`));
  if (flags.provider === 'dex' && dexIssuerUrl !== '') {
    problems.push(...urlProblems('dex-issuer-url', dexIssuerUrl, allowPrivateUrls, 'with --allow-private-oauth-urls'));
  }
  return problems;
}

/** What was given and is not used; a sentence each. */
export function oauthWarnings(flags: OauthFlags): readonly string[] {
  if (!flags.enable) {
    const given = [
      flags.baseUrl && 'oauth-base-url',
      flags.dexIssuerUrl && 'dex-issuer-url',
      flags.dexClientId && 'dex-client-id',
      flags.googleClientId && 'google-client-id',
      flags.trustedAudiences.length > 0 && 'oauth-trusted-audiences',
    ].filter(flag => flag !== '' && flag !== false);
    return given.map(flag => `--${flag} has no effect without --enable-oauth: nobody is asked for a token`);
  }
  return [flags.dexClientSecret && 'dex-client-secret', flags.googleClientSecret && 'google-client-secret']
    .filter(flag => flag !== false)
    .map(flag => `--${flag} is not used: this server checks tokens and issues none; you need not give it`);
}

function clientOf(flags: OauthFlags): { readonly id: string; readonly missing: readonly string[] } {
  const needed: readonly (readonly [string, string])[] =
    flags.provider === 'dex'
      ? [
          ['dex-issuer-url', flags.dexIssuerUrl],
          ['dex-client-id', flags.dexClientId],
        ]
      : [['google-client-id', flags.googleClientId]];
  return { id: flags.provider, missing: needed.filter(([, value]) => value === '').map(([flag]) => flag) };
}

function urlProblems(flag: string, value: string, mayBePlain: boolean, where: string): readonly string[] {
  const parsed = URL.parse(value);
  if (!parsed || !/^https?:$/.test(parsed.protocol)) return [`--${flag} ${quote(value)} is no URL; write https://…`];
  if (parsed.username || parsed.password || parsed.search || parsed.hash) {
    return [`--${flag} ${quote(value.replace(/\/\/.*@/, '//…@'))} has more than a host and a path; leave that out`];
  }
  return parsed.protocol === 'http:' && !mayBePlain
    ? [`--${flag} ${quote(value)} is not encrypted; write https://…, http only goes ${where}`]
    : [];
}

const isLoopback = (value: string) => /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(URL.parse(value)?.hostname ?? '');

const googleIssuer = 'https://accounts.google.com';

/** Undefined where nobody has to sign in. The flags have no problem. */
export function oauthOf(flags: OauthFlags): OauthSettings | undefined {
  if (!flags.enable) return undefined;
  const isDex = flags.provider === 'dex';
  const client = isDex ? flags.dexClientId : flags.googleClientId;
  return {
    baseUrl: flags.baseUrl.replace(/\/+$/, ''),
    issuer: isDex ? flags.dexIssuerUrl : googleIssuer,
    audiences: [...new Set([client, ...flags.trustedAudiences])],
    caFile: isDex ? flags.dexCaFile : '',
    allowPrivateIssuer: flags.allowPrivateUrls,
    allowPrivateKeys: flags.allowPrivateUrls || flags.ssoAllowPrivateIps,
    downstream: flags.downstream,
  };
}
