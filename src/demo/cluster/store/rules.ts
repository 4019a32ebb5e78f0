import { badRequest, type Problem } from '../status.ts';
import { versionsOf } from './catalogue.ts';
import { type Kind, resourceOf } from './kinds.ts';
import { isRecord, type KubernetesObject, recordOf } from './object.ts';

interface Form {
  readonly pattern: RegExp;
  readonly longest: number;
  readonly words: string;
}

const label: Form = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  longest: 63,
  words:
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
};
const subdomain: Form = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  longest: 253,
  words:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
};
const serviceName: Form = {
  pattern: /^[a-z]([-a-z0-9]*[a-z0-9])?$/,
  longest: 63,
  words:
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
};
const pathSegment: Form = {
  pattern: /^(?!\.{1,2}$)[^/%]+$/,
  longest: Number.POSITIVE_INFINITY,
  words: "may not contain '/' or '%'",
};
const labelValue: Form = {
  pattern: /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/,
  longest: 63,
  words:
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
};
const qualifiedName: Form = {
  pattern: /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/,
  longest: 63,
  words:
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
};
const configKey: Form = {
  pattern: /^[-._a-zA-Z0-9]+$/,
  longest: 253,
  words:
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
};

/** All annotations of an object together, in bytes. */
const annotationBytes = 256 * 1024;

/** What is wrong with an object as far as any API server can tell: names, labels, annotations, and what a few kinds ask. */
export function problemsOf(kind: Kind, object: KubernetesObject): readonly Problem[] {
  const { name, labels = {}, annotations = {}, finalizers = [] } = object.metadata;
  const total = Object.entries(annotations).reduce((sum, [key, value]) => sum + bytes(key) + bytes(value), 0);
  return [
    ...checked('metadata.name', name, nameForm(kind)),
    ...Object.entries(labels).flatMap(([key, value]) => [
      ...checked('metadata.labels', key, qualifiedName, key.slice(key.indexOf('/') + 1)),
      ...checked('metadata.labels', value, labelValue),
    ]),
    ...Object.keys(annotations).flatMap(key =>
      checked('metadata.annotations', key, qualifiedName, key.slice(key.indexOf('/') + 1)),
    ),
    ...(total > annotationBytes
      ? [['metadata.annotations', `Too long: may not be more than ${annotationBytes} bytes`] as const]
      : []),
    ...finalizers.flatMap(each =>
      checked('metadata.finalizers', each, qualifiedName, each.slice(each.indexOf('/') + 1)),
    ),
    ...(specialProblems[resourceOf(kind)]?.(object) ?? []),
  ];
}

function nameForm(kind: Kind): Form {
  if (kind.group === 'rbac.authorization.k8s.io') return pathSegment;
  if (kind.group === '' && kind.plural === 'namespaces') return label;
  return kind.group === '' && kind.plural === 'services' ? serviceName : subdomain;
}

function checked(field: string, value: string, form: Form, part = value): readonly Problem[] {
  const shown = JSON.stringify(value);
  return [
    ...(form.pattern.test(part) ? [] : [[field, `Invalid value: ${shown}: ${form.words}`] as const]),
    ...(part.length <= form.longest
      ? []
      : [[field, `Invalid value: ${shown}: must be no more than ${form.longest} characters`] as const]),
  ];
}

const bytes = (text: string) => Buffer.byteLength(text);

const keysOfData = (object: KubernetesObject) =>
  ['data', 'binaryData'].flatMap(field =>
    Object.keys(recordOf(object[field])).flatMap(key => checked(`${field}[${key}]`, key, configKey)),
  );

const specialProblems: Readonly<Record<string, (object: KubernetesObject) => readonly Problem[]>> = {
  configmaps: keysOfData,
  secrets: keysOfData,
  'customresourcedefinitions.apiextensions.k8s.io': problemsOfDefinition,
};

function problemsOfDefinition(definition: KubernetesObject): readonly Problem[] {
  const { group, names, scope } = recordOf(definition.spec);
  const { plural, kind } = recordOf(names);
  const versions = versionsOf(definition);
  const required = (field: string, value: unknown) => (value ? [] : [[field, 'Required value'] as const]);
  return [
    ...required('spec.group', group),
    ...required('spec.names.plural', plural),
    ...required('spec.names.kind', kind),
    ...(scope === 'Namespaced' || scope === 'Cluster'
      ? []
      : [
          [
            'spec.scope',
            `Unsupported value: ${JSON.stringify(scope ?? '')}: supported values: "Cluster", "Namespaced"`,
          ] as const,
        ]),
    ...(definition.metadata.name === `${plural}.${group}`
      ? []
      : [
          [
            'metadata.name',
            `Invalid value: "${definition.metadata.name}": must be spec.names.plural+"."+spec.group`,
          ] as const,
        ]),
    ...(versions.filter(version => version.storage === true).length === 1
      ? []
      : [['spec.versions', 'Invalid value: must have exactly one version marked as storage version'] as const]),
  ];
}

/** The shape without which nothing can be said about an object. Throws `BadRequest`. */
export function checkShape(value: unknown): asserts value is KubernetesObject {
  if (!isRecord(value)) throw badRequest("couldn't get version/kind; json parse error: the body is no object");
  if (typeof value.apiVersion !== 'string' || typeof value.kind !== 'string') {
    throw badRequest("Object 'Kind' is missing");
  }
  const metadata = value.metadata ?? {};
  if (!isRecord(metadata)) throw undecodable(value.kind, 'metadata', 'a struct');
  for (const field of ['name', 'generateName', 'namespace', 'uid', 'resourceVersion']) {
    if (!isText(metadata[field])) throw undecodable(value.kind, `metadata.${field}`, 'type string');
  }
  for (const field of ['labels', 'annotations']) {
    if (!isTexts(metadata[field])) throw undecodable(value.kind, `metadata.${field}`, 'type map[string]string');
  }
  if (!isListOf(metadata.finalizers, item => typeof item === 'string'))
    throw undecodable(value.kind, 'metadata.finalizers', 'type []string');
  if (!isListOf(metadata.ownerReferences, isRecord)) {
    throw undecodable(value.kind, 'metadata.ownerReferences', 'type []v1.OwnerReference');
  }
  const holdsTexts = value.apiVersion === 'v1' && (value.kind === 'ConfigMap' || value.kind === 'Secret');
  if (holdsTexts && !isTexts(value.data)) throw undecodable(value.kind, 'data', 'type map[string]string');
}

const isText = (value: unknown) => value === undefined || value === null || typeof value === 'string';
const isTexts = (value: unknown) =>
  value === undefined ||
  value === null ||
  (isRecord(value) && Object.values(value).every(item => typeof item === 'string'));
const isListOf = (value: unknown, test: (item: unknown) => boolean) =>
  value === undefined || value === null || (Array.isArray(value) && value.every(test));

const undecodable = (kind: string, field: string, wanted: string) =>
  badRequest(
    `${kind} cannot be handled as a ${kind}: json: cannot unmarshal value into Go struct field ${kind}.${field} of ${wanted}`,
  );
