/** The pod that serves an LLMInferenceService, as the controller and the admission of the cache make it. */
import { createHash } from 'node:crypto';
import type { KubernetesObject } from '../cluster.ts';
import { endingOf } from '../kubelet/jobs.ts';
import type { Container, Pod, PodSpec } from '../kubelet/pods.ts';
import { apiVersion, runtimeImage } from './definitions.ts';

export interface Service extends KubernetesObject {
  readonly spec?: {
    readonly model?: { readonly uri?: string; readonly name?: string };
    readonly template?: Partial<PodSpec>;
  };
}

/** Where models are mounted. */
const modelPath = '/mnt/models';
const port = 8000;

const startupProbe = {
  httpGet: { path: '/health', port, scheme: 'HTTP' },
  periodSeconds: 10,
  failureThreshold: 60,
};

/** Labels of every pod that serves the object of that name. */
const podLabels = (name: string) => ({
  'app.kubernetes.io/part-of': 'llminferenceservice',
  'app.kubernetes.io/name': name,
  'app.kubernetes.io/component': 'llminferenceservice-workload',
});

/** Whose pod it is: the uid of an LLMInferenceService. */
export const ownerOf = ({ metadata }: KubernetesObject): string | undefined =>
  metadata.ownerReferences?.find(({ kind, controller }) => kind === 'LLMInferenceService' && controller)?.uid;

/** @param place of the pod among all that were made; @param claim of the cache, which is mounted where there is one */
export function podOf(service: Service, place: number, claim: string | undefined) {
  const { name, namespace, uid } = service.metadata;
  const spec = specOf(service, claim);
  const hash = hashOf(spec);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `${name}-kserve-${hash}-${endingOf(place)}`,
      namespace,
      labels: { ...podLabels(name), 'pod-template-hash': hash },
      ownerReferences: [{ apiVersion, kind: service.kind, name, uid, controller: true, blockOwnerDeletion: true }],
    },
    spec,
  } as unknown as Pod;
}

function specOf({ metadata, spec: { model, template } = {} }: Service, claim: string | undefined) {
  const uri = model?.uri ?? '';
  const isDownloaded = uri.startsWith('hf://');
  const image = /^oci:\/\/(.+)$/.exec(uri)?.[1];
  const mounts = { volumeMounts: [{ name: 'hf-cache', mountPath: modelPath, subPath: metadata.name }] };
  const isMounted = isDownloaded && claim !== undefined;
  const { containers = [], ...rest } = template ?? {};
  const main = {
    image: runtimeImage,
    ...containers.find(({ name }) => name === 'main'),
    name: 'main',
    ports: [{ containerPort: port, name: 'http' }],
    startupProbe,
    terminationMessagePolicy: 'FallbackToLogsOnError',
    ...(isMounted && mounts),
  };
  const initializers: Container[] = isDownloaded ? downloaders(uri, isMounted ? mounts : {}) : [];
  const modelImage: Container[] = image === undefined ? [] : [{ name: 'modelcar-init', image }];
  return {
    ...rest,
    containers: [
      main,
      ...containers.filter(({ name }) => name !== 'main'),
      ...(image === undefined ? [] : [{ name: 'modelcar', image }]),
    ],
    ...(isDownloaded || image !== undefined ? { initContainers: [...initializers, ...modelImage] } : {}),
    ...(isMounted && { volumes: [{ name: 'hf-cache', persistentVolumeClaim: { claimName: claim } }] }),
    restartPolicy: 'Always',
  };
}

function downloaders(uri: string, mounts: { readonly volumeMounts?: readonly object[] }): Container[] {
  const initializer = {
    name: 'storage-initializer',
    image: 'gsoci.azurecr.io/giantswarm/storage-initializer:v0.20.0',
    args: [uri, modelPath],
    ...mounts,
  };
  const makesDirectory = { name: 'hf-cache-init', image: 'gsoci.azurecr.io/giantswarm/alpine:3.22.1' };
  return mounts.volumeMounts ? [makesDirectory, initializer] : [initializer];
}

const letters = 'bcdfghjklmnpqrstvwxz2456789';

/** As of a ReplicaSet: ten letters. */
const hashOf = (spec: object) =>
  [...createHash('sha256').update(JSON.stringify(spec)).digest().subarray(0, 10)]
    .map(byte => letters[byte % letters.length])
    .join('');
