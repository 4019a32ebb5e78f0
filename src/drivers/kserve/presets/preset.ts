/** A serving preset as the platform publishes it: YAML in a ConfigMap, read leniently. */
import { z } from 'zod';
import type { Read } from '../../../config/values.ts';
import { quoted } from '../../../errors.ts';
import { checkData, parseYaml } from '../../yaml.ts';
import { isRepository } from '../hub/reference.ts';
import { trimmed } from '../settings/pool.ts';
import { bytesOfGib } from '../units.ts';

export interface ServingPreset {
  /** Also of the object that serves it. */
  readonly name: string;
  readonly displayName: string;
  readonly description: string | undefined;
  readonly source: 'shipped' | 'values' | undefined;
  /** Repository: `owner/name`. */
  readonly model: string;
  readonly storageUri: string;
  readonly format: string;
  readonly contextLength: number | undefined;
  readonly capabilities: readonly string[];
  readonly license: string | undefined;
  readonly args: readonly string[];
  readonly env: readonly EnvVariable[];
  readonly chatTemplate: ChatTemplate | undefined;
  /** 0: it runs on the CPU. */
  readonly gpus: number;
  /** Quantities by resource. */
  readonly requests: Readonly<Record<string, string>>;
  readonly limits: Readonly<Record<string, string>>;
  /** Absent when it does not say. */
  readonly weightsBytes: number | undefined;
  readonly overheadBytes: number;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly tolerations: readonly Toleration[];
  /** Laid over the pod template that is composed. */
  readonly template: TemplateExtras | undefined;
  readonly baseRefs: readonly { readonly name: string }[];
  /** Absent when it does not say. */
  readonly scheduler: boolean | undefined;
}

/** As Kubernetes has it; `valueFrom` and whatever else there is go through as they are. */
interface EnvVariable {
  readonly name: string;
  readonly value?: string | undefined;
}

/** Of a pod template, whatever a preset has to say. */
export interface TemplateExtras {
  readonly containers?: readonly NamedContainer[] | null | undefined;
  readonly [field: string]: unknown;
}

export interface NamedContainer {
  readonly name: string;
  readonly [field: string]: unknown;
}

interface ChatTemplate {
  readonly configMap: string;
  readonly key: string;
  readonly mountPath: string;
}

export interface Toleration {
  readonly key?: string | undefined;
  readonly operator?: string | undefined;
  readonly value?: string | undefined;
  readonly effect?: string | undefined;
  readonly tolerationSeconds?: number | undefined;
}

const text = z.string().nullish();
const object = <S extends z.ZodRawShape>(shape: S) => z.looseObject(shape).nullish();
/** YAML makes numbers and truths of what is a text to Kubernetes. */
const plain = z.union([z.string(), z.number(), z.boolean()], 'must be a plain value').transform(String);
const plainTexts = z.array(plain).nullish();
const plainMap = z.record(z.string(), plain).nullish();
/** GiB; bytes of more cannot be counted exactly. */
const amount = z.number().lt(2 ** 22);
const check = <T extends z.ZodType>(schema: T, isGood: (value: z.output<T>) => boolean, words: string) =>
  schema.refine(isGood, words);

const schemes = /^(hf|pvc|s3|gs|oci|https?):\/\/./;

const toleration = z.looseObject({
  key: z.string().optional(),
  operator: z.string().optional(),
  value: plain.optional(),
  effect: z.string().optional(),
  tolerationSeconds: z.number().optional(),
});

/** Unknown fields pass. What is required is asked for afterwards. */
const written = z.looseObject({
  apiVersion: text,
  kind: text,
  metadata: object({ name: text }),
  spec: object({
    displayName: text,
    description: text,
    model: object({
      id: text,
      storageUri: text,
      format: text,
      contextLength: z.int().positive().nullish(),
      capabilities: plainTexts,
      license: plain.nullish(),
    }),
    args: plainTexts,
    env: z.array(z.looseObject({ name: z.string(), value: plain.optional() })).nullish(),
    chatTemplate: object({ configMap: z.string(), key: text, mountPath: text }),
    resources: object({ gpus: z.int().nonnegative().nullish(), requests: plainMap, limits: plainMap }),
    requirements: object({
      weightsGiB: check(amount, value => value > 0, 'must be above 0').nullish(),
      overheadGiB: check(amount, value => value >= 0, 'must not be below 0').nullish(),
    }),
    scheduling: object({ nodeSelector: plainMap, tolerations: z.array(toleration).nullish() }),
    template: object({ containers: z.array(z.looseObject({ name: z.string() })).nullish() }),
    baseRefs: z.array(z.looseObject({ name: z.string() })).nullish(),
    router: object({ scheduler: z.boolean().nullish() }),
  }),
});
type Written = z.infer<typeof written>;

const apiVersion = 'agent-platform.giantswarm.io/v1alpha1';
const kind = 'ServingPreset';
const presetName = /^[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?$/;

export interface PresetDefaults {
  readonly source: string | undefined;
  readonly defaultOverheadBytes: number;
}

/** The preset that a text is, or what is wrong with it. */
export function parsePreset(yaml: string, defaults: PresetDefaults): Read<ServingPreset> {
  const parsed = parseYaml(yaml);
  const read = 'problem' in parsed ? parsed : checkData(parsed.value ?? {}, written);
  if ('problem' in read) return read;
  const problem = problemOf(read.value);
  return problem ? { problem } : { value: completed(read.value, defaults) };
}

function problemOf({ apiVersion: version, kind: found, metadata, spec }: Written): string | undefined {
  if (found && found !== kind) return `kind ${quoted(found)}, want ${kind}`;
  if (version && version !== apiVersion) return `apiVersion ${quoted(version)}, want ${apiVersion}`;
  const name = trimmed(metadata?.name);
  if (!name) return 'metadata.name is required';
  if (!presetName.test(name)) {
    return `metadata.name ${quoted(name)}: want at most 30 lower-case letters, digits and inner dashes`;
  }
  const id = trimmed(spec?.model?.id);
  if (!id) return 'spec.model.id is required';
  if (!isRepository(id)) return `spec.model.id ${quoted(id)}: want owner/name`;
  const uri = trimmed(spec?.model?.storageUri);
  if (uri && !schemes.test(uri)) {
    return `spec.model.storageUri ${quoted(uri)}: want hf://, pvc://, s3://, gs://, oci://, http:// or https://`;
  }
  return undefined;
}

function completed({ metadata, spec }: Written, { source, defaultOverheadBytes }: PresetDefaults): ServingPreset {
  // Both were found to be there.
  const name = trimmed(metadata?.name) as string;
  const id = trimmed(spec?.model?.id) as string;
  const { model, chatTemplate, resources, requirements, scheduling } = spec ?? {};
  return {
    name,
    displayName: trimmed(spec?.displayName) ?? name,
    description: trimmed(spec?.description),
    source: source === 'shipped' || source === 'values' ? source : undefined,
    model: id,
    storageUri: trimmed(model?.storageUri) ?? `hf://${id}`,
    format: trimmed(model?.format) ?? 'vLLM',
    contextLength: model?.contextLength ?? undefined,
    capabilities: model?.capabilities ?? [],
    license: trimmed(model?.license),
    args: spec?.args ?? [],
    env: spec?.env ?? [],
    chatTemplate: chatTemplate
      ? {
          configMap: chatTemplate.configMap,
          key: trimmed(chatTemplate.key) ?? 'chat-template.jinja',
          mountPath: trimmed(chatTemplate.mountPath) ?? '/mnt/chat-template',
        }
      : undefined,
    gpus: resources?.gpus ?? 1,
    requests: resources?.requests ?? {},
    limits: resources?.limits ?? {},
    weightsBytes: requirements?.weightsGiB == null ? undefined : bytesOfGib(requirements.weightsGiB),
    overheadBytes: requirements?.overheadGiB == null ? defaultOverheadBytes : bytesOfGib(requirements.overheadGiB),
    nodeSelector: scheduling?.nodeSelector ?? {},
    tolerations: scheduling?.tolerations ?? [],
    template: spec?.template ?? undefined,
    baseRefs: spec?.baseRefs?.map(({ name }) => ({ name })) ?? [],
    scheduler: spec?.router?.scheduler ?? undefined,
  };
}

/** Runs without a GPU: it knows no pool and no runtime class. */
export const isCpuPreset = (preset: ServingPreset | undefined) => preset?.gpus === 0;
/** Its weights are an image that nodes pull themselves: nothing of it is in the cache. */
export const isModelImage = (preset: ServingPreset | undefined) => preset?.storageUri.startsWith('oci://') ?? false;
