/**
 * Whatever is sent, nothing breaks: no crash, no answer that nobody expected, nothing of the inside told, nothing that
 * piles up. `FUZZ_SECONDS` is how long (18 when absent) and `FUZZ_SEED` begins the same sequence again.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { parseDocument } from '../../src/backends/documents/document.ts';
import { parseRecording } from '../../src/drivers/kserve/recording/parse.ts';
import { documentText } from '../support/cluster.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { usedMemory } from '../support/memory.ts';
import { rest } from '../support/rest.ts';
import { eventually, openSocket, operations, send, startServer, within } from '../support/server.ts';
import { fakeWiring, servingDriver } from '../support/serving.ts';

const seconds = Number(process.env.FUZZ_SECONDS ?? 18);
const seed = Number(process.env.FUZZ_SEED ?? 20_261_130);
const targets = 6;

/** Numbers from 0 to 1, the same for the same seed. */
function createRandom(start: number) {
  let state = start >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  return { next, below, pick };
}
type Random = ReturnType<typeof createRandom>;

const strange = [
  '',
  ' ',
  '\0',
  '\n',
  '\r\n',
  '"',
  "'",
  '\\',
  '{',
  '}',
  '[',
  ']',
  '(',
  ')',
  ':',
  ',',
  '$',
  '@',
  '!',
  '#',
  '%',
  '%00',
  '%2e%2e',
  '%ff',
  '../',
  '/',
  '//',
  '?',
  '&',
  '=',
  '...',
  'null',
  'true',
  '-1',
  '1e999',
  '9007199254740993',
  '__proto__',
  'constructor',
  'toString',
  '\u202e',
  '\ud800',
  '💥',
  'é',
  '$ref',
  '<script>',
  '{{',
  '&a',
  '*a',
  '!!js/function',
  '---\n',
  '|-\n',
  '\t',
  'fragment F on Query{...F}',
  'x'.repeat(3_000),
  '['.repeat(300),
  '{"a":'.repeat(200),
];

/** A text with a few changes: pieces gone, doubled, swapped, or strange ones put in. */
function mutated(random: Random, text: string): string {
  let out = text;
  for (let times = 1 + random.below(4); times > 0; times--) {
    const at = random.below(out.length + 1);
    const length = random.below(Math.min(20, out.length - at + 1));
    const tail = out.slice(at + length);
    const middle = [
      () => '',
      () => random.pick(strange),
      () => out.slice(at, at + length).repeat(2),
      () => random.pick(strange) + out.slice(at, at + length),
      () => String.fromCharCode(random.below(0x250)),
      () =>
        out
          .slice(at, at + length)
          .split('')
          .reverse()
          .join(''),
    ];
    out = out.slice(0, at) + random.pick(middle)() + tail;
  }
  return out.slice(0, 20_000);
}

/** Data of any shape. */
function anything(random: Random, depth = 0): unknown {
  const kind = random.below(depth > 3 ? 5 : 7);
  if (kind === 0) return null;
  if (kind === 1) return random.next() < 0.5;
  if (kind === 2) return random.pick([0, -1, 1.5, 1e308, Number.MAX_SAFE_INTEGER, 2 ** 53]);
  if (kind < 5) return random.pick([...strange, 'a:1b', 'ollama', 'kserve']);
  if (kind === 5) return Array.from({ length: random.below(4) }, () => anything(random, depth + 1));
  return Object.fromEntries(fieldsOf(random, depth));
}

const names = [
  ...new Set(operations.flatMap(({ variables }) => variables.map(({ restName }) => restName))),
  'dryRun',
  'dryrun',
  '__proto__',
  'x',
];
const fieldsOf = (random: Random, depth: number): [string, unknown][] =>
  Array.from({ length: random.below(5) }, () => [
    random.pick([...names, ...strange.slice(0, 40)]),
    anything(random, depth + 1),
  ]);

const leaks = /\.ts:\d|node_modules|\n\s+at |\/src\/|TypeError|RangeError|ReferenceError|Cannot read prop/;

const driver = fakeDriver({ models: ['a:1b'] });
const gateway = testGateway({ drivers: [driver, servingDriver()], wiring: fakeWiring() });
const server = await startServer({ gateway });
after(() => server.close());

/** Nothing that came out is of the inside, and nobody was surprised. */
function sound(what: string, sent: string, status: number, text: string): void {
  const where = `${what} (seed ${seed}): ${JSON.stringify(sent).slice(0, 2_000)} → ${status} ${text.slice(0, 500)}`;
  assert.ok(status !== 500, where);
  assert.doesNotMatch(text, leaks, where);
  const surprise = server.logged.find(line => line.includes('unexpected error'));
  assert.equal(surprise, undefined, `${where}\n${surprise}`);
  server.logged.length = 0;
}

/** Runs it again and again for its share of the time, and counts. */
async function often(name: string, once: (random: Random) => unknown): Promise<void> {
  const random = createRandom(seed + name.length);
  const began = performance.now();
  const share = (seconds * 1000) / targets;
  const repeated = async (until: number) => {
    let times = 0;
    for (; performance.now() < until || times < 20; times++) await once(random);
    return times;
  };
  // What is kept on purpose, and compiled, is there after a third of it.
  await repeated(began + share / 3);
  const { heap: warm } = await usedMemory();
  const times = await repeated(began + share);
  const { heap } = await usedMemory();
  assert.ok(heap - warm < 24, `${name}: ${times} times left ${Math.round(heap - warm)} MB behind`);
  assert.equal((await send(`${server.url}/healthz`)).status, 200, 'it is alive');
}

describe('fuzz', () => {
  test('bodies and paths of REST', () =>
    often('rest', async random => {
      const { rest: route } = random.pick(operations.filter(each => each.rest));
      const { method = 'GET', path = '' } = route ?? {};
      const filled = path.replace(/\{\w+(?:\.\.\.)?\}/g, () =>
        encodeURIComponent(random.pick(['a:1b', ...strange]).replace(/[\ud800-\udfff]/g, '')),
      );
      const query =
        random.next() < 0.5
          ? `?${random.pick(names)}=${encodeURIComponent(random.pick(['a:1b', 'true', '\0', '../', '-1']))}`
          : '';
      // What Node's own client would not send is not what this is about.
      const line = `/api/v1${random.next() < 0.3 ? mutated(random, filled) : filled}${query}`.replace(
        /[^\x21-\x7e]/g,
        '%C3',
      );
      const json = JSON.stringify(anything(random)) ?? '';
      const body =
        method === 'GET'
          ? undefined
          : random.next() < 0.5
            ? json
            : mutated(random, '{"model":"a:1b","backend":"ollama"}');
      const answer = await rest(server.url, `${method} ${line}`, {
        ...(body !== undefined && { body }),
        headers: { 'content-type': 'application/json' },
      });
      sound('rest', `${method} ${line} ${body}`, answer.status, answer.text);
    }));

  test('documents and variables of GraphQL', () =>
    often('graphql', async random => {
      const { text, type } = random.pick(operations.filter(({ type: each }) => each !== 'subscription'));
      const query = random.next() < 0.3 ? text : mutated(random, text);
      const body = JSON.stringify({
        query,
        variables: anything(random),
        operationName: random.pick([undefined, null, 'x']),
      });
      const sent = random.next() < 0.1 ? mutated(random, body) : body;
      const answer = await send(server.graphqlUrl, sent);
      sound(`graphql ${type}`, sent, answer.status, answer.text);
    }));

  test('messages of MCP', () =>
    often('mcp', async random => {
      const tools = operations.flatMap(({ tool }) => tool?.name ?? []);
      const message = {
        jsonrpc: random.pick(['2.0', '2.0', '2.0', '1.0', 2]),
        id: random.pick([1, 'x', null, -1, 1.5, undefined]),
        method: random.pick([
          'tools/call',
          'tools/call',
          'tools/call',
          'tools/list',
          'initialize',
          'notifications/cancelled',
          'x',
          '__proto__',
        ]),
        params: random.pick([{ name: random.pick(tools), arguments: anything(random) }, anything(random)]),
      };
      const text = JSON.stringify(random.next() < 0.1 ? [message, message] : message);
      const sent = random.next() < 0.2 ? mutated(random, text) : text;
      const accept = 'application/json, text/event-stream';
      const version = random.pick(['', '', '2025-06-18', '2026-07-28', 'x']);
      const answer = await send(`${server.url}/mcp`, sent, {
        headers: { accept, ...(version && { 'mcp-protocol-version': version }) },
      });
      sound('mcp', sent, answer.status, answer.text);
    }));

  test('frames of a WebSocket', () =>
    often('websocket', async random => {
      const socket = await openSocket(server.socketUrl, { init: random.next() < 0.7 });
      const heard: string[] = [];
      socket.raw.on('message', data => heard.push(String(data)));
      const sent: string[] = [];
      for (let count = 1 + random.below(5); count > 0 && socket.raw.readyState === 1; count--) {
        const query = random.pick(operations).text;
        const message = JSON.stringify({
          type: random.pick([
            'subscribe',
            'subscribe',
            'subscribe',
            'complete',
            'ping',
            'pong',
            'connection_init',
            'x',
          ]),
          id: random.pick(['1', '2', '', '__proto__', undefined]),
          payload: random.pick([{ query, variables: anything(random) }, anything(random)]),
        });
        const frame = random.next() < 0.4 ? mutated(random, message) : message;
        sent.push(frame);
        socket.send(random.next() < 0.1 ? Buffer.from(frame) : frame);
      }
      // The answer to a ping comes after what was sent before it, unless the server has hung up.
      socket.raw.ping();
      await within(Promise.race([socket.closed, new Promise(resolve => socket.raw.once('pong', resolve))]), 'an end');
      sound('websocket', sent.join('\n'), 200, heard.join('\n'));
      socket.raw.terminate();
      await within(socket.closed, 'the close');
    }));

  const kserve = [
    'apiVersion: agent-platform.giantswarm.io/v1alpha1',
    'kind: ModelBackend',
    'spec: {kind: kserve, credentials: {secretRef: {name: a, key: b}}, kserve: {target: {cluster: local, servingNamespace: x},',
    '  gpuPool: {taint: {key: a, value: b, effect: NoSchedule}, nodeSelector: {a: b}, instances: [{instanceType: x, size: l, vcpu: 4, memoryGiB: 8, gpus: 1, gpuMemoryGiB: 24, usableVcpu: 3, usableMemoryGiB: 7}]}}}',
  ].join('\n');
  const documentation = readFileSync(new URL('../../docs/recordings.md', import.meta.url), 'utf8');
  const [, recording = ''] = /```yaml\n([\s\S]*?)```/.exec(documentation) ?? [];
  for (const [what, texts, read] of [
    ['backend documents', [documentText('ollama'), kserve], parseDocument],
    ['recordings', [recording], parseRecording],
  ] as const) {
    test(what, () => {
      for (const text of texts)
        assert.ok(!('problem' in read(text)), `${JSON.stringify(read(text))} is where it begins`);
      return often(what, random => {
        const text =
          random.next() < 0.2 ? (JSON.stringify(anything(random)) ?? '') : mutated(random, random.pick(texts));
        const found: object = read(text);
        if (!('problem' in found)) return;
        assert.equal(typeof found.problem, 'string');
        sound(what, text, 200, String(found.problem));
      });
    });
  }

  test('nothing is left of it', async () => {
    await eventually(() => server.counts.members === 0, 'no subscriber is left');
    await eventually(() => gateway.jobs.store.list().every(({ phase }) => phase !== 'running'), 'every job has ended');
    assert.ok(gateway.jobs.store.list().length <= 200 + 1, 'finished jobs are bounded');
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
  });
});
