/** From the text of a recording to its data, or what is wrong with the text and where. */
import { type Document, isNode, LineCounter, parseDocument, type YAMLError } from 'yaml';
import { z } from 'zod';
import { isNamespaceName, parseDuration, type Read } from '../../../config/values.ts';
import { messageOf, quoted } from '../../../errors.ts';
import { isObjectName, type KubernetesObject } from '../../../kubernetes/resource.ts';
import { issueInWords, pathOf } from '../../yaml.ts';
import { type Instant, keyOf, type Recording } from '../recording.ts';

export const format = { kind: 'ServeRecording', version: 1 } as const;

/** Longer texts are not read, in characters. */
const longest = 64 * 1024 * 1024;

const time = z.string().superRefine((text, context) => {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(text) && !Number.isNaN(Date.parse(text));
  if (!isTime) context.addIssue(`must be a time such as 2026-10-05T08:00:00Z, got ${quoted(text)}`);
});

const duration = z.string().transform((text, context) => {
  const ms = parseDuration(text);
  if (ms !== undefined && ms >= 0) return ms;
  context.addIssue(`must be a duration such as 10m or 0s, got ${quoted(text)}`);
  return z.NEVER;
});

/** The kinds that a serve is told from, and whether their objects are in a namespace. */
const scopes = {
  LLMInferenceService: true,
  Pod: true,
  Event: true,
  ConfigMap: true,
  PersistentVolumeClaim: true,
  PersistentVolume: false,
  Node: false,
  NodeClaim: false,
  NodePool: false,
  EC2NodeClass: false,
} as const;
const kinds = Object.keys(scopes) as (keyof typeof scopes)[];

const name = z.string().refine(isObjectName, { error: 'must be the name of an object' });
const namespace = z.string().refine(isNamespaceName, { error: 'must be the name of a namespace' });
const texts = z.record(z.string(), z.string()).optional();

/** Of all objects the same is needed; what a kind has besides is looked into with care. */
const needed = z
  .looseObject({
    apiVersion: z.string().regex(/^([a-z0-9.-]+\/)?v\d\w*$/, { error: 'must be an API version such as v1' }),
    kind: z.enum(kinds, { error: `must be one of ${kinds.join(', ')}` }),
    metadata: z.looseObject({
      name,
      namespace: namespace.optional(),
      uid: z.string().optional(),
      labels: texts,
      annotations: texts,
      creationTimestamp: time.optional(),
      deletionTimestamp: time.optional(),
      finalizers: z.array(z.string()).optional(),
    }),
    data: z.unknown().optional(),
  })
  .superRefine(({ kind, metadata, data }, context) => {
    const isPlaced = metadata.namespace !== undefined;
    if (isPlaced !== scopes[kind]) {
      const message = isPlaced ? `must be left out: a ${kind} has none` : `must be given: a ${kind} has one`;
      context.addIssue({ code: 'custom', path: ['metadata', 'namespace'], message });
    }
    if (kind === 'ConfigMap' && !texts.safeParse(data).success) {
      context.addIssue({ code: 'custom', path: ['data'], message: 'must be a mapping of texts' });
    }
  });

/** An object as it is, its fields in their order. */
const object = z.unknown().transform((value, context) => {
  const { error } = needed.safeParse(value, { reportInput: true });
  for (const issue of error?.issues ?? []) context.issues.push({ ...issue } as z.core.$ZodRawIssue);
  return value as KubernetesObject;
});

const instant = z.strictObject({
  name: z.string().optional(),
  about: z.string().optional(),
  at: time.transform(text => Date.parse(text)),
  objects: z.array(object).default([]),
  gone: z.array(z.string()).default([]),
  denied: z
    .array(z.strictObject({ resource: z.string().min(1), namespace: z.string().optional(), message: z.string() }))
    .optional(),
  log: z
    .strictObject({ pod: z.string().optional(), container: z.string(), previous: z.boolean(), text: z.string() })
    .nullish(),
  expect: z.unknown().optional(),
});

const written = z
  .strictObject({
    kind: z.literal(format.kind, { error: `must be ${format.kind}: this is no recording of model-manager record` }),
    version: z.literal(format.version, {
      error: `must be ${format.version}: another version of model-manager wrote this; read it with that one`,
    }),
    about: z.string().optional(),
    object: name,
    namespace,
    settings: z.strictObject({
      gpuResource: z.string().min(1),
      scaleUpTimeout: duration,
      cacheClaim: name.optional(),
      cacheNodes: z.array(z.string()).optional(),
      gatewayEndpoint: z.string().optional(),
      weightsBytes: z.number().int().min(0).optional(),
    }),
    instants: z.array(instant).min(1, { error: 'must have at least one instant' }),
  })
  .superRefine(checkCourse);

/** That times go forward, that what goes was there, and that the object always is. */
function checkCourse(recording: Recording, context: z.RefinementCtx): void {
  const there = new Set<string>();
  const subject = keyOf({
    kind: 'LLMInferenceService',
    metadata: { namespace: recording.namespace, name: recording.object },
  });
  let latest = Number.NEGATIVE_INFINITY;
  recording.instants.forEach((instant: Instant, index) => {
    const wrong = (path: readonly (string | number)[], message: string) =>
      context.addIssue({ code: 'custom', path: ['instants', index, ...path], message });
    if (instant.at < latest) wrong(['at'], 'must not be before the instant above it; put them in order');
    latest = Math.max(latest, instant.at);
    instant.gone.forEach((key, place) => {
      if (!there.delete(key)) {
        wrong(['gone', place], `names ${quoted(key)}, which was not there; write it as in ${quoted(subject)}`);
      }
    });
    for (const each of instant.objects) there.add(keyOf(each));
    if (!there.has(subject))
      wrong([], `must have the object ${quoted(subject)} among its objects: it is what is served`);
  });
}

/** The problem begins with the line where there is one: `line 12: instants[0].at must be a time such as …`. */
export function parseRecording(text: string): Read<Recording> {
  if (text.length > longest) return { problem: `is longer than ${longest / 2 ** 20} MiB: no recording is` };
  const lines = new LineCounter();
  try {
    const document = parseDocument(text, { lineCounter: lines, logLevel: 'error' });
    const [broken] = [...document.errors, ...document.warnings];
    if (broken) return { problem: wordsOf(broken) };
    const { data, error } = written.safeParse(document.toJS(), { reportInput: true });
    if (!error) {
      const { kind, version, ...recording } = data;
      return { value: recording };
    }
    const [issue] = error.issues as [z.core.$ZodIssue, ...z.core.$ZodIssue[]];
    return { problem: `line ${lineOf(document, lines, issue)}: ${issueWords(issue)}` };
  } catch (error) {
    // What a parser throws of nesting and aliases without end.
    return { problem: error instanceof RangeError ? 'is nested too deeply' : firstLine(messageOf(error)) };
  }
}

const firstLine = (text: string) => text.split('\n', 1)[0] as string;

const wordsOf = ({ linePos, message }: YAMLError) =>
  `line ${linePos?.[0].line ?? 1}: is no YAML there: ${firstLine(message).replace(/ at line \d+, column \d+:?$/, '')}`;

function issueWords(issue: z.core.$ZodIssue): string {
  if (!['invalid_value', 'too_small', 'invalid_format'].includes(issue.code)) return issueInWords(issue);
  return `${pathOf(issue.path)} ${issue.message}`;
}

/** Where a field is; where it is missing, what it should be in. */
function lineOf(document: Document, lines: LineCounter, issue: z.core.$ZodIssue): number {
  const unknown = issue.code === 'unrecognized_keys' ? [issue.keys[0] as string] : [];
  const path = [...issue.path, ...unknown];
  for (let length = path.length; length >= 0; length--) {
    const node = length === 0 ? document.contents : document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
  }
  return 1;
}
