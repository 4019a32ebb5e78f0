/** A job as a ConfigMap: what all replicas know of it. */
import { z } from 'zod';
import { type Job, jobPhases, type ModelConfigRef } from '../../domain.ts';
import { componentLabel, managedByLabel, manager, ownKey } from '../../kubernetes/ownership.ts';
import type { ConfigMap } from '../../kubernetes/resource.ts';

/** What is known of a job besides its state. */
export interface Record {
  readonly job: Job;
  /** Of the work: no two jobs do the work of one key at a time. */
  readonly key: string;
  /** Whether somebody has asked for it to stop. */
  readonly isCancelled: boolean;
}

export const jobLabels = { [managedByLabel]: manager, [componentLabel]: 'job' };
/** Selects the ConfigMaps and the Leases of jobs. */
export const jobSelector = Object.entries(jobLabels)
  .map(([label, value]) => `${label}=${value}`)
  .join(',');

export const recordName = (id: string) => `model-manager-job-${id}`;

const dataKey = 'job.json';
const cancelAnnotation = ownKey('cancel');

/** The ConfigMap of a job; over the one that is there, whatever else that carries stays. */
export function recordOf({ job, key }: Omit<Record, 'isCancelled'>, namespace: string, there?: ConfigMap): ConfigMap {
  return {
    ...there,
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      ...there?.metadata,
      name: recordName(job.id),
      namespace,
      labels: { ...there?.metadata.labels, ...jobLabels },
    },
    data: { ...there?.data, [dataKey]: JSON.stringify({ key, ...job }, null, 2) },
  };
}

/** The same job with the request to stop. */
export const cancelledRecord = (there: ConfigMap): ConfigMap => ({
  ...there,
  metadata: { ...there.metadata, annotations: { ...there.metadata.annotations, [cancelAnnotation]: 'true' } },
});

const bytes = z.number().int().nonnegative();
const time = z.iso.datetime().transform(text => new Date(text));
const text = z.string().optional();

const modelConfig: z.ZodType<ModelConfigRef> = z.object({
  name: z.string(),
  namespace: z.string(),
  apiVersion: text,
  provider: text,
  model: text,
  ready: z.boolean(),
  message: text,
  managed: z.boolean(),
  providerModel: text,
  endpoint: text,
  apiKeyPassthrough: z.boolean().optional(),
  apiKeySecret: text,
  backend: text,
});

const recorded = z.object({
  key: z.string(),
  id: z.string().regex(/^[0-9a-f]{16}$/),
  backend: z.string(),
  type: z.enum(['pull', 'load']),
  model: z.string(),
  phase: z.enum(jobPhases),
  status: text,
  bytesCompleted: bytes,
  bytesTotal: bytes,
  error: text,
  createdAt: time,
  startedAt: time.optional(),
  finishedAt: time.optional(),
  wire: z.boolean(),
  node: text,
  preset: text,
  requestedBy: text,
  resource: text,
  result: modelConfig.optional(),
});

/** What a ConfigMap says of a job; or what is wrong with it. */
export function readRecord({ metadata, data }: ConfigMap): Record | { readonly problem: string } {
  const written = data?.[dataKey];
  if (typeof written !== 'string') return { problem: `no ${dataKey} key` };
  let document: unknown;
  try {
    document = JSON.parse(written);
  } catch {
    return { problem: `${dataKey} is not JSON` };
  }
  const read = recorded.safeParse(document);
  if (!read.success) return { problem: `${dataKey}: ${z.prettifyError(read.error).replaceAll('\n', ' ')}` };
  const { key, ...job } = read.data;
  if (metadata.name !== recordName(job.id))
    return { problem: `the ConfigMap of job ${job.id} is named ${recordName(job.id)}` };
  return { job, key, isCancelled: metadata.annotations?.[cancelAnnotation] === 'true' };
}
