import type { RequestOptions } from 'node:https';
import { isAbsolute, join } from 'node:path';
import type { KubeConfig, User } from '@kubernetes/client-node';
import { messageOf } from '../../errors.ts';
import { oneLine } from '../errors.ts';
import type { Made, Maker } from './made.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A user of a kubeconfig whose credentials a program makes. */
export interface ExecUser {
  readonly name: string;
  /** Where relative paths begin. */
  readonly directory: string;
  readonly exec: Fields;
  /** The cluster that the credentials are for. */
  readonly cluster: Fields;
}

/**
 * The Kubernetes client runs the program and keeps what it answers until that ends. It is imported when the first
 * credentials are needed, since that costs half a second and 60 MB.
 */
export function createExec(user: ExecUser): Maker {
  let config: Promise<KubeConfig> | undefined;
  return {
    async make(): Promise<Made> {
      config ??= load(clientUser(user));
      const made: { headers?: Record<string, string>; cert?: string; key?: string } = {};
      try {
        await (await config).applyToHTTPSOptions(made as RequestOptions);
      } catch (error) {
        throw new Error(failureWords(user, error), { cause: error });
      }
      const authorization = made.headers?.Authorization;
      const certificate = made.cert && made.key ? { cert: made.cert, key: made.key } : undefined;
      if (!authorization && !certificate) throw new Error(`${programOf(user)} answered neither token nor certificate`);
      return { identity: { headers: authorization ? { authorization } : {}, certificate }, until: 0 };
    },
    forget() {
      config = undefined;
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

/** The user as the client wants it. The program is told that nobody is there to answer it. */
function clientUser({ name, directory, exec, cluster }: ExecUser): User {
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

const programOf = ({ name, exec }: ExecUser) =>
  `the program ${JSON.stringify(exec.command)} of the kubeconfig's user ${JSON.stringify(name)}`;

/** What a program wrote to its error output may be said; what it answered may hold a token. */
function failureWords(user: ExecUser, error: unknown): string {
  const program = programOf(user);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'EACCES') {
    const { installHint } = user.exec;
    const hint = typeof installHint === 'string' ? `: ${oneLine(installHint, 300)}` : '';
    return `${program} cannot be started (${code})${hint}`;
  }
  if (error instanceof SyntaxError || error instanceof TypeError) return `${program} answered no ExecCredential`;
  return `${program} failed: ${oneLine(messageOf(error), 300) || 'without a word'}`;
}
