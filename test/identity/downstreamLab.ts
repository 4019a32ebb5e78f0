/** The gateway as it is started with --downstream-oauth, on an emulated cluster where each person has rights of their own. */
import type { TestContext } from 'node:test';
import { pino } from 'pino';
import { serve } from '../../src/commands/serve.ts';
import { parseServe } from '../../src/config/parse.ts';
import { type ClusterOptions, type EmulatedCluster, type Rule, startCluster } from '../../src/demo/cluster.ts';
import { type EmulatedHub, startHub } from '../../src/demo/hub.ts';
import { kagentDefinition } from '../../src/demo/kagent.ts';
import { type KubeletOptions, startKubelet } from '../../src/demo/kubelet.ts';
import { type EmulatedOllama, instant, startOllama } from '../../src/demo/ollama.ts';
import { openServer } from '../../src/kubernetes/access.ts';
import { nova, worldOf } from '../drivers/kserve/driverLab.ts';
import { kagentNamespace, namespace, namespaceOf } from '../support/cluster.ts';
import { startIssuer } from '../support/issuer.ts';
import { rulesOf } from '../support/permitted.ts';
import { type Answer, eventually, openSocket, openStream, send } from '../support/server.ts';
import { bearer } from './lab.ts';

/** As whom the gateway reads backend documents, and does nothing else. */
export const gatewayUser = 'gateway';
const documents: Rule = {
  verbs: ['get', 'list', 'watch'],
  apiGroups: [''],
  resources: ['configmaps'],
  namespaces: [namespace],
};

/** What somebody needs who may do everything here. */
export const allRights = rulesOf({
  own: namespace,
  kagent: kagentNamespace,
  discovery: 'agent-platform',
  serving: 'model-serving',
  default: 'default',
});
/** Those rights without what is about a resource. */
export const rightsWithout = (resource: string) => allRights.filter(({ resources }) => !resources.includes(resource));

export interface DownstreamOptions {
  /** What each person may do. */
  readonly people?: Readonly<Record<string, readonly Rule[]>>;
  readonly flags?: readonly string[];
  /** Static ones; both kinds when absent. */
  readonly backends?: string;
  readonly more?: readonly object[];
  readonly cluster?: ClusterOptions;
  readonly kubelet?: KubeletOptions;
}

export interface DownstreamLab {
  readonly url: string;
  readonly cluster: EmulatedCluster;
  readonly ollama: EmulatedOllama;
  /** Where models come from. */
  readonly hub: EmulatedHub;
  /** Log lines so far, as text. */
  readonly logged: string[];
  as(person: string): Person;
  /** A newer token of that person, which the API server takes in place of the one that this user had. */
  renew(person: string, claims?: object, user?: string): Promise<void>;
  /** Who has asked the API server for what: `ann list pods`. Each once. */
  asked(): readonly string[];
}

/** Somebody with their token. */
export interface Person {
  readonly headers: { readonly authorization: string };
  rest(route: string, body?: unknown): Promise<Answer>;
  graphql(query: string, variables?: object): Promise<Answer>;
  tool(name: string, input?: object): Promise<{ readonly text: string; readonly isError: boolean }>;
  stream(query: string): ReturnType<typeof openStream>;
  socket(): ReturnType<typeof openSocket>;
}

export async function startDownstream(t: TestContext, options: DownstreamOptions = {}): Promise<DownstreamLab> {
  const { people = { ann: allRights, ben: allRights }, flags = [], more = [], backends = 'kserve,ollama' } = options;
  const issuer = await startIssuer();
  const tokens = new Map<string, string>();
  const users = Object.entries(people).map(([name, rules]) => [name, { rules }] as const);
  const cluster = await startCluster({
    ...options.cluster,
    objects: [...[namespace, kagentNamespace, 'default'].map(namespaceOf), kagentDefinition(), ...worldOf({ more })],
    users: { [gatewayUser]: { rules: [documents] }, ...Object.fromEntries(users) },
  });
  const ollama = await startOllama({ timings: instant, models: [{ name: 'qwen3:0.6b' }] });
  const hub = await startHub({ models: [{ id: nova, files: [{ path: 'model.safetensors', bytes: 1_000_000 }] }] });
  const kubelet = startKubelet(cluster, { volumes: { 'pv-hf-cache': [] }, ...options.kubelet });

  async function renew(person: string, claims: object = {}, user = person) {
    const token = await issuer.token({ sub: person, email: `${person}@example.com`, jti: `${tokens.size}`, ...claims });
    tokens.set(person, token);
    cluster.setToken(user, token);
  }
  for (const person of Object.keys(people)) await renew(person);

  const { settings } = parseServe(
    [
      ...['--listen', '127.0.0.1:0', '--backends', backends, '--ollama-endpoint', ollama.url],
      ...['--namespace', namespace, '--kagent-namespace', kagentNamespace],
      ...['--kserve-discovery-namespace', 'agent-platform', '--kserve-hf-endpoint', hub.url],
      ...['--enable-oauth', '--downstream-oauth', '--oauth-base-url', 'https://models.example.com'],
      ...['--dex-issuer-url', issuer.url, '--dex-client-id', 'platform', '--allow-private-oauth-urls'],
      ...flags,
    ],
    {},
    { buildable: ['kserve', 'ollama'] },
  );
  const logged: string[] = [];
  const log = pino({ level: 'debug' }, { write: line => logged.push(line) });
  const access = {
    ...openServer(cluster.url),
    identity: async () => ({ headers: { authorization: `Bearer ${cluster.tokenOf(gatewayUser)}` } }),
  };
  const served = await serve(settings, log, {}, access);
  const scans = () =>
    cluster.list('jobs.batch', 'model-serving').filter(({ metadata }) => /^mm-scan/.test(metadata.name));
  t.after(async () => {
    // What looks into the cache outlives who asked for it; nothing of it is to outlive the cluster.
    await eventually(() => scans().length === 0, 'the end of what looks into the cache');
    await served.stop();
    kubelet.stop();
    await Promise.all([cluster.close(), ollama.close(), hub.close(), issuer[Symbol.asyncDispose]()]);
  });
  const { url } = served;
  while ((await send(`${url}/readyz`)).status !== 200);

  return {
    url,
    cluster,
    ollama,
    hub,
    logged,
    renew,
    as(person) {
      const headers = bearer(tokens.get(person) ?? '');
      return {
        headers,
        rest(route, body) {
          const [method = '', path] = route.split(' ');
          return send(`${url}/api/v1/${path}`, body, { method, headers });
        },
        graphql: (query, variables = {}) => send(`${url}/graphql`, { query, variables }, { headers }),
        async tool(name, input = {}) {
          const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } };
          const accept = 'application/json, text/event-stream';
          const answer = await send(`${url}/mcp`, message, {
            headers: { ...headers, accept, 'content-type': 'application/json' },
          });
          const { content, isError = false } = answer.json.result;
          return { text: content[0].text, isError };
        },
        stream: query => openStream(`${url}/graphql`, { query }, headers),
        socket: () =>
          openSocket(`${url.replace('http', 'ws')}/graphql`, { payload: { Authorization: headers.authorization } }),
      };
    },
    asked: () => [
      ...new Set(cluster.requests.map(({ user, verb, resource }) => `${user || 'nobody'} ${verb} ${resource}`)),
    ],
  };
}
