/** An emulated API server with a clock of its own, and clients that show what it says. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Status } from '../../../src/demo/cluster/status.ts';
import {
  type ClusterOptions,
  type EmulatedCluster,
  type KubernetesObject,
  manualClock,
  startCluster,
} from '../../../src/demo/cluster.ts';
import { createInbox } from '../../support/server.ts';

export const configMaps = '/api/v1/namespaces/default/configmaps';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed document; the text when it is none. */
  readonly body: KubernetesObject & Status & { readonly items: readonly KubernetesObject[] };
}

export interface Lab {
  readonly cluster: EmulatedCluster;
  readonly clock: ReturnType<typeof manualClock>;
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  watch(path: string, headers?: Record<string, string>): Promise<Watching>;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: KubernetesObject & Status;
}

/** An open watch. */
export interface Watching {
  readonly status: number;
  next(): Promise<WatchEvent>;
  /** `ADDED a`, `MODIFIED a`, for so many events. */
  names(count: number): Promise<readonly string[]>;
  /** What came and was not taken. */
  readonly unread: readonly WatchEvent[];
  /** How it ended. */
  readonly ended: Promise<'in order' | 'broken'>;
}

export async function lab(t: TestContext, options: ClusterOptions = {}): Promise<Lab> {
  const clock = manualClock();
  const cluster = await startCluster({ clock, ...options });
  t.after(() => cluster.close());
  return {
    cluster,
    clock,
    async ask(method, path, body, headers = {}) {
      const answer = await fetch(cluster.url + path, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        signal: AbortSignal.timeout(5_000),
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      const isJson = answer.headers.get('content-type')?.startsWith('application/json');
      return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
    },
    watch: (path, headers) => watch(t, cluster.url + path, headers),
  };
}

async function watch(t: TestContext, url: string, headers: Record<string, string> = {}): Promise<Watching> {
  const leaving = new AbortController();
  t.after(() => leaving.abort());
  const signal = AbortSignal.any([leaving.signal, AbortSignal.timeout(30_000)]);
  const answer = await fetch(url, { headers, signal });
  const inbox = createInbox<WatchEvent>();
  const next = () => inbox.next('the next event of the watch');
  const ended = read(answer, inbox.push);
  return {
    status: answer.status,
    next,
    async names(count) {
      const names = [];
      for (let taken = 0; taken < count; taken++) {
        const { type, object } = await next();
        names.push(`${type} ${object.metadata.name}`);
      }
      return names;
    },
    unread: inbox.items,
    ended,
  };
}

async function read(answer: Awaited<ReturnType<typeof fetch>>, push: (event: WatchEvent) => void) {
  assert.ok(answer.body);
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for await (const chunk of answer.body) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
      rest = lines.pop() as string;
      for (const line of lines) push(JSON.parse(line));
    }
    return 'in order';
  } catch {
    return 'broken';
  }
}

export const configMap = (name: string, data: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', ...metadata },
  data,
});

export const namespace = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

/** A custom kind `Widget` of `x.dev`, by default with `status` as a subresource, in `v1` and in an older version. */
export const widgets = (version: object = { subresources: { status: {} } }, spec: object = {}) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.x.dev' },
  spec: {
    group: 'x.dev',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'] },
    versions: [
      { name: 'v1beta1', served: true, storage: false, ...version },
      { name: 'v1', served: true, storage: true, ...version },
    ],
    ...spec,
  },
});

export const widget = (name: string, fields: object = {}, metadata: object = {}) => ({
  apiVersion: 'x.dev/v1',
  kind: 'Widget',
  metadata: { name, namespace: 'default', ...metadata },
  ...fields,
});
