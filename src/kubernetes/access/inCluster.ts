import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { ConfigError } from '../../config/settings.ts';
import type { Access } from '../access.ts';
import { createFileText, fileWords, tokenIn } from './file.ts';

/** Where a pod finds what its service account is. */
const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount';

/** As the service account of the pod. Throws a `ConfigError` when this is none. */
export async function openInCluster(env: NodeJS.ProcessEnv, directory = serviceAccount): Promise<Access> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new ConfigError([
      'in-cluster access to Kubernetes needs a pod, and this is none: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT ' +
        'are not set; elsewhere give --kubeconfig',
    ]);
  }
  const tokenPath = join(directory, 'token');
  const readToken = createFileText(tokenPath);
  const readAuthority = createFileText(join(directory, 'ca.crt'));
  const access: Access = {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    trust: async () => ({ ca: await readAuthority() }),
    identity: async () => ({ headers: { authorization: `Bearer ${tokenIn(await readToken(), tokenPath)}` } }),
    refused() {},
  };
  try {
    await Promise.all([access.trust(), access.identity(AbortSignal.abort())]);
  } catch (error) {
    const path = (error as NodeJS.ErrnoException).path ?? tokenPath;
    throw new ConfigError([
      `in-cluster access to Kubernetes needs the pod's service account: ${fileWords(path, error)}; is its token mounted ` +
        '(automountServiceAccountToken)?',
    ]);
  }
  return access;
}
