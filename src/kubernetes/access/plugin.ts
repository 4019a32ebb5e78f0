import type { RequestOptions } from 'node:https';
import { isAbsolute, join } from 'node:path';
import type { KubeConfig, User } from '@kubernetes/client-node';
import { messageOf } from '../../errors.ts';
import { unlessAborted } from '../../live/source.ts';
import type { Identity } from '../access.ts';
import { oneLine, parsedOrUndefined } from '../errors.ts';

/** Credentials that a program makes or a login renews: the `exec` and `auth-provider` users of a kubeconfig. */
export interface Plugin {
  identity(signal: AbortSignal): Promise<Identity>;
  /** What was made is not accepted: it is made anew, but not for every refusal of a server that accepts none. */
  refused(): void;
}

export interface PluginUser {
  readonly name: string;
  /** Where relative paths begin. */
  readonly directory: string;
  /** Of the user, and of the cluster that the credentials are for. */
  readonly fields: Fields;
  readonly cluster: Fields;
}

type Fields = Readonly<Record<string, unknown>>;

/** Milliseconds for which refused credentials are not made anew again. */
const remakeMs = 30_000;
/** A token is renewed this long before it ends, in milliseconds. */
const earlyMs = 10_000;

/**
 * The Kubernetes client does the work. It is imported when the first credentials are needed, since that costs half a second
 * and 60 MB. What it keeps for how long is its own affair, but one run of a program serves all who wait for it, and a renewed
 * token is used as long as it is valid.
 */
export function createPlugin(user: PluginUser, now = Date.now): Plugin {
  const known = clientUser(user);
  let config: Promise<KubeConfig> | undefined;
  let making: Promise<Identity> | undefined;
  let kept: { readonly identity: Identity; readonly until: number } | undefined;
  let remadeAt = Number.NEGATIVE_INFINITY;

  async function make(): Promise<Identity> {
    config ??= load(known);
    const made: { headers?: Record<string, string>; cert?: string; key?: string } = {};
    try {
      await (await config).applyToHTTPSOptions(made as RequestOptions);
    } catch (error) {
      throw new Error(failureWords(user, error), { cause: error });
    }
    const authorization = made.headers?.Authorization;
    const certificate = made.cert && made.key ? { cert: made.cert, key: made.key } : undefined;
    if (!authorization && !certificate) {
      throw new Error(`the login of the kubeconfig's user ${JSON.stringify(user.name)} has ended: log in again`);
    }
    const identity: Identity = { headers: authorization ? { authorization } : {}, certificate };
    const until = user.fields.exec ? 0 : endOf(authorization);
    if (until > 0) kept = { identity, until };
    return identity;
  }

  return {
    async identity(signal) {
      // Nobody would hear how the work ends that is begun for someone who has left.
      signal.throwIfAborted();
      if (kept && now() < kept.until) return kept.identity;
      making ??= make().finally(() => {
        making = undefined;
      });
      return unlessAborted(making, signal);
    },
    refused() {
      if (now() - remadeAt < remakeMs) return;
      remadeAt = now();
      config = undefined;
      kept = undefined;
    },
  };
}

async function load(user: User): Promise<KubeConfig> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  // The address is not used: only who the user is is asked of it.
  config.loadFromClusterAndUser({ name: 'cluster', server: 'https://cluster.invalid', skipTLSVerify: false }, user);
  return config;
}

/** The user as the client wants it. A program is told that nobody is there to answer it. */
function clientUser({ name, directory, fields, cluster }: PluginUser): User {
  if (!fields.exec) return { name, authProvider: fields['auth-provider'] };
  const exec = fields.exec as Fields;
  const { command } = exec;
  const info = {
    apiVersion: exec.apiVersion,
    kind: 'ExecCredential',
    spec: { interactive: false, ...(exec.provideClusterInfo === true && { cluster }) },
  };
  const isRelative = typeof command === 'string' && command.includes('/') && !isAbsolute(command);
  const env = [
    ...(Array.isArray(exec.env) ? exec.env : []),
    { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) },
  ];
  return { name, exec: { ...exec, env, command: isRelative ? join(directory, command) : command } };
}

/** What a program wrote to its error output may be said; what it answered may hold a token. */
function failureWords({ name, fields }: PluginUser, error: unknown): string {
  const exec = fields.exec as Fields | undefined;
  const whose = `of the kubeconfig's user ${JSON.stringify(name)}`;
  if (!exec) return `the login ${whose} cannot be renewed: ${oneLine(messageOf(error), 300)}`;
  const program = `the program ${JSON.stringify(exec.command)} ${whose}`;
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'EACCES') {
    const hint = typeof exec.installHint === 'string' ? `: ${oneLine(exec.installHint, 300)}` : '';
    return `${program} cannot be started (${code})${hint}`;
  }
  if (error instanceof SyntaxError || error instanceof TypeError) return `${program} answered no ExecCredential`;
  return `${program} failed: ${oneLine(messageOf(error), 300) || 'without a word'}`;
}

/** When to stop using a token, in milliseconds since the epoch; 0 when it does not say until when it is good. */
function endOf(authorization: string | undefined): number {
  const [, payload] = authorization?.split('.') ?? [];
  if (payload === undefined) return 0;
  const claims = parsedOrUndefined(Buffer.from(payload, 'base64url').toString()) as { exp?: unknown } | undefined;
  return typeof claims?.exp === 'number' ? claims.exp * 1000 - earlyMs : 0;
}
