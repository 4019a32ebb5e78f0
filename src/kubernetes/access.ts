import { openInCluster } from './access/inCluster.ts';
import { openKubeconfig } from './access/kubeconfig.ts';

/**
 * How the API server is reached, and as whom where a call carries no token of its own. Files are read again when they have
 * changed, so that rotated certificates and tokens are picked up.
 */
export interface Access {
  /** URL of the API server, without a slash at its end. */
  readonly server: string;
  /** HTTP or SOCKS5 proxy before it; undefined is none. */
  readonly proxyUrl?: string | undefined;
  /** How the server's certificate is judged, whoever calls. */
  trust(): Promise<Trust>;
  /**
   * The gateway's own identity. Asked for each request, since it may expire. Throws an `Error` that says why there is none.
   */
  identity(signal: AbortSignal): Promise<Identity>;
  /** The server did not accept the identity: where one is made by a program or a login, the next one is made afresh. */
  refused(): void;
}

export interface Trust {
  /** PEM; the authorities of the system when absent. */
  readonly ca?: string | undefined;
  /** The name that the certificate is for, where it is not that in the URL. */
  readonly serverName?: string | undefined;
  /** Any certificate will do. */
  readonly insecure?: boolean | undefined;
}

export interface Identity {
  /** In lower case: `authorization`, `impersonate-user`, … */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** PEM. */
  readonly certificate?: ClientCertificate | undefined;
}

export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface AccessOptions {
  /** A path, or several as the variable `KUBECONFIG` has them. */
  readonly kubeconfig: string;
  /** A context of the kubeconfig; its current one when ''. */
  readonly context: string;
  /** As the pod that this process runs in; the kubeconfig is not looked at. */
  readonly inCluster: boolean;
}

/** Throws a `ConfigError` that names the file or variable and what to do. */
export function openAccess({ kubeconfig, context, inCluster }: AccessOptions, env: NodeJS.ProcessEnv): Promise<Access> {
  return inCluster ? openInCluster(env) : openKubeconfig(kubeconfig, context);
}

/** A server that asks nobody who they are: an emulated one, or `kubectl proxy`. */
export const openServer = (server: string): Access => ({
  server: server.replace(/\/+$/, ''),
  trust: () => Promise.resolve({}),
  identity: () => Promise.resolve({ headers: {} }),
  refused() {},
});
