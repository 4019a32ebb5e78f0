/**
 * Backend documents: what a person or the cluster manager writes down to have a backend registered. A document is YAML in
 * a ConfigMap; here it is read, checked and written. What is wrong with one is told as `<field>: <what>`, the first thing
 * only.
 */
import { stringify } from 'yaml';
import { z } from 'zod';
import { isNamespaceName } from '../../config/values.ts';
import { type BackendKind, backendKinds, type GpuPool } from '../../domain.ts';
import { completedPool, instanceFields, problemOfPool, taintFields } from '../../drivers/kserve/settings/pool.ts';
import { checkData, parseYaml } from '../../drivers/yaml.ts';
import { parseEndpoint } from '../../endpoint.ts';
import { quoted } from '../../errors.ts';
import { isObjectName } from '../../kubernetes/resource.ts';
import type { BackendOrigin } from '../backend.ts';
import { given } from '../registry.ts';

export const documentApiVersion = 'agent-platform.giantswarm.io/v1alpha1';
export const documentKind = 'ModelBackend';

/** A document that is as it should be, its defaults filled in. */
export interface BackendDocument {
  readonly apiVersion: typeof documentApiVersion;
  readonly kind: typeof documentKind;
  readonly metadata: { readonly name: string };
  readonly spec: BackendSpec;
}

export interface BackendSpec {
  readonly kind: BackendKind;
  readonly source: Exclude<BackendOrigin, 'static'>;
  /** Of a host, as the gateway dials it, and as agents do. */
  readonly endpoint?: string | undefined;
  readonly agentEndpoint?: string | undefined;
  readonly credentials?: { readonly secretRef: { readonly name: string; readonly key: string } } | undefined;
  readonly kserve?: KserveSpec | undefined;
}

interface KserveSpec {
  readonly target: {
    readonly cluster: string;
    readonly organization?: string | undefined;
    readonly apiServer?: string | undefined;
    readonly caBundle?: string | undefined;
    readonly servingNamespace: string;
  };
  readonly discovery: { readonly namespace: string; readonly name: string };
  readonly gpuPool?: GpuPool | undefined;
  readonly router?: { readonly scheduler?: boolean | undefined } | undefined;
}

export type Read = { readonly document: BackendDocument } | { readonly problem: string };

const text = z.string().nullish();
const object = <S extends z.ZodRawShape>(shape: S) => z.strictObject(shape).nullish();

/** What a document may hold. Whether that makes sense is checked afterwards, in the contract's order. */
const written = z.strictObject({
  apiVersion: text,
  kind: text,
  metadata: object({ name: text }),
  spec: object({
    kind: text,
    source: text,
    endpoint: text,
    agentEndpoint: text,
    credentials: object({ secretRef: object({ name: text, key: text }) }),
    kserve: object({
      target: object({ cluster: text, organization: text, apiServer: text, caBundle: text, servingNamespace: text }),
      discovery: object({ namespace: text, name: text }),
      gpuPool: object({
        taint: object(taintFields),
        nodeSelector: z.record(z.string(), z.string()).nullish(),
        instances: z.array(z.strictObject(instanceFields)).nullish(),
      }),
      router: object({ scheduler: z.boolean().nullish() }),
    }),
  }),
});

type Written = z.infer<typeof written>;
type WrittenSpec = NonNullable<Written['spec']>;

/** The document that a text is. */
export function parseDocument(yaml: string): Read {
  const read = parseYaml(yaml);
  return 'problem' in read ? { problem: `document: ${read.problem}` } : readDocument(read.value);
}

/** The document that plain data is. */
export function readDocument(data: unknown): Read {
  const read = checkData(data ?? {}, written);
  if ('problem' in read) return { problem: `document: ${read.problem}` };
  const problem = problemOf(read.value);
  return problem === undefined ? { document: completed(read.value) } : { problem };
}

/** The text of a document. */
export const renderDocument = (document: BackendDocument): string => stringify(document, { lineWidth: 0 });

const kinds = backendKinds.toSorted().join('|');

function problemOf({ apiVersion, kind, metadata, spec }: Written): string | undefined {
  if (given(apiVersion) !== documentApiVersion) return `apiVersion: must be ${documentApiVersion}`;
  if (given(kind) !== documentKind) return `kind: must be ${documentKind}`;
  const backend = given(spec?.kind);
  if (!spec || !backend) return `spec.kind: required (${kinds})`;
  if (!(backendKinds as readonly string[]).includes(backend)) return `spec.kind: unknown ${quoted(backend)} (${kinds})`;
  if ((given(metadata?.name) ?? backend) !== backend) return `metadata.name: must equal spec.kind (${backend})`;
  if (!['person', 'cluster-manager'].includes(given(spec.source) ?? 'person')) {
    return 'spec.source: must be person or cluster-manager (static backends come from --backends)';
  }
  if (spec.credentials && !given(spec.credentials.secretRef?.name)) {
    return 'spec.credentials.secretRef.name: required when credentials are set';
  }
  const secret = given(spec.credentials?.secretRef?.name);
  if (secret && !isObjectName(secret))
    return `spec.credentials.secretRef.name: ${mustBe('the name of a Secret', secret)}`;
  return backend === 'kserve' ? problemOfKserve(spec) : problemOfHost(spec, backend);
}

const mustBe = (what: string, got: string) => `must be ${what}, got ${quoted(got)}`;

function problemOfHost(spec: WrittenSpec, kind: string): string | undefined {
  if (spec.kserve) return `spec.kserve: not accepted for ${kind}`;
  if (spec.credentials) return `spec.credentials: not supported by ${kind} yet (only kserve takes them)`;
  if (!given(spec.endpoint)) return `spec.endpoint: required for ${kind}`;
  for (const field of ['endpoint', 'agentEndpoint'] as const) {
    const address = given(spec[field]);
    const parsed = address && parseEndpoint(address);
    if (parsed && 'problem' in parsed) return `spec.${field}: ${parsed.problem}`;
  }
  return undefined;
}

function problemOfKserve({ endpoint, agentEndpoint, kserve }: WrittenSpec): string | undefined {
  if (given(endpoint) || given(agentEndpoint)) {
    return 'spec.endpoint: not accepted for kserve (its cluster is spec.kserve.target)';
  }
  if (!kserve) return 'spec.kserve: required for kserve';
  const target = kserve.target ?? {};
  if (!given(target.servingNamespace)) return 'spec.kserve.target.servingNamespace: required';
  for (const [field, name] of [
    ['target.servingNamespace', given(target.servingNamespace)],
    ['discovery.namespace', given(kserve.discovery?.namespace)],
  ] as const) {
    if (name && !isNamespaceName(name)) return `spec.kserve.${field}: ${mustBe('the name of a namespace', name)}`;
  }
  const discovery = given(kserve.discovery?.name);
  if (discovery && !isObjectName(discovery))
    return `spec.kserve.discovery.name: ${mustBe('the name of a ConfigMap', discovery)}`;
  const problem = kserve.gpuPool && problemOfPool(kserve.gpuPool);
  if (problem) return `spec.kserve.gpuPool.${problem}`;
  const cluster = given(target.cluster) ?? 'local';
  if (cluster === 'local') {
    const remote = given(target.apiServer) ?? given(target.caBundle);
    return remote && 'spec.kserve.target.apiServer: not accepted for the local cluster';
  }
  if (!given(target.apiServer)) {
    return `spec.kserve.target.apiServer: required for cluster ${quoted(cluster)} (only local needs none)`;
  }
  const parsed = parseEndpoint(given(target.apiServer) ?? '');
  if ('problem' in parsed) return `spec.kserve.target.apiServer: ${parsed.problem}`;
  if (!/^https:/i.test(parsed.endpoint))
    return `spec.kserve.target.apiServer: ${mustBe('an https URL', given(target.apiServer) ?? '')}`;
  if (!given(target.caBundle)) return `spec.kserve.target.caBundle: required for cluster ${quoted(cluster)}`;
  return undefined;
}

/** A checked document with its defaults. */
function completed({ spec }: Written): BackendDocument {
  const { kind, source, endpoint, agentEndpoint, credentials, kserve } = spec as WrittenSpec;
  const backend = given(kind) as BackendKind;
  const secret = given(credentials?.secretRef?.name);
  return {
    apiVersion: documentApiVersion,
    kind: documentKind,
    metadata: { name: backend },
    spec: {
      kind: backend,
      source: (given(source) ?? 'person') as BackendSpec['source'],
      endpoint: dialled(endpoint),
      agentEndpoint: dialled(agentEndpoint) ?? dialled(endpoint),
      credentials: secret
        ? { secretRef: { name: secret, key: given(credentials?.secretRef?.key) ?? 'token' } }
        : undefined,
      kserve: kserve ? completedKserve(kserve) : undefined,
    },
  };
}

function dialled(address: string | null | undefined): string | undefined {
  const parsed = parseEndpoint(address ?? '');
  return 'endpoint' in parsed ? parsed.endpoint : undefined;
}

function completedKserve({ target, discovery, gpuPool, router }: NonNullable<WrittenSpec['kserve']>): KserveSpec {
  const servingNamespace = given(target?.servingNamespace) as string;
  return {
    target: {
      cluster: given(target?.cluster) ?? 'local',
      organization: given(target?.organization),
      apiServer: given(target?.apiServer),
      caBundle: given(target?.caBundle),
      servingNamespace,
    },
    discovery: {
      namespace: given(discovery?.namespace) ?? servingNamespace,
      name: given(discovery?.name) ?? 'agent-platform-model-serving',
    },
    gpuPool: gpuPool ? completedPool(gpuPool) : undefined,
    router: router ? { scheduler: router.scheduler ?? undefined } : undefined,
  };
}
