/** A gateway over backends that exist in memory only, and do what a test tells them. */
import { type Logger, pino } from 'pino';
import { type BackendOrigin, createBackend } from '../../src/backends/backend.ts';
import type { Documents } from '../../src/backends/documents/registration.ts';
import { createRegistry, type OpenRegistry } from '../../src/backends/registry.ts';
import type { Call } from '../../src/call.ts';
import type {
  BackendKind,
  BackendStatus,
  Capabilities,
  LoadedModel,
  Loading,
  Model,
  NodeInfo,
  Preset,
  SearchResult,
  Target,
} from '../../src/domain.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { modelNotFound } from '../../src/errors.ts';
import { createMemoryStore } from '../../src/jobs/memory.ts';
import { createJobs } from '../../src/jobs/runner.ts';
import type { Build, Gateway } from '../../src/resolvers/builder.ts';
import type { WiringTarget } from '../../src/wiring/wiring.ts';

export const silent = pino({ level: 'silent' });

export const testBuild: Build = { version: '1.2.3', commit: 'abc1234', built: '2026-01-02T03:04:05Z' };

/** The methods of a driver that a test can replace. */
type Scripted = Pick<
  Required<Driver>,
  | 'describe'
  | 'models'
  | 'loaded'
  | 'pull'
  | 'load'
  | 'unload'
  | 'remove'
  | 'nodes'
  | 'presets'
  | 'search'
  | 'checkFit'
  | 'explain'
>;

export interface FakeDriver extends Driver {
  /** What a method does from now on instead of its own; delete the entry to have that back. */
  readonly script: Partial<Scripted>;
  /** What was asked of it, in order: `models`, `load qwen3:8b`. */
  readonly asked: string[];
  /** What it has; methods read and change it. */
  readonly world: {
    models: Model[];
    loaded: LoadedModel[];
    nodes: NodeInfo[];
    status: BackendStatus;
    presets: Preset[];
    /** What every search finds. */
    hub: SearchResult[];
  };
}

export interface FakeDriverOptions {
  readonly name?: string;
  readonly kind?: BackendKind;
  readonly target?: Target;
  readonly capabilities?: Partial<Capabilities>;
  readonly loading?: Partial<Loading>;
  /** Names, or whole models; `backend` is filled in. */
  readonly models?: readonly (string | Omit<Model, 'backend'>)[];
}

const everything: Capabilities = {
  pull: true,
  pullProgress: true,
  delete: true,
  load: true,
  unload: true,
  loadedModels: true,
  nodeInventory: true,
  presets: false,
  fitCheck: false,
  search: false,
};

/** A driver over a few models in memory: it answers at once, and loads, unloads, pulls and removes for real. */
export function fakeDriver({
  name = 'ollama',
  kind = 'ollama',
  target,
  capabilities,
  loading,
  models = [],
}: FakeDriverOptions = {}): FakeDriver {
  const world: FakeDriver['world'] = {
    models: models.map(model => ({ ...(typeof model === 'string' ? { name: model } : model), backend: name })),
    loaded: [],
    nodes: [{ backend: name, name: `${name}-host`, ready: true, eligible: true, gpuCount: 0, reservedBytes: 0 }],
    status: { healthy: true, version: '0.0.1' },
    presets: [],
    hub: [],
  };
  const script: Partial<Scripted> = {};
  const asked: string[] = [];

  /** The method of that name: the scripted one when there is one, else its own. */
  function method<M extends keyof Scripted>(key: M, own: Scripted[M]): Scripted[M] {
    const run = (
      call: Call,
      request?: { readonly model?: string; readonly name?: string; readonly query?: string; readonly preset?: string },
    ) => {
      const target = request?.model ?? request?.name ?? request?.query ?? request?.preset;
      asked.push(target === undefined ? key : `${key} ${target}`);
      const chosen = (script[key] ?? own) as (...args: unknown[]) => unknown;
      return chosen(call, request);
    };
    return run as Scripted[M];
  }

  return {
    kind,
    name,
    ...(target && { target }),
    capabilities: { ...everything, ...capabilities },
    loading: { onDemand: true, idleEviction: true, keepAliveScope: 'request', ...loading },
    endpoint: `http://${name}.invalid:11434`,
    agentEndpoint: `http://${name}.invalid:11434`,
    script,
    asked,
    world,
    canonical: reference => reference.trim(),
    find: (listed, reference) => listed.find(model => model.name === reference.trim()),
    agentAccess: model => ({ protocol: 'ollama', url: `http://${name}.invalid:11434`, model: model.name, key: 'none' }),

    describe: method('describe', async () => world.status),
    models: method('models', async () => [...world.models]),
    loaded: method('loaded', async () => [...world.loaded]),
    nodes: method('nodes', async () => [...world.nodes]),
    presets: method('presets', async () => [...world.presets]),
    search: method('search', async (_call, { limit }) => world.hub.slice(0, limit)),
    checkFit: method('checkFit', async (_call, { model = '', preset, node }) => ({
      backend: name,
      model: model || (world.presets.find(each => each.name === preset)?.model ?? ''),
      fits: true,
      tokenConfigured: false,
      ...(preset !== undefined && { preset }),
      ...(node !== undefined && { node }),
    })),
    explain: method('explain', async (_call, { model = '', preset, node = `${name}-host` }) => ({
      backend: name,
      model: model || (world.presets.find(each => each.name === preset)?.model ?? ''),
      ...(preset !== undefined && { preset }),
      obstacles: [{ code: 'gated', text: 'the repository is gated', change: 'give the backend a token' }],
      nodes: [
        {
          node,
          eligible: false,
          obstacles: [{ code: 'not-ready', text: 'not ready', change: 'its Ready condition turns True' }],
        },
      ],
      sizes: [{ instanceType: 'g6.xlarge', obstacles: [] }],
    })),
    pull: method('pull', async function* (_call, { model }) {
      yield { status: 'downloading', bytesCompleted: 50, bytesTotal: 100 };
      world.models = [...world.models.filter(each => each.name !== model), { backend: name, name: model }];
      yield { status: 'success', bytesCompleted: 100, bytesTotal: 100 };
    }),
    load: method('load', async (_call, { model }) => {
      if (!world.models.some(each => each.name === model)) throw modelNotFound(`${model} is not on ${name}`);
      world.loaded = [...world.loaded.filter(each => each.name !== model), { backend: name, name: model }];
    }),
    unload: method('unload', async (_call, model) => {
      world.loaded = world.loaded.filter(each => each.name !== model.name);
    }),
    remove: method('remove', async (_call, model) => {
      world.loaded = world.loaded.filter(each => each.name !== model.name);
      world.models = world.models.filter(each => each.name !== model.name);
    }),
  };
}

export interface Hang {
  /** To be put into a script: never answers, and ends when the call's signal aborts, as every driver must. */
  answer(call: Call): Promise<never>;
  /** Resolves when somebody waits for it. */
  readonly reached: Promise<void>;
  /** Resolves when the signal of the one who waits aborts. */
  readonly aborted: Promise<void>;
}

/** A backend that hangs, as a method for a driver's script. */
export function hang(): Hang {
  const reached = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    aborted: aborted.promise,
    answer: ({ signal }) =>
      new Promise((_, reject) => {
        const onAbort = () => {
          aborted.resolve();
          reject(signal.reason);
        };
        if (signal.aborted) onAbort();
        signal.addEventListener('abort', onAbort, { once: true });
        reached.resolve();
      }),
  };
}

export interface TestGatewayOptions {
  readonly drivers?: readonly Driver[];
  readonly origin?: BackendOrigin;
  /** Names of the tools that `info` lists. */
  readonly tools?: readonly string[];
  readonly log?: Logger;
  readonly now?: () => number;
  readonly wiring?: WiringTarget;
  readonly wiringOff?: string;
  readonly documents?: Documents;
}

/** A gateway over these drivers; over one empty Ollama when none are given. */
export function testGateway({
  drivers = [fakeDriver()],
  origin = 'static',
  tools = [],
  log = silent,
  now,
  wiring,
  wiringOff,
  documents,
}: TestGatewayOptions = {}): Gateway & { readonly registry: OpenRegistry } {
  const store = createMemoryStore({ retentionMs: 60_000, ...(now && { now }) });
  return {
    registry: createRegistry(drivers.map(driver => createBackend(driver, origin, log, { known: wiring?.known }))),
    jobs: createJobs({ store, log, now }),
    defaultKeepAlive: '5m',
    ...(wiring && { wiring }),
    ...(wiringOff && { wiringOff }),
    ...(documents && { documents }),
    build: testBuild,
    tools,
  };
}
