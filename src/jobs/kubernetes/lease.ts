/** Who does the work of a key: a Lease that its holder renews. */
import { createHash } from 'node:crypto';
import { ownKey } from '../../kubernetes/ownership.ts';
import { type Lease, leases } from '../../kubernetes/resource.ts';
import { jobLabels } from './record.ts';

/** Without a renewal for this long, in seconds, the holder of a Lease is taken for dead. */
export const leaseSeconds = 15;

const jobAnnotation = ownKey('job');

/** One for each key, so that two who begin the same work meet. */
export const leaseName = (key: string) =>
  `model-manager-job-${createHash('sha256').update(key).digest('hex').slice(0, 16)}`;

/** The job that does the work; undefined where it does not say. */
export const jobOf = ({ metadata }: Lease) => metadata.annotations?.[jobAnnotation];

/** The Lease of a key as `holder` holds it from now on, over the one that is there. */
export function heldBy(holder: string, key: string, job: string, namespace: string, there?: Lease): Lease {
  const now = microTime();
  return {
    ...there,
    apiVersion: `${leases.group}/${leases.version}`,
    kind: leases.kind,
    metadata: {
      ...there?.metadata,
      name: leaseName(key),
      namespace,
      labels: { ...there?.metadata.labels, ...jobLabels },
      annotations: { ...there?.metadata.annotations, [jobAnnotation]: job },
    },
    spec: {
      holderIdentity: holder,
      leaseDurationSeconds: leaseSeconds,
      acquireTime: now,
      renewTime: now,
      leaseTransitions: there ? (there.spec?.leaseTransitions ?? 0) + 1 : 0,
    },
  };
}

export const renewed = (lease: Lease): Lease => ({ ...lease, spec: { ...lease.spec, renewTime: microTime() } });

/** As its holder leaves it: free at once. */
export const released = (lease: Lease): Lease => ({ ...lease, spec: { ...lease.spec, holderIdentity: '' } });

/** Kubernetes' MicroTime has six digits. */
const microTime = () => new Date().toISOString().replace('Z', '000Z');
