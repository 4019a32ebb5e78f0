/** What all pods have in common that this backend starts: they may do nothing but what they are there for. */
import { poolToleration } from '../nodes/taints.ts';
import type { KserveSettings } from '../settings.ts';

export const podBasics = {
  restartPolicy: 'Never',
  automountServiceAccountToken: false,
  securityContext: {
    runAsNonRoot: true,
    runAsUser: 1000,
    runAsGroup: 1000,
    fsGroup: 1000,
    seccompProfile: { type: 'RuntimeDefault' },
  },
} as const;

export const containerSecurity = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
} as const;

/** On a node, or wherever the pool is; always with what the pool's nodes want. */
export function placement({ gpuPool }: KserveSettings, node: string | undefined) {
  const toleration = poolToleration(gpuPool?.taint);
  return {
    ...(node ? { nodeName: node } : gpuPool?.nodeSelector && { nodeSelector: gpuPool.nodeSelector }),
    ...(toleration && { tolerations: [toleration] }),
  };
}

export const shellCommand = (script: string) => ['/bin/sh', '-c', script];

/** The claim as a volume, and where it is mounted. */
export const cacheVolume = (claim: string, readOnly: boolean) => ({
  name: 'cache',
  persistentVolumeClaim: { claimName: claim, ...(readOnly && { readOnly }) },
});
export const cacheMount = (mountPath: string, readOnly: boolean) => ({
  name: 'cache',
  mountPath,
  ...(readOnly && { readOnly }),
});
