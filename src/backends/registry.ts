import type { BackendKind, Capabilities } from '../domain.ts';
import { invalidRequest, noBackend, quoted, unsupported } from '../errors.ts';
import { createCell } from '../live/cell.ts';
import type { Source } from '../live/source.ts';
import type { Backend } from './backend.ts';

/** A document as it was last read. */
export interface FiledDocument {
  /** Name of the ConfigMap it is in. */
  readonly configMap: string;
  readonly text: string | undefined;
  /** Why it registers no backend. */
  readonly error?: string | undefined;
}

/** What is registered at one moment: backends and what is wrong with documents change in one step. */
export interface Registered {
  readonly backends: readonly Backend[];
  /** By the name of their ConfigMaps; undefined until they were read. */
  readonly documents?: readonly FiledDocument[];
}

/** The backends in order: static ones as configured, then registered ones by name. The first is the default. */
export interface Registry {
  /** As of now. */
  readonly backends: readonly Backend[];
  readonly registered: Source<Registered>;
  /** Whether a kind is configured statically: no document can have it then. */
  isStatic(kind: string): boolean;
}

/** Where backends come and go. */
export interface OpenRegistry extends Registry {
  /** Replaces everything that documents registered. */
  register(backends: readonly Backend[], documents: readonly FiledDocument[]): void;
}

export function createRegistry(configured: readonly Backend[]): OpenRegistry {
  const cell = createCell<Registered>({ backends: configured });
  const kinds = new Set<BackendKind>(
    configured.filter(({ origin }) => origin === 'static').map(({ driver }) => driver.kind),
  );
  let backends = configured;
  return {
    get backends() {
      return backends;
    },
    registered: cell,
    isStatic: kind => kinds.has(kind as BackendKind),
    register(registered, documents) {
      const byName = registered.toSorted((a, b) => (a.name < b.name ? -1 : 1));
      backends = [...configured, ...byName];
      cell.set({ backends, documents });
    },
  };
}

/** How refusals name what a backend cannot do; clients match on these words. */
const capabilityWords = {
  pull: name => `pull on ${name}`,
  delete: name => `delete on ${name}`,
  load: name => `load on ${name}`,
  unload: name => `unload on ${name}`,
  loadedModels: () => 'listing loaded models',
  nodeInventory: () => 'node inventory',
  presets: () => 'presets',
  fitCheck: () => 'fit check',
  search: () => 'search',
} satisfies Partial<Record<keyof Capabilities, (name: string) => string>>;

export type AskedCapability = keyof typeof capabilityWords;

const names = (registry: Registry) => registry.backends.map(backend => backend.name).join(', ');

/** What a caller wrote, without white space; undefined when that is nothing. */
export const given = (text: string | null | undefined) => text?.trim() || undefined;

/** The backend of that name, if it is there. */
export const backendNamed = ({ backends }: Registry, name: string): Backend | undefined =>
  backends.find(backend => backend.name === name);

/** The backend a caller named, or undefined when none was named. Throws `no_backend` when there is none at all. */
export function findBackend(registry: Registry, name: string | null | undefined): Backend | undefined {
  const wanted = given(name);
  if (registry.backends.length === 0) throw noBackend();
  if (!wanted) return undefined;
  const found = backendNamed(registry, wanted);
  if (!found) {
    throw invalidRequest(`unknown backend ${quoted(wanted)} (configured: ${names(registry)})`);
  }
  return found;
}

/** The backend a caller named, or the only one there is; undefined when that leaves several. */
export function namedOrOnly(registry: Registry, name: string | null | undefined): Backend | undefined {
  const named = findBackend(registry, name);
  return named ?? (registry.backends.length === 1 ? registry.backends[0] : undefined);
}

/** The backend a caller named, else the default one. */
export function backendOrDefault(registry: Registry, name: string | null | undefined): Backend {
  // findBackend has thrown when there is no first.
  return findBackend(registry, name) ?? (registry.backends[0] as Backend);
}

export function requireCapability(backend: Backend, capability: AskedCapability): void {
  if (!backend.driver.capabilities[capability]) throw unsupported(capabilityWords[capability](backend.name));
}

/** Whether a backend can answer a list that wants a capability, or any list. */
export const canAnswer = (backend: Backend, capability: AskedCapability | undefined) =>
  capability === undefined || backend.driver.capabilities[capability];

/** The backends a list is asked of: the named one, or all. Of those, the ones that can answer; none is `unsupported`. */
export function capableBackends(
  registry: Registry,
  name: string | null | undefined,
  capability?: AskedCapability,
): readonly Backend[] {
  const named = findBackend(registry, name);
  const asked = named ? [named] : registry.backends;
  const capable = asked.filter(backend => canAnswer(backend, capability));
  if (capability && capable.length === 0)
    throw unsupported(capabilityWords[capability](named?.name ?? names(registry)));
  return capable;
}
