/**
 * The definitions of the kinds that the gateway speaks of, as their projects publish them, where a copy of them is beside
 * this repository; and a check of objects by their schemas. Rules in CEL are not checked.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { parse } from 'yaml';
import type { ClusterOptions, KubernetesObject } from '../../src/demo/cluster.ts';

const folder = new URL('../../../shared/crds/', import.meta.url).pathname;

/** Why a test with published definitions cannot run here; false when it can. */
export const skip = !existsSync(folder) && 'there are no published CustomResourceDefinitions beside this repository';

export interface Definition extends KubernetesObject {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[];
  };
}

interface Schema {
  readonly [keyword: string]: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
}

/** All of them, or those of some resources: `modelconfigs.kagent.dev`. */
function publishedDefinitions(...resources: readonly string[]): readonly Definition[] {
  const files = globSync('*.yaml', { cwd: folder }).sort();
  const wanted = files.filter(file => resources.length === 0 || resources.some(each => fileOf(each) === file));
  // Their authors write what repeats once, and refer to it a few hundred times.
  return wanted.map(file => parse(readFileSync(folder + file, 'utf8'), { maxAliasCount: -1 }) as Definition);
}

/** `kagent.dev_modelconfigs.yaml` */
const fileOf = (resource: string) => `${resource.slice(resource.indexOf('.') + 1)}_${resource.split('.')[0]}.yaml`;

/** A cluster that has these definitions and takes no object of their kinds that they do not describe. */
export const publishedKinds = (...resources: readonly string[]) => {
  const definitions = publishedDefinitions(...resources);
  return { objects: definitions, validate: checkOf(definitions) } satisfies ClusterOptions;
};

/**
 * What is wrong with an object by the schema of its version, each as a server says it; nothing for other kinds. Fields that
 * the schema does not have are wrong too: a server would drop them without a word.
 */
function checkOf(definitions: readonly Definition[]): (object: KubernetesObject) => readonly string[] {
  const compiled = new Map<string, ValidateFunction>();

  function compiledFor({ apiVersion, kind }: KubernetesObject): ValidateFunction | undefined {
    const key = `${apiVersion} ${kind}`;
    const [group, name] = apiVersion.split('/');
    const definition = definitions.find(({ spec }) => spec.group === group && spec.names.kind === kind);
    const version = definition?.spec.versions.find(each => each.name === name);
    if (!version) return undefined;
    const found = compiled.get(key) ?? newValidator().compile(prepared(version.schema.openAPIV3Schema));
    compiled.set(key, found);
    return found;
  }

  return object => {
    const check = compiledFor(object);
    return !check || check(object) ? [] : (check.errors ?? []).filter(isWhole).map(wordsOf);
  };
}

function newValidator() {
  const within = (bits: bigint) => (value: number) =>
    Number.isInteger(value) && BigInt(value) >= -(2n ** (bits - 1n)) && BigInt(value) < 2n ** (bits - 1n);
  const ajv = new Ajv({ allErrors: true, verbose: true, strict: false, inlineRefs: false });
  ajv.addFormat('int32', { type: 'number', validate: within(32n) });
  ajv.addFormat('int64', { type: 'number', validate: within(64n) });
  ajv.addFormat('date-time', text => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)));
  return ajv;
}

/** The schema closed to other fields, with parts that stand in it more than once written once. */
function prepared(schema: Schema): object {
  const times = new Map<Schema, number>();
  const count = (part: Schema) => {
    const known = times.get(part) ?? 0;
    times.set(part, known + 1);
    if (known === 0) for (const child of childrenOf(part)) count(child);
  };
  count(schema);

  const $defs: Record<string, object> = {};
  const names = new Map<Schema, string>();
  function written(part: Schema): object {
    if ((times.get(part) ?? 0) < 2) return closed(part);
    const known = names.get(part);
    const name = known ?? `part${names.size}`;
    if (known === undefined) {
      names.set(part, name);
      $defs[name] = closed(part);
    }
    return { $ref: `#/$defs/${name}` };
  }

  function closed(part: Schema): object {
    const { properties, items, additionalProperties } = part;
    const isOpen = !properties || additionalProperties !== undefined || part['x-kubernetes-preserve-unknown-fields'];
    return {
      ...part,
      ...(properties && {
        properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, written(child)])),
      }),
      ...(items && { items: written(items) }),
      ...(typeof additionalProperties === 'object' && { additionalProperties: written(additionalProperties) }),
      ...(!isOpen && { additionalProperties: false }),
    };
  }

  return { ...closed(schema), $defs };
}

const childrenOf = ({ properties = {}, items, additionalProperties }: Schema): readonly Schema[] => [
  ...Object.values(properties),
  ...(items ? [items] : []),
  ...(typeof additionalProperties === 'object' ? [additionalProperties] : []),
];

/** Not one of several ways in which a value could have been right: that none of them fits is told by itself. */
const isWhole = ({ schemaPath }: ErrorObject) => !/\/(?:anyOf|oneOf)\/\d+\//.test(schemaPath);

function wordsOf({ instancePath, keyword, params, data, message }: ErrorObject): string {
  const path = instancePath
    .slice(1)
    .replaceAll(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.');
  const at = (name: string) => (path ? `${path}.${name}` : name);
  const shown = JSON.stringify(data);
  switch (keyword) {
    case 'required':
      return `${at(params.missingProperty)}: Required value`;
    case 'additionalProperties':
      return `unknown field "${at(params.additionalProperty)}"`;
    case 'enum': {
      const supported = params.allowedValues.map((value: unknown) => JSON.stringify(value)).join(', ');
      return `${path}: Unsupported value: ${shown}: supported values: ${supported}`;
    }
    case 'type':
      return `${path}: Invalid value: ${shown}: ${path} in body must be of type ${params.type}`;
    case 'pattern':
      return `${path}: Invalid value: ${shown}: ${path} in body should match '${params.pattern}'`;
    default:
      return `${path}: Invalid value: ${shown}: ${path} in body ${message}`;
  }
}
