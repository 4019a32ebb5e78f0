/** For every stored query and mutation: what to ask so that it answers, and what so that it refuses. */
import assert from 'node:assert/strict';
import { isFinished } from '../../src/jobs/store.ts';
import type { Operation } from '../../src/operations/load.ts';
import { callOf } from './backends.ts';
import { type Emulated, startEmulated } from './emulated.ts';
import { jobEnd, jobWhen } from './jobs.ts';
import { fakeWiring, servingDriver } from './serving.ts';

type Variables = Readonly<Record<string, unknown>>;

export interface Case {
  /** Brings the world into the state that the question is about; may give variables that are only known then. */
  prepare?(world: Emulated): Promise<Variables | undefined>;
  /** Absent for what nobody answers without Kubernetes. */
  readonly asks?: Variables;
  /** Absent for what is always answered. */
  readonly refusal?: { readonly asks: Variables; readonly code: string };
}

const unknownBackend = { asks: { backend: 'nope' }, code: 'invalid_request' };
const unknownJob = { asks: { id: '0123456789abcdef' }, code: 'not_found' };
const unknownModel = { asks: { model: 'nope:1b' }, code: 'not_found' };

/** Ends what runs, and begins a pull that goes on as long as the clock stands still. */
async function pulling(world: Emulated): Promise<Variables> {
  await ending(world);
  const { driver, gateway } = world;
  const spec = { type: 'pull', backend: 'ollama', model: 'slow:1b', key: 'slow:1b', wire: false } as const;
  const { job } = await gateway.jobs.start(callOf(), spec, async (call, report) => {
    for await (const progress of driver.pull?.(call, { model: 'slow:1b' }) ?? []) report(progress);
  });
  await jobWhen(gateway, job.id, ({ status }) => status !== undefined);
  return { id: job.id };
}

/** A pull that goes on, the one that is there if there is one. */
async function pullingStill(world: Emulated): Promise<Variables> {
  const running = world.gateway.jobs.store.list().find(job => !isFinished(job));
  return running ? { id: running.id } : pulling(world);
}

async function ending({ gateway }: Emulated): Promise<undefined> {
  for (const { id } of gateway.jobs.store.list()) {
    await gateway.jobs.cancel(callOf(), id);
    await jobEnd(gateway, id);
  }
}

async function withModel({ ollama, gateway }: Emulated): Promise<undefined> {
  if (!ollama.models().includes('gone:1b')) ollama.addModel({ name: 'gone:1b', bytes: 10, modifiedAt: new Date(0) });
  for (const backend of gateway.registry.backends) backend.changed();
}

/** The case of an operation. */
export const caseOf = (operation: Operation): Case =>
  cases[operation.name] ?? assert.fail(`test/support/cases.ts needs a case for ${operation.name}`);

const cases: Readonly<Record<string, Case>> = {
  getInfo: { asks: {} },
  listBackends: { asks: {} },
  getBackend: { asks: { backend: 'ollama' }, refusal: unknownBackend },
  listModels: { asks: {}, refusal: unknownBackend },
  getModel: { asks: { model: 'embedder' }, refusal: unknownModel },
  listLoaded: { asks: { backend: 'ollama' }, refusal: unknownBackend },
  listNodes: { asks: {}, refusal: unknownBackend },
  pullModel: {
    prepare: ending,
    asks: { model: 'slow:1b', backend: 'ollama', wire: false },
    refusal: { asks: { model: 'slow:1b', backend: 'x' }, code: 'invalid_request' },
  },
  loadModel: {
    asks: { model: 'chat:8b', keepAlive: '-1' },
    refusal: { asks: { model: 'chat:8b', keepAlive: '0s' }, code: 'invalid_request' },
  },
  unloadModel: { asks: { model: 'embedder:latest' }, refusal: unknownModel },
  deleteModel: { prepare: withModel, asks: { model: 'gone:1b', unwire: false }, refusal: unknownModel },
  planPull: {
    prepare: ending,
    asks: { model: 'slow', backend: 'ollama', wire: true },
    refusal: { asks: { model: 'slow:1b', backend: 'x' }, code: 'invalid_request' },
  },
  planLoad: {
    asks: { model: 'chat:8b', keepAlive: '-1' },
    refusal: { asks: { model: 'chat:8b', keepAlive: '0s' }, code: 'invalid_request' },
  },
  planUnload: { asks: { model: 'embedder:latest' }, refusal: unknownModel },
  planDelete: { prepare: withModel, asks: { model: 'gone:1b', unwire: true }, refusal: unknownModel },
  listJobs: { prepare: pullingStill, asks: { backend: 'ollama' }, refusal: unknownBackend },
  getJob: { prepare: pulling, asks: {}, refusal: unknownJob },
  cancelJob: { prepare: pulling, asks: {}, refusal: unknownJob },
  listPresets: { asks: {}, refusal: { asks: { backend: 'ollama' }, code: 'unsupported' } },
  searchModels: {
    asks: { query: ' qwen3 ', limit: 5 },
    refusal: { asks: { query: ' ' }, code: 'invalid_request' },
  },
  fitCheck: {
    asks: { model: 'Qwen/Qwen3-14B-AWQ', preset: 'qwen3-14b', node: 'gpu-1' },
    refusal: { asks: { preset: 'qwen3-14b', backend: 'ollama' }, code: 'unsupported' },
  },
  explainFit: {
    asks: { model: 'Qwen/Qwen3-14B-AWQ', preset: 'qwen3-14b', node: 'gpu-1' },
    refusal: { asks: { preset: 'qwen3-14b', backend: 'ollama' }, code: 'unsupported' },
  },
  wireModel: {
    asks: { model: 'chat:8b', apiKeySecret: 'key' },
    refusal: { asks: { model: 'chat:8b', apiKeyPassthrough: true, apiKeySecret: 'key' }, code: 'invalid_request' },
  },
  unwireModel: { asks: { model: 'chat:8b' }, refusal: { asks: { model: '..' }, code: 'invalid_request' } },
  addBackend: { refusal: { asks: { kind: 'lemonade', endpoint: 'http://h:1' }, code: 'unsupported' } },
  removeBackend: { refusal: { asks: { kind: 'ollama' }, code: 'conflict' } },
};

/** The world of the cases: a host with two models, one of them loaded, and one that can be pulled; and presets elsewhere. */
export async function startCaseWorld(): Promise<Emulated> {
  const world = await startEmulated({
    models: [
      {
        name: 'chat:8b',
        bytes: 5_200_000_000,
        family: 'qwen3',
        parameterSize: '8.2B',
        quantization: 'Q4_K_M',
        contextLength: 40_960,
        capabilities: ['completion', 'tools'],
        vramBytes: 4_000_000_000,
      },
      { name: 'embedder:latest', bytes: 0, capabilities: ['embedding'], vramBytes: 0 },
    ],
    registry: [{ name: 'slow:1b', layers: [{ bytes: 1000 }], pullMs: 1000 }],
    timings: { manifestMs: 1000 },
    others: [servingDriver()],
    gateway: { wiring: fakeWiring() },
  });
  world.ollama.load('chat:8b', '10m');
  return world;
}

/** A request of REST for an operation: its line and body. */
export function restRequestOf({ rest, variables }: Operation, asks: Variables): { line: string; body?: object } {
  if (!rest) throw new Error('not a route');
  const fields = new Map(
    variables.filter(({ name }) => asks[name] !== undefined).map(({ name, restName }) => [restName, asks[name]]),
  );
  if (rest.method === 'POST') return { line: `POST ${rest.path}`, body: Object.fromEntries(fields) };
  const path = rest.path.replace(/\{(\w+)(?:\.\.\.)?\}/g, (_, name: string) => {
    const value = encodeURIComponent(String(fields.get(name)));
    fields.delete(name);
    return value;
  });
  const query = new URLSearchParams([...fields].map(([name, value]) => [name, String(value)]));
  return { line: `${rest.method} ${path}${query.size > 0 ? `?${query}` : ''}` };
}

/** The arguments of a tool for an operation. */
export const toolArgumentsOf = ({ variables }: Operation, asks: Variables): object =>
  Object.fromEntries(
    variables.filter(({ name }) => asks[name] !== undefined).map(({ name, toolName }) => [toolName, asks[name]]),
  );
