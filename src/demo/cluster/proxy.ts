import { once } from 'node:events';
import { type IncomingMessage, request as send } from 'node:http';
import type { Reply } from '../host/reply.ts';
import type { ApiRequest, Route } from './routes.ts';
import { notFound, StatusError } from './status.ts';
import { keyOf } from './store/store.ts';

/** What stands behind the services, as far as the API server passes requests on to it. */
export interface Proxy {
  /** Where a service is; one of its ports when `service` is `name:port`. A URL without a path. */
  set(namespace: string, service: string, url: string): void;
  /** `services/proxy` */
  readonly route: Route;
}

export function createProxy(): Proxy {
  const targets = new Map<string, string>();
  return {
    set: (namespace, service, url) => void targets.set(keyOf(service, namespace), url),

    async route(request, { store, catalogue }) {
      const { name, port } = partsOf(request.name);
      if (!store.get('services', keyOf(name, request.namespace))) throw notFound(catalogue.named('services'), name);
      const target =
        targets.get(keyOf(`${name}:${port}`, request.namespace)) ?? targets.get(keyOf(name, request.namespace));
      if (target === undefined) throw unavailable(`no endpoints available for service "${name}"`);
      return await passOn(request, target);
    },
  };
}

/** `name`, `name:port`, `https:name:port` */
function partsOf(text: string): { readonly name: string; readonly port: string } {
  const [first = '', second, third] = text.split(':');
  return third === undefined ? { name: first, port: second ?? '' } : { name: second ?? '', port: third };
}

const unavailable = (message: string) => new StatusError(503, 'ServiceUnavailable', message);

/** Of one connection, and so never passed on; nor is what the user showed to the API server. */
const ownHeaders = [
  'authorization',
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
];

const foreign = (headers: IncomingMessage['headers']) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ownHeaders.includes(name)));

async function passOn({ method, path, query, headers, raw, gone }: ApiRequest, target: string): Promise<Reply> {
  // /api/v1/namespaces/<namespace>/services/<name>/proxy/…, as it was encoded.
  const rest = path.split('/').slice(8).join('/');
  const search = query.size > 0 ? `?${query}` : '';
  const passed = send(`${target}/${rest}${search}`, { method, headers: foreign(headers), signal: gone });
  passed.end(raw);
  try {
    const [answer] = (await once(passed, 'response')) as [IncomingMessage];
    return {
      status: answer.statusCode ?? 502,
      headers: foreign(answer.headers) as Record<string, string>,
      body: answer,
    };
  } catch (error) {
    throw unavailable(`error trying to reach service: ${(error as Error).message}`);
  }
}
