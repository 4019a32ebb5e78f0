import { randomInt } from 'node:crypto';
import { versionsOf } from './catalogue.ts';
import { type Kind, resourceOf } from './kinds.ts';
import { type KubernetesObject, recordOf, timestamp, withFields } from './object.ts';

/** An object as the API server keeps it: with what it fills in by itself for a few kinds. `now` in milliseconds. */
export function withDefaults(kind: Kind, object: KubernetesObject, now: number): KubernetesObject {
  const fill = defaults[resourceOf(kind)];
  return fill ? fill(object, now) : object;
}

/** The status of an object that was just created, where a kind has one from the beginning. */
export const firstStatus: Readonly<Record<string, object>> = {
  namespaces: { phase: 'Active' },
  persistentvolumeclaims: { phase: 'Pending' },
  pods: { phase: 'Pending', qosClass: 'BestEffort' },
  services: { loadBalancer: {} },
};

const defaults: Readonly<Record<string, (object: KubernetesObject, now: number) => KubernetesObject>> = {
  namespaces: object => ({
    ...object,
    metadata: {
      ...object.metadata,
      labels: { ...object.metadata.labels, 'kubernetes.io/metadata.name': object.metadata.name },
    },
    spec: { finalizers: ['kubernetes'], ...recordOf(object.spec) },
  }),

  secrets({ stringData, ...object }) {
    const encoded = Object.entries(recordOf(stringData)).map(([key, value]) => [
      key,
      Buffer.from(String(value)).toString('base64'),
    ]);
    const data = { ...recordOf(object.data), ...Object.fromEntries(encoded) };
    return withFields(object, {
      data: Object.keys(data).length > 0 ? data : undefined,
      type: object.type ?? 'Opaque',
    }) as KubernetesObject;
  },

  services(object) {
    const spec = recordOf(object.spec);
    const clusterIP = spec.clusterIP ?? (spec.type === 'ExternalName' ? undefined : freeAddress());
    const ports = Array.isArray(spec.ports) ? spec.ports.map(port => ({ protocol: 'TCP', ...port })) : undefined;
    return { ...object, spec: withFields({ type: 'ClusterIP', ...spec }, { clusterIP, ports }) };
  },

  pods: object => ({
    ...object,
    spec: { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, ...recordOf(object.spec) },
  }),

  'jobs.batch': object => ({
    ...object,
    spec: { parallelism: 1, completions: 1, backoffLimit: 6, suspend: false, ...recordOf(object.spec) },
  }),

  'deployments.apps': object => ({ ...object, spec: { replicas: 1, ...recordOf(object.spec) } }),

  /** Its names are accepted, and it is served, at once. */
  'customresourcedefinitions.apiextensions.k8s.io'(object, now) {
    const spec = recordOf(object.spec);
    const names = recordOf(spec.names);
    const kind = String(names.kind);
    const acceptedNames = { singular: kind.toLowerCase(), listKind: `${kind}List`, ...names };
    const condition = (type: string, reason: string, message: string) => ({
      type,
      status: 'True',
      lastTransitionTime: object.metadata.creationTimestamp ?? timestamp(now),
      reason,
      message,
    });
    return {
      ...object,
      spec: { conversion: { strategy: 'None' }, ...spec, names: acceptedNames },
      status: {
        conditions: [
          condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
          condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
        ],
        acceptedNames,
        storedVersions: versionsOf(object).flatMap(version => (version.storage === true ? [version.name] : [])),
      },
    };
  },
};

const freeAddress = () => `10.96.${randomInt(256)}.${randomInt(1, 255)}`;
