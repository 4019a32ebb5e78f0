import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { parse } from 'yaml';
import { ConfigError } from '../../config/settings.ts';
import type { Access, Trust } from '../access.ts';
import { createExec } from './exec.ts';
import { createFileText, fileWords, tokenIn } from './file.ts';
import { createMade } from './made.ts';
import { createOidc } from './oidc.ts';

/** A named part of a kubeconfig, and the directory that its relative paths begin at. */
interface Entry {
  readonly name: string;
  readonly directory: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface Kubeconfig {
  readonly clusters: readonly Entry[];
  readonly users: readonly Entry[];
  readonly contexts: readonly Entry[];
  readonly currentContext: string | undefined;
}

/**
 * As a context of a kubeconfig says. Of several files the first that has a name wins, and those that are not there are
 * skipped, as kubectl does. Throws a `ConfigError` that names the file, or the names there are.
 */
export async function openKubeconfig(paths: string, context: string): Promise<Access> {
  const config = await readKubeconfig(paths);
  const problem = (words: string) => new ConfigError([`kubeconfig ${paths}: ${words}`]);
  const name = context === '' ? config.currentContext : context;
  if (name === undefined) {
    throw problem(`it has no current context; choose one with --kube-context (${namesOf(config.contexts)})`);
  }
  const pick = (what: string, from: readonly Entry[], wanted: string) => {
    const found = from.find(each => each.name === wanted);
    if (!found) throw problem(`there is no ${what} ${JSON.stringify(wanted)} (${namesOf(from)})`);
    return found;
  };
  const chosen = pick('context', config.contexts, name);
  const clusterName = textOf(chosen.fields.cluster);
  if (clusterName === undefined) throw problem(`the context ${JSON.stringify(name)} names no cluster`);
  const cluster = pick('cluster', config.clusters, clusterName);
  const userName = textOf(chosen.fields.user);
  const user = userName === undefined ? undefined : pick('user', config.users, userName);
  const { isMade, ...who } = readUser(user, cluster, problem);
  const access = { ...readCluster(cluster, problem), ...who };
  try {
    await prove(access, isMade);
  } catch (error) {
    const { path, message } = error as NodeJS.ErrnoException;
    throw problem(path === undefined ? message : fileWords(path, error));
  }
  return access;
}

/** Finds out now what would fail every request: files that are not there, or hold something else. */
async function prove({ trust, identity }: Access, isMade: boolean) {
  const { ca } = await trust();
  if (ca !== undefined) readable('certificate-authority', () => new X509Certificate(ca));
  // What a program or a login makes is waited for by the first request, not by the start.
  const { certificate } = isMade ? {} : await identity(new AbortController().signal);
  if (certificate) readable('client-certificate or client-key', () => createSecureContext(certificate));
}

function readable(what: string, read: () => void) {
  try {
    read();
  } catch (error) {
    throw new Error(`its ${what} is not PEM that can be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

// --- files -----------------------------------------------------------------------------------------------------------

async function readKubeconfig(paths: string): Promise<Kubeconfig> {
  const files = paths.split(delimiter).filter(path => path !== '');
  const missing: unknown[] = [];
  const found: Kubeconfig[] = [];
  for (const file of files) {
    try {
      found.push(parseKubeconfig(file, await readFile(file, 'utf8')));
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || files.length === 1)
        throw new ConfigError([`kubeconfig: ${fileWords(file, error)}`]);
      missing.push(file);
    }
  }
  if (found.length === 0) throw new ConfigError([`kubeconfig: none of these files is there: ${missing.join(', ')}`]);
  return {
    clusters: found.flatMap(each => each.clusters),
    users: found.flatMap(each => each.users),
    contexts: found.flatMap(each => each.contexts),
    currentContext: found.find(each => each.currentContext !== undefined)?.currentContext,
  };
}

function parseKubeconfig(file: string, text: string): Kubeconfig {
  const directory = dirname(file);
  const document = parsedYaml(file, text);
  const entries = (list: unknown, key: string): Entry[] =>
    (Array.isArray(list) ? list : []).flatMap(each => {
      const { name, [key]: fields } = recordOf(each);
      return typeof name === 'string' ? [{ name, directory, fields: recordOf(fields) }] : [];
    });
  return {
    clusters: entries(document.clusters, 'cluster'),
    users: entries(document.users, 'user'),
    contexts: entries(document.contexts, 'context'),
    currentContext: textOf(document['current-context']),
  };
}

function parsedYaml(file: string, text: string): Readonly<Record<string, unknown>> {
  let document: unknown;
  try {
    document = parse(text, { logLevel: 'error' });
  } catch (error) {
    // Only the place: the words of the parser repeat lines of the file, and there are secrets in it.
    const { line = 1 } = (error as { linePos?: readonly { line: number }[] }).linePos?.[0] ?? {};
    throw new ConfigError([`kubeconfig ${file}: line ${line} is not YAML`]);
  }
  if (document === null || typeof document !== 'object' || Array.isArray(document))
    throw new ConfigError([`kubeconfig ${file}: this is no kubeconfig; it has no clusters, users and contexts`]);
  return document as Readonly<Record<string, unknown>>;
}

// --- cluster ---------------------------------------------------------------------------------------------------------

function readCluster({ name, directory, fields }: Entry, problem: (words: string) => ConfigError) {
  const called = `the cluster ${JSON.stringify(name)}`;
  const server = textOf(fields.server)?.replace(/\/+$/, '');
  if (server === undefined) throw problem(`${called} has no server`);
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (!url || !/^https?:$/.test(url.protocol))
    throw problem(`${called} has a server that is no http(s) URL: ${server.replace(/\/\/.*@/s, '//…@')}`);
  if (url.username !== '' || url.password !== '')
    throw problem(
      `${called} has a user name or password in the URL of its server; give them as a user of the kubeconfig`,
    );
  const insecure = fields['insecure-skip-tls-verify'] === true;
  if (url.protocol === 'http:' && !insecure && !isLoopback(url.hostname)) {
    throw problem(
      `${called} has the server ${server}, and tokens would go to it unencrypted; use https://, or allow it with ` +
        'insecure-skip-tls-verify: true',
    );
  }
  const proxyUrl = textOf(fields['proxy-url']);
  if (proxyUrl !== undefined && !(URL.canParse(proxyUrl) && /^(https?|socks5):$/.test(new URL(proxyUrl).protocol)))
    throw problem(`${called} has a proxy-url that is no http, https or socks5 URL`);
  const readAuthority = pemReader(fields, 'certificate-authority', directory);
  const serverName = textOf(fields['tls-server-name']);
  const trust = async (): Promise<Trust> => ({
    ca: insecure ? undefined : await readAuthority?.(),
    serverName,
    insecure,
  });
  return { server, proxyUrl, trust };
}

const isLoopback = (host: string) => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host);

// --- user ------------------------------------------------------------------------------------------------------------

/** `isMade`: a program or a login makes the credentials. */
function readUser(
  user: Entry | undefined,
  cluster: Entry,
  problem: (words: string) => ConfigError,
): Pick<Access, 'identity' | 'refused'> & { readonly isMade: boolean } {
  if (!user) return { identity: async () => ({ headers: {} }), refused() {}, isMade: false };
  const { fields, directory } = user;
  const readCert = pemReader(fields, 'client-certificate', directory);
  const readKey = pemReader(fields, 'client-key', directory);
  const authorization = authorizationReader(user);
  const impersonation = impersonationOf(fields);
  const plugin = authorization ? undefined : makerOf(user, cluster, problem);
  const made = plugin && createMade(plugin);
  return {
    async identity(signal) {
      const { headers, certificate } = (await made?.identity(signal)) ?? { headers: {} };
      const [cert, key, header] = await Promise.all([readCert?.(), readKey?.(), authorization?.()]);
      return {
        headers: { ...headers, ...(header && { authorization: header }), ...impersonation },
        certificate: cert !== undefined && key !== undefined ? { cert, key } : certificate,
      };
    },
    refused: () => made?.refused(),
    isMade: made !== undefined,
  };
}

/** What makes the credentials of a user: a program, or a login. */
function makerOf({ name, directory, fields }: Entry, cluster: Entry, problem: (words: string) => ConfigError) {
  if (fields.exec) return createExec({ name, directory, exec: recordOf(fields.exec), cluster: cluster.fields });
  if (!fields['auth-provider']) return undefined;
  const { name: provider, config } = recordOf(fields['auth-provider']);
  if (provider !== 'oidc')
    throw problem(
      `the user ${JSON.stringify(name)} has the auth-provider ${provider}, which Kubernetes has given up; use exec`,
    );
  const login = recordOf(config);
  return createOidc({
    name,
    idToken: textOf(login['id-token']),
    refreshToken: textOf(login['refresh-token']),
    issuer: textOf(login['idp-issuer-url']),
    clientId: textOf(login['client-id']),
    clientSecret: textOf(login['client-secret']),
    ca: pemReader(login, 'idp-certificate-authority', directory),
  });
}

function authorizationReader({ fields, directory }: Entry): (() => Promise<string>) | undefined {
  const file = textOf(fields.tokenFile);
  if (file !== undefined) {
    const path = below(directory, file);
    const read = createFileText(path);
    return async () => `Bearer ${tokenIn(await read(), path)}`;
  }
  const token = textOf(fields.token);
  if (token !== undefined) return () => Promise.resolve(`Bearer ${tokenIn(token, 'the kubeconfig')}`);
  const username = textOf(fields.username);
  if (username === undefined) return undefined;
  const pair = `${username}:${textOf(fields.password) ?? ''}`;
  return () => Promise.resolve(`Basic ${Buffer.from(pair).toString('base64')}`);
}

/** Whom the user acts as. Left out, a kubeconfig would give more rights than it says. */
function impersonationOf(fields: Entry['fields']): Record<string, string | string[]> {
  const list = (value: unknown) => (Array.isArray(value) ? value.filter(each => typeof each === 'string') : []);
  const extra = Object.entries(recordOf(fields['as-user-extra'])).map(
    ([key, value]) => [`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`, list(value)] as const,
  );
  const headers = {
    'impersonate-user': textOf(fields.as),
    'impersonate-uid': textOf(fields['as-uid']),
    'impersonate-group': list(fields['as-groups']),
    ...Object.fromEntries(extra),
  };
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || value.length === 0 ? [] : [[name, value]],
    ),
  );
}

// --- fields ----------------------------------------------------------------------------------------------------------

/** PEM that is in a file (`key`), or in the kubeconfig itself in base64 (`key-data`); the latter wins. */
function pemReader(fields: Entry['fields'], key: string, directory: string): (() => Promise<string>) | undefined {
  const data = textOf(fields[`${key}-data`]);
  if (data !== undefined) return () => Promise.resolve(Buffer.from(data, 'base64').toString());
  const file = textOf(fields[key]);
  return file === undefined ? undefined : createFileText(below(directory, file));
}

const below = (directory: string, path: string) => (isAbsolute(path) ? path : join(directory, path));
const textOf = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);
const recordOf = (value: unknown) =>
  (value !== null && typeof value === 'object' ? value : {}) as Readonly<Record<string, unknown>>;
const namesOf = (entries: readonly Entry[]) =>
  entries.length === 0 ? 'there are none' : `there is ${entries.map(({ name }) => JSON.stringify(name)).join(', ')}`;
