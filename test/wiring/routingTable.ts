/** Another place that agents could know models from: the table of a proxy before them, one route for each model. */
import type { ModelConfigRef, WirableModel } from '../../src/domain.ts';
import { conflict, invalidRequest } from '../../src/errors.ts';
import { createCell } from '../../src/live/cell.ts';
import type { ApiKey, Known, WiringState, WiringTarget } from '../../src/wiring/wiring.ts';

interface Route {
  readonly upstream: string;
  readonly model: string;
  /** `Bearer $secret/key`, the caller's own, or none. */
  readonly authorization: string | undefined;
  /** Whose route it is; absent where a person wrote it. */
  readonly of?: { readonly backend: string; readonly reference: string };
}

export interface RoutingTable extends WiringTarget {
  /** What a person writes into the table. */
  write(name: string, route: Route): void;
}

export function routingTable(): RoutingTable {
  const routes = new Map<string, Route>();
  const known = createCell<Known>(knownOf(routes));
  const changed = () => known.set(knownOf(routes));
  const ours = () => [...routes.values()].flatMap(route => route.of ?? []);
  return {
    info: { namespace: 'proxy', autoWire: true },
    state: createCell<WiringState>({ available: true }),
    known,
    async wire(_call, model, apiKey) {
      const name = nameOf(model.backend, model.reference);
      const taken = routes.get(name);
      if (taken && !taken.of) throw conflict(`the route ${name} exists but is not managed by model-manager`);
      const route = routeOf(model, apiKey);
      routes.set(name, route);
      changed();
      return refOf(name, route);
    },
    // Its routes are no objects.
    async plan(_call, { backend, reference }) {
      const name = nameOf(backend, reference);
      const there = routes.get(name);
      return { manifests: [], deletes: [], ...(there && { known: refOf(name, there) }) };
    },
    async planUnwire(_call, backend, reference) {
      const name = nameOf(backend, reference);
      return routes.get(name)?.of ? [{ kind: 'Route', name }] : [];
    },
    mayWire: async () => ({ allowed: true }),
    mayUnwire: async () => ({ allowed: true }),
    async unwire(_call, backend, reference) {
      const name = nameOf(backend, reference);
      if (routes.get(name)?.of) routes.delete(name);
      changed();
    },
    wiredOn: async (_call, backend) => ours().flatMap(each => (each.backend === backend ? [each.reference] : [])),
    backendsOf: async (_call, reference) =>
      ours().flatMap(each => (each.reference === reference ? [each.backend] : [])),
    write(name, route) {
      routes.set(name, route);
      changed();
    },
  };
}

const nameOf = (backend: string, reference: string) => `${backend}/${reference}`;

function routeOf({ backend, reference, access }: WirableModel, apiKey: ApiKey | undefined): Route {
  const passthrough = apiKey?.passthrough || access.key === 'passthrough';
  if (passthrough && apiKey?.secret) throw invalidRequest('apiKeySecret cannot be used where tokens are passed on');
  const authorization = apiKey?.secret ? `Bearer $${apiKey.secret.name}` : passthrough ? 'Bearer $caller' : undefined;
  return { upstream: access.url, model: access.model, authorization, of: { backend, reference } };
}

const refOf = (name: string, { upstream, model, authorization, of }: Route): ModelConfigRef => ({
  name,
  namespace: 'proxy',
  model: of?.reference ?? model,
  ready: true,
  managed: of !== undefined,
  providerModel: model,
  endpoint: upstream,
  ...(authorization === 'Bearer $caller' && { apiKeyPassthrough: true }),
  ...(authorization?.startsWith('Bearer $') &&
    authorization !== 'Bearer $caller' && {
      apiKeySecret: authorization.slice('Bearer $'.length),
    }),
  backend: of?.backend,
});

function knownOf(routes: ReadonlyMap<string, Route>): Known {
  const refs = new Map([...routes].map(([name, route]) => [name, refOf(name, route)]));
  return {
    refs: [...refs.values()],
    of({ backend, reference, access }) {
      const own = refs.get(nameOf(backend, reference));
      if (own?.managed) return own;
      if (!access.shared) return undefined;
      const host = new URL(access.url).host;
      return [...refs.values()].find(
        ref => !ref.managed && ref.providerModel === access.model && new URL(ref.endpoint ?? '').host === host,
      );
    },
  };
}
