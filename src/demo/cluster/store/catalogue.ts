import { allVerbs, builtInKinds, type Kind, resourceOf } from './kinds.ts';
import { isRecord, type KubernetesObject, recordOf } from './object.ts';
import type { Store } from './store.ts';

/** The kinds that are served now: the built-in ones, and those of the CustomResourceDefinitions in the store. */
export interface Catalogue {
  kinds(): readonly Kind[];
  /** By group and plural. */
  resource(group: string, plural: string): Kind | undefined;
  /** Of an object that says it is one. */
  kind(group: string, kind: string): Kind | undefined;
  /** As `configmaps`, `modelconfigs.kagent.dev`, or by its kind where one group has it. Throws when there is none. */
  named(name: string): Kind;
}

export const definitions = 'customresourcedefinitions.apiextensions.k8s.io';

export function createCatalogue(store: Store): Catalogue {
  let version = -1;
  let served: readonly Kind[] = [];

  function kinds() {
    if (version !== store.version) {
      served = [...builtInKinds, ...store.list(definitions).map(kindOf)];
      version = store.version;
    }
    return served;
  }

  return {
    kinds,
    resource: (group, plural) => kinds().find(each => each.plural === plural && each.group === group),
    kind: (group, kind) => kinds().find(each => each.kind === kind && each.group === group),
    named(name) {
      const found = kinds().find(each => resourceOf(each) === name) ?? kinds().find(each => each.kind === name);
      if (!found) throw new Error(`no resource or kind "${name}" in the emulated cluster`);
      return found;
    },
  };
}

/** What a CustomResourceDefinition defines; it was validated when it was written. */
function kindOf(definition: KubernetesObject): Kind {
  const spec = recordOf(definition.spec);
  const names = recordOf(spec.names);
  const texts = (value: unknown) => (Array.isArray(value) ? value.map(String) : []);
  const versions = versionsOf(definition);
  const storage = versions.find(version => version.storage === true);
  const hasStatus = recordOf(storage?.subresources).status !== undefined;
  return {
    group: String(spec.group),
    versions: versions
      .filter(version => version.served === true)
      .map(version => String(version.name))
      .sort(byStability),
    storage: String(storage?.name),
    plural: String(names.plural),
    singular: String(names.singular ?? String(names.kind).toLowerCase()),
    kind: String(names.kind),
    listKind: String(names.listKind ?? `${names.kind}List`),
    shortNames: texts(names.shortNames),
    categories: texts(names.categories),
    namespaced: spec.scope === 'Namespaced',
    verbs: allVerbs,
    subresources: hasStatus ? ['status'] : [],
    counted: true,
    definition,
  };
}

export function versionsOf(definition: KubernetesObject): readonly Readonly<Record<string, unknown>>[] {
  const { versions } = recordOf(definition.spec);
  return Array.isArray(versions) ? versions.filter(isRecord) : [];
}

/** OpenAPI schema of the objects of a custom kind, as its definition has it for a version. */
export function schemaOf(kind: Kind, version: string): Readonly<Record<string, unknown>> | undefined {
  if (!kind.definition) return undefined;
  const { schema } = versionsOf(kind.definition).find(each => each.name === version) ?? {};
  const { openAPIV3Schema } = recordOf(schema);
  return isRecord(openAPIV3Schema) ? openAPIV3Schema : undefined;
}

/** `v2`, `v1`, `v1beta2`, `v1beta1`, `v1alpha1`, and whatever else by its letters. */
export function byStability(a: string, b: string): number {
  const [stageA, majorA, minorA] = stability(a);
  const [stageB, majorB, minorB] = stability(b);
  return stageB - stageA || majorB - majorA || minorB - minorA || (a < b ? -1 : 1);
}

function stability(version: string): [stage: number, major: number, minor: number] {
  const [, major, stage, minor] = /^v(\d+)(?:(alpha|beta)(\d+))?$/.exec(version) ?? [];
  if (major === undefined) return [0, 0, 0];
  return [stage === undefined ? 3 : stage === 'beta' ? 2 : 1, Number(major), Number(minor ?? 0)];
}
