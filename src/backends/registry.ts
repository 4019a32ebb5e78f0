import type { Capabilities } from '../domain.ts';
import { invalidRequest, noBackend, quoted, unsupported } from '../errors.ts';
import type { Backend } from './backend.ts';

/** The backends in order: static ones as configured, then registered ones by name. The first is the default. */
export interface Registry {
  readonly backends: readonly Backend[];
}

export function createRegistry(backends: readonly Backend[]): Registry {
  return { backends };
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

/** The backends a list is asked of: the named one, or all. Of those, the ones that can answer; none is `unsupported`. */
export function capableBackends(
  registry: Registry,
  name: string | null | undefined,
  capability?: AskedCapability,
): readonly Backend[] {
  const named = findBackend(registry, name);
  const asked = named ? [named] : registry.backends;
  if (!capability) return asked;
  const capable = asked.filter(backend => backend.driver.capabilities[capability]);
  if (capable.length === 0) throw unsupported(capabilityWords[capability](named?.name ?? names(registry)));
  return capable;
}
