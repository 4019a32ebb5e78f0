/** What of an object goes on record: what a timeline may need, and no secret. */
import { stringify } from 'yaml';
import type { KubernetesObject } from '../../../kubernetes/resource.ts';
import { parseYaml } from '../../yaml.ts';
import { type Fields, fieldsOf, isFields, listOf } from '../jobs/fields.ts';
import { announcesSecret, mask, masked, namesSecret } from './mask.ts';

/** Fields that are left out wherever they are. */
const dropped: readonly string[] = [
  'managedFields',
  'resourceVersion',
  'selfLink',
  'imagePullSecrets',
  'envFrom',
  // What machines are started with.
  'userData',
  'lastHeartbeatTime',
];

/** Inventories in the status of a node, which are long and change often. */
const droppedOfNodes: readonly string[] = ['images', 'volumesInUse', 'volumesAttached', 'addresses', 'daemonEndpoints'];

/** Annotations of these domains are kept: others are anybody's, and hold anything. */
const keptAnnotations = /^(?:[\w.-]+\.)?(?:giantswarm\.io|kserve\.io|karpenter\.sh|karpenter\.k8s\.aws)\//;

/** The keys of ConfigMaps that are read: documents in YAML. */
const documents: readonly string[] = ['config.yaml', 'preset.yaml'];

export const cleaned = (object: KubernetesObject): KubernetesObject =>
  cleanParts({ ...object }) as unknown as KubernetesObject;

function cleanParts(fields: Fields): Fields {
  // Documents are clean as they are read: as texts they would be masked once more, by lines.
  if (fields.kind === 'ConfigMap') return { ...cleanFields({ ...fields, data: {} }), data: cleanData(fields.data) };
  if (fields.kind !== 'Node') return cleanFields(fields);
  const status = Object.entries(fieldsOf(fields.status)).filter(([name]) => !droppedOfNodes.includes(name));
  return cleanFields({ ...fields, status: Object.fromEntries(status) });
}

/** A text; one that is a document is cleaned as such, so that what could be read before can be read after. */
function cleanText(text: string): string {
  const safe = masked(text);
  const value = safe === text ? undefined : documentIn(text);
  if (value === undefined) return safe;
  if (/^\s*[{[]/.test(text)) return JSON.stringify(clean(value));
  const printed = stringify(clean(value), { lineWidth: 0 });
  return text.endsWith('\n') ? printed : printed.trimEnd();
}

/** The mapping or list that a text is, in YAML or JSON. */
function documentIn(text: string): object | undefined {
  const read = parseYaml(text);
  return 'value' in read && typeof read.value === 'object' && read.value !== null ? read.value : undefined;
}

function clean(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return cleanList(value);
  return isFields(value) ? cleanFields(value) : value;
}

function cleanFields(fields: Fields): Fields {
  const kept = Object.entries(fields).flatMap(([name, value]): [string, unknown][] => {
    if (dropped.includes(name)) return [];
    if (name === 'annotations') return [[name, cleanAnnotations(value)]];
    // Of a variable only that it is there.
    if (name === 'env' && Array.isArray(value))
      return [[name, listOf(value).map(each => ({ name: fieldsOf(each).name }))]];
    if (namesSecret(name) && isPlain(value)) return [[name, mask]];
    return [[name, clean(value)]];
  });
  const cleaned = Object.fromEntries(kept);
  // A header, or whatever else is named by a field beside it.
  const isSecret = typeof fields.name === 'string' && typeof fields.value === 'string' && namesSecret(fields.name);
  return isSecret ? { ...cleaned, value: mask } : cleaned;
}

/** Words and numbers, alone or in a list: what holds names of its own is no secret as a whole. */
const isPlain = (value: unknown): boolean =>
  Array.isArray(value) ? value.every(isPlain) : typeof value === 'string' || typeof value === 'number';

const cleanList = (list: readonly unknown[]): readonly unknown[] =>
  list.map((each, index) => {
    const before = list[index - 1];
    const isSecret = typeof each === 'string' && typeof before === 'string' && announcesSecret(before);
    return isSecret ? mask : clean(each);
  });

const cleanAnnotations = (annotations: unknown): Fields =>
  cleanFields(Object.fromEntries(Object.entries(fieldsOf(annotations)).filter(([name]) => keptAnnotations.test(name))));

/** Documents are cleaned as objects are; what is none is left out. */
function cleanData(data: unknown): Fields {
  const kept = Object.entries(fieldsOf(data)).flatMap(([name, text]): [string, string][] => {
    const read = documents.includes(name) && typeof text === 'string' ? parseYaml(text) : { problem: '' };
    return 'value' in read ? [[name, stringify(clean(read.value), { lineWidth: 0 })]] : [];
  });
  return Object.fromEntries(kept);
}
