/** F4: a pull that failed, told in the stream of a 200. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EmulatedOllama } from '../../src/demo/ollama.ts';
import { allFaces, through } from '../support/facts.ts';
import { type Hosts, startHosts } from '../support/hosts.ts';
import { pullToTheEnd } from '../support/pulling.ts';
import { startServer } from '../support/server.ts';

const inTime = { timeout: 30_000 };
const lines = (...events: object[]) => events.map(event => `${JSON.stringify(event)}\n`).join('');
const stream = (type: string, body: string, pieceBytes?: number) =>
  ({ kind: 'answer', nth: 1, contentType: type, body, ...(pieceBytes && { pieceBytes }) }) as const;
const ndjson = 'application/x-ndjson';
const manifest = { status: 'pulling manifest' };
const missing = { error: 'pull model manifest: file does not exist' };

type Backend = 'ollama' | 'lemonade' | 'lmstudio';
type Answer = ReturnType<typeof stream>;

const cases: readonly [what: string, backend: Backend, answer: Answer | undefined, error: RegExp][] = [
  ['an error line', 'ollama', stream(ndjson, lines(manifest, missing)), /pull model manifest: file does not exist$/],
  [
    'an error line in two pieces',
    'ollama',
    stream(ndjson, lines(manifest, missing), 40),
    /pull model manifest: file does not exist$/,
  ],
  ['an end without success', 'ollama', stream(ndjson, lines(manifest)), /the stream ended without success/],
  [
    'an error event in two pieces',
    'lemonade',
    stream('text/event-stream', 'event: error\ndata: {"error":"HTTP 404 from the hub"}\n\n', 30),
    /HTTP 404 from the hub/,
  ],
  [
    'an end without the last event',
    'lemonade',
    stream(
      'text/event-stream',
      'event: progress\ndata: {"file":"a","file_index":1,"total_files":1,"bytes_downloaded":1,"bytes_total":9}\n\n',
    ),
    /ended without/,
  ],
  ['a download that says it failed', 'lmstudio', undefined, /out of disk space/],
];

const pathOf = { ollama: '/api/pull', lemonade: '/api/v1/pull', lmstudio: '/api/v1/models/download' } as const;
const modelOf = { ollama: 'small:1b', lemonade: 'Small-GGUF', lmstudio: 'acme/small' } as const;

const start = () =>
  startHosts({
    ollama: { registry: [{ name: modelOf.ollama, layers: [{ bytes: 1000 }], pullMs: 100 }] },
    lemonade: { registry: [{ name: modelOf.lemonade, files: [{ name: 'a.gguf', bytes: 1000 }], pullMs: 100 }] },
    lmstudio: {
      registry: [
        {
          name: modelOf.lmstudio,
          bytes: 1000,
          pullMs: 100,
          failure: { at: 500, error: 'out of disk space', times: 1 },
        },
      ],
    },
  });

const hostOf = (world: Hosts, backend: Backend): Pick<EmulatedOllama, 'fault' | 'models'> => world[backend];

for (const [what, backend, answer, error] of cases) {
  test(`F4: ${what} of ${backend} is a pull that failed on every face, and a later one works`, inTime, async () => {
    await using world = await start();
    await using server = await startServer({ gateway: world.gateway });
    if (answer) hostOf(world, backend).fault({ ...answer, path: pathOf[backend] });
    const model = modelOf[backend];

    const failed = await pullToTheEnd(world, server, backend, model);
    for (const face of allFaces) {
      const job = await through(face, server, 'getJob', { id: failed.id });
      assert.equal(String(job.phase).toLowerCase(), 'failed', face);
      assert.match(job.error, error, face);
      assert.ok(job.percent < 100, face);
      assert.match(await through(face, server, 'getModel', { model, backend }), /^not_found: /, face);
    }

    assert.equal((await pullToTheEnd(world, server, backend, model)).phase, 'succeeded');
    assert.equal((await through('REST', server, 'getModel', { model, backend })).name, model);
  });
}
