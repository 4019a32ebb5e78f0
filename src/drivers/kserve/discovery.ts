/** The discovery document: a ConfigMap in which the platform says how and where models are served. */
import { z } from 'zod';
import type { GpuPool } from '../../domain.ts';
import { quoted } from '../../errors.ts';
import type { KubernetesObject } from '../../kubernetes/resource.ts';
import { checkData, parseYaml } from '../yaml.ts';
import {
  completedPool,
  instanceFields,
  problemOfInstances,
  problemOfTaint,
  taintFields,
  trimmed,
} from './settings/pool.ts';

/** Where the ConfigMap is. */
export interface DiscoveryRef {
  readonly namespace: string;
  readonly name: string;
}

/** What it says; what it leaves out is undefined. */
export interface DiscoveryDocument {
  readonly namespace: string | undefined;
  readonly gpuResource: string | undefined;
  readonly runtimeClass: string | undefined;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly gpuPool: GpuPool | undefined;
  readonly cache: {
    readonly enabled: boolean;
    readonly claim: string | undefined;
    readonly mountPath: string | undefined;
    readonly redirectPolicy: boolean;
  };
  readonly presets: { readonly namespace: string | undefined; readonly selector: string | undefined };
  /** Only where the gateway is on; without a slash at its end. */
  readonly gatewayEndpoint: string | undefined;
  /** One sentence each: what of it cannot be used and counts as left out. */
  readonly warnings: readonly string[];
}

/** How reading it went the last time. */
export type Discovery =
  | { readonly state: 'present'; readonly document: DiscoveryDocument }
  | { readonly state: 'missing' }
  /** `problem`: the reading's own words, as `readFailure` and `parseDiscovery` give them. */
  | { readonly state: 'unreadable'; readonly problem: string };

const text = z.string().nullish();
const flag = z.boolean().nullish();
const labels = z.record(z.string(), z.string()).nullish();
const object = <S extends z.ZodRawShape>(shape: S) => z.looseObject(shape).nullish();

/** Unknown fields pass. Whether a taint and instances are any good is checked afterwards: they are left out if not. */
const written = z.looseObject({
  kind: text,
  spec: object({
    namespace: text,
    gpuResourceName: text,
    runtimeClassName: text,
    nodeSelector: labels,
    gpuPool: object({ taint: z.unknown().optional(), nodeSelector: labels, instances: z.unknown().optional() }),
    cache: object({ enabled: flag, claimName: text, mountPath: text, redirectPolicy: flag }),
    presets: object({ namespace: text, labelSelector: text }),
    gateway: object({ enabled: flag, endpoint: text }),
  }),
});
type WrittenSpec = NonNullable<z.infer<typeof written>['spec']>;

const writtenTaint = z.looseObject(taintFields).nullish();
const writtenInstances = z.array(z.looseObject(instanceFields)).nullish();

const key = 'config.yaml';
const kind = 'ModelServingConfig';
const nameOf = ({ namespace, name }: DiscoveryRef) => `${namespace}/${name}`;

/** What a ConfigMap that was read says. */
export function parseDiscovery(configMap: KubernetesObject, ref: DiscoveryRef): Discovery {
  const data = (configMap as { data?: unknown }).data;
  const yaml = (data as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  const unreadable = (problem: string): Discovery => ({ state: 'unreadable', problem });
  if (typeof yaml !== 'string') return unreadable(`discovery ConfigMap ${nameOf(ref)} has no ${key} key`);
  const parsed = parseYaml(yaml);
  const checked = 'problem' in parsed ? parsed : checkData(parsed.value ?? {}, written);
  if ('problem' in checked) return unreadable(`parse discovery ConfigMap ${nameOf(ref)}: ${checked.problem}`);
  const { kind: found, spec } = checked.value;
  if (found && found !== kind) {
    return unreadable(`discovery ConfigMap ${nameOf(ref)}: kind ${quoted(found)}, want ${kind}`);
  }
  return { state: 'present', document: documentOf(spec ?? {}, ref) };
}

/** The words for a ConfigMap that could not be read. */
export const readFailure = (ref: DiscoveryRef, error: string) => `read discovery ConfigMap ${nameOf(ref)}: ${error}`;

/** That the document is why a request cannot be answered; nothing when it is there. */
export function withoutDocument(discovery: Discovery, ref: DiscoveryRef): string | undefined {
  if (discovery.state === 'present') return undefined;
  return discovery.state === 'missing'
    ? `the serving layer's discovery document ${nameOf(ref)} is not published yet — the slice is still installing; retry in a moment`
    : `the serving layer's discovery document could not be read (${discovery.problem}); retry in a moment`;
}

/** What the backend says of itself while it goes without the document; nothing when it is there. */
export function discoveryNote(discovery: Discovery, ref: DiscoveryRef): string | undefined {
  if (discovery.state === 'present') return undefined;
  return discovery.state === 'missing'
    ? `no discovery ConfigMap ${nameOf(ref)}; using flags and defaults`
    : `discovery: ${discovery.problem}`;
}

function documentOf(spec: WrittenSpec, ref: DiscoveryRef): DiscoveryDocument {
  const warnings: string[] = [];
  const { cache, presets, gateway } = spec;
  return {
    namespace: trimmed(spec.namespace),
    gpuResource: trimmed(spec.gpuResourceName),
    runtimeClass: trimmed(spec.runtimeClassName),
    nodeSelector: spec.nodeSelector ?? {},
    gpuPool: spec.gpuPool ? poolOf(spec.gpuPool, ref, warnings) : undefined,
    cache: {
      enabled: cache?.enabled ?? false,
      claim: trimmed(cache?.claimName),
      mountPath: trimmed(cache?.mountPath),
      redirectPolicy: cache?.redirectPolicy ?? false,
    },
    presets: { namespace: trimmed(presets?.namespace), selector: trimmed(presets?.labelSelector) },
    gatewayEndpoint: gateway?.enabled ? trimmed(trimmed(gateway.endpoint)?.replace(/\/+$/, '')) : undefined,
    warnings,
  };
}

/** Of a pool, what can be used. All its instances are left out for one that is wrong: a part would be taken for all. */
function poolOf(pool: NonNullable<WrittenSpec['gpuPool']>, ref: DiscoveryRef, warnings: string[]): GpuPool {
  const usable = <T>(
    schema: z.ZodType<T>,
    data: unknown,
    problemOf: (value: T) => string | undefined,
    field: string,
  ) => {
    const read = checkData(data, schema);
    const problem = 'problem' in read ? `${field}: ${read.problem}` : problemOf(read.value);
    if (problem)
      warnings.push(`discovery ConfigMap ${nameOf(ref)}: spec.gpuPool.${problem}; ignoring gpuPool.${field}`);
    return problem || 'problem' in read ? undefined : read.value;
  };
  // A taint without a key is none.
  const taint = usable(
    writtenTaint,
    pool.taint,
    taint => (trimmed(taint?.key) ? problemOfTaint(taint) : undefined),
    'taint',
  );
  return completedPool({
    taint: trimmed(taint?.key) ? taint : undefined,
    nodeSelector: pool.nodeSelector,
    instances: usable(writtenInstances, pool.instances, problemOfInstances, 'instances'),
  });
}
