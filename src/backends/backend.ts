import type { Logger } from 'pino';
import { type Call, type Caller, createCall } from '../call.ts';
import {
  type BackendStatus,
  type LoadedModel,
  type Model,
  modelKey,
  type NodeInfo,
  type Preset,
  type WirableModel,
  type WiringResult,
} from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import { asGatewayError, backendError, GatewayError, isTimeout, messageOf, timedOut } from '../errors.ts';
import { createCell } from '../live/cell.ts';
import { derive } from '../live/derive.ts';
import type { Rows } from '../live/events.ts';
import { type PolledSource, poll } from '../live/poll.ts';
import { keepRows, keepValue } from '../live/rows.ts';
import { type Observation, type Source, unlessAborted } from '../live/source.ts';
import { steady } from '../live/steady.ts';
import type { Known } from '../wiring/wiring.ts';
import { createCircuit } from './circuit.ts';
import { patienceMs } from './patience.ts';

/** Where a backend was named: in the flags, or in a document by a person or by the cluster manager. */
export type BackendOrigin = 'static' | 'person' | 'cluster-manager';

/** One registered backend: its driver, and everything observed of it. */
export interface Backend {
  readonly name: string;
  readonly origin: BackendOrigin;
  readonly driver: Driver;
  /** Whether all callers see the same of it; else it is worked with as one of them. */
  readonly isEverybodys: boolean;
  readonly status: Source<BackendStatus>;
  /** Models, each with what runs of it. Without the running part when that cannot be read. */
  readonly models: Source<Rows<Model>>;
  readonly loaded: Source<Rows<LoadedModel>>;
  readonly nodes: Source<Rows<NodeInfo>>;
  readonly presets: Source<Rows<Preset>>;
  /** Loads under way, by model: a second request for the same joins the first. */
  readonly loads: Map<string, Promise<void>>;
  /** References being pulled. */
  readonly pulls: Set<string>;
  /** Wirings that reads of its loaded models began, and those that failed not long ago: `until` when, in ms of the clock. */
  readonly wirings: Map<string, { readonly result: Promise<WiringResult>; until: number }>;
  /** Something was done to it: what was seen before is outdated. */
  changed(): void;
  /** The same backend as one person sees it, with what they may know of agents. */
  as(caller: Caller, known: Source<Known> | undefined): Backend;
}

/** A loaded list moves by itself: models expire and are evicted, loads finish. Look again after this, in ms. */
const loadedMovesInMs = 2_000;

/** Who watches is told of health no more often than this, in ms, however often others ask: one that flaps is no news. */
const healthMs = 5_000;

/** A look ends after this, in ms, whatever the driver does: before the ten seconds that a request has are over. */
export const usualLookMs = 8_500;

/** At what is busy for us and was seen before, already after this, in ms: before those who wait for its answer lose patience. */
const busyLookMs = patienceMs * 0.75;

interface BackendOptions {
  readonly lookMs?: number;
  /** What agents know of models. */
  readonly known?: Source<Known> | undefined;
  /** As whom it is looked at; the gateway itself when absent. */
  readonly caller?: Caller | undefined;
  /** Makes the driver of one person; absent where everybody has the same. */
  readonly driverAs?: ((caller: Caller) => Driver) | undefined;
}

/** Without wiring. */
const nothingKnown = createCell<Known>({ refs: [], of: () => undefined });

export function createBackend(
  driver: Driver,
  origin: BackendOrigin,
  log: Logger,
  options: BackendOptions = {},
): Backend {
  const { lookMs = usualLookMs, known, caller, driverAs } = options;
  const { name } = driver;
  const loads = new Map<string, Promise<void>>();
  const pulls = new Set<string>();
  const isBusy = () => loads.size + pulls.size > 0;
  // Some servers answer nobody while they load or download for us.
  const excuses = (error: GatewayError) => isTimeout(error) && isBusy();
  const circuit = createCircuit({ onRecovery: outdate, excuses });
  const own = { log, ...(caller && { caller }) };
  const callFor = (signal: AbortSignal, asking?: Call) => createCall({ ...own, signal, span: asking?.span });
  const polled: PolledSource<unknown>[] = [];

  function observe<T>(what: string, options: Omit<Parameters<typeof poll<T>>[0], 'callFor'>): PolledSource<T> {
    let failing: string | undefined;
    const source: PolledSource<T> = poll<T>({
      ...options,
      callFor,
      excuses,
      async look(call) {
        const timeoutMs = isBusy() && source.current?.value !== undefined ? Math.min(busyLookMs, lookMs) : lookMs;
        const { signal, requestId, span } = call;
        const bounded = createCall({ ...own, signal, requestId, span, timeoutMs });
        try {
          const seen = await circuit.guard(() => options.look(bounded), call.signal, source.current?.error);
          if (failing !== undefined) log.info({ backend: name }, `${what} can be read again`);
          failing = undefined;
          return seen;
        } catch (thrown) {
          const error = isTimeUp(thrown) ? asGatewayError(thrown, call.requestId) : thrown;
          if (!call.signal.aborted && failing !== messageOf(error)) {
            failing = messageOf(error);
            // Nobody expects anything else than a GatewayError: its stack says where to look.
            if (error instanceof GatewayError) log.warn({ backend: name, error: failing }, `cannot read ${what}`);
            else log.error({ backend: name, err: error }, `cannot read ${what}`);
          }
          throw error;
        }
      },
    });
    polled.push(source);
    return source;
  }

  function outdate() {
    for (const source of polled) source.invalidate();
  }

  const { observed } = driver;
  const library =
    observed?.models ??
    observe<readonly Model[]>('models', {
      look: call => driver.models(call),
      merge: keepRows(modelKey),
    });
  const memory =
    observed?.loaded ??
    observe<readonly LoadedModel[]>('loaded models', {
      look: async call => (await driver.loaded?.(call)) ?? [],
      merge: keepRows(loadedKey),
      movesIn: models => (models.length > 0 ? loadedMovesInMs : undefined),
    });
  const machines =
    observed?.nodes ??
    observe<readonly NodeInfo[]>('nodes', {
      look: async call => (await driver.nodes?.(call)) ?? [],
      merge: keepRows(node => node.name),
    });
  const catalog =
    observed?.presets ??
    observe<readonly Preset[]>('presets', {
      look: async call => (await driver.presets?.(call)) ?? [],
      merge: keepRows(preset => preset.name),
    });

  const health =
    observed?.status ??
    observe<BackendStatus>('health', {
      activeMs: healthMs,
      async look(call) {
        const status = await driver.describe(call);
        if (!status.healthy) throw (status.timedOut ? timedOut : backendError)(status.message ?? 'not healthy');
        return status;
      },
      merge: keepValue,
    });

  const everybodys = {
    name,
    origin,
    driver,
    isEverybodys: caller === undefined,
    status: steady(health, healthMs),
    nodes: derive<[readonly NodeInfo[]], Rows<NodeInfo>>([machines], ([seen]) => rowsOf(name, seen)),
    presets: derive<[readonly Preset[]], Rows<Preset>>([catalog], ([seen]) => rowsOf(name, seen)),
    loads,
    pulls,
    changed() {
      circuit.retry();
      outdate();
    },
  };

  /** With what is known of agents to those who look. */
  const knowing = (known: Source<Known> | undefined): Backend => ({
    ...everybodys,
    ...joinedWith(driver, library, memory, known ?? nothingKnown),
    wirings: new Map(),
    as: (caller, known) =>
      driverAs ? createBackend(driverAs(caller), origin, log, { ...options, caller, known }) : knowing(known),
  });
  return knowing(known);
}

/** What there is and what runs of it, in one. */
function joinedWith(
  driver: Driver,
  library: Source<readonly Model[]>,
  memory: Source<readonly LoadedModel[]>,
  known: Source<Known>,
): Pick<Backend, 'models' | 'loaded'> {
  const { name } = driver;
  return {
    models: derive<[readonly Model[], readonly LoadedModel[], Known], Rows<Model>>(
      [library, memory, known],
      ([listed, loaded, agents], previous) => {
        const { rows, errors } = rowsOf(name, listed);
        const joined = withAgents(driver, join(rows, loaded.error ? [] : (loaded.value ?? [])), agents.value);
        return keepSame(previous, { rows: keepRows(modelKey)(previous?.rows, joined), errors });
      },
    ),
    loaded: derive<[readonly LoadedModel[], Known], Rows<LoadedModel>>([memory, known], ([seen, agents], previous) => {
      const { rows, errors } = rowsOf(name, seen);
      const joined = loadedWithAgents(driver, rows, agents.value);
      const kept = joined === rows ? rows : keepRows(loadedKey)(previous?.rows, joined);
      return keepSame(previous, { rows: kept, errors });
    }),
  };
}

/** The rows of a look; a failed one has none, and says why. */
function rowsOf<R>(backend: string, { error, value = [] }: Observation<readonly R[]>): Rows<R> {
  return error ? { rows: [], errors: [{ backend, error }] } : { rows: value, errors: [] };
}

/** What tells the loaded models of one backend apart. */
export const loadedKey = ({ name, instance }: LoadedModel) => (instance === undefined ? name : `${name}#${instance}`);

/** The previous rows when these say the same. */
function keepSame<R>(previous: Rows<R> | undefined, next: Rows<R>): Rows<R> {
  const same =
    previous?.rows === next.rows &&
    previous.errors.length === next.errors.length &&
    previous.errors.every((failure, index) => failure.error === next.errors[index]?.error);
  return same ? previous : next;
}

/**
 * Models with what runs of them: the loaded entry of equal name, of several the one that is served from where the model is;
 * else what is served from there under another name.
 */
function join(models: readonly Model[], loaded: readonly LoadedModel[]): Model[] {
  if (loaded.length === 0) return [...models];
  const byName = Map.groupBy(loaded, ({ name }) => name);
  const byResource = new Map(loaded.map(entry => [entry.resource, entry]));
  return models.map(model => {
    const named = byName.get(model.name);
    const there = model.path === undefined ? undefined : byResource.get(model.path);
    const running = there && (!named || named.includes(there)) ? there : named?.at(-1);
    return running ? { ...model, running } : model;
  });
}

/** Models with what agents know them by. */
function withAgents(driver: Driver, models: readonly Model[], known: Known | undefined): readonly Model[] {
  if (!known || known.refs.length === 0) return models;
  return models.map(model => {
    const access = driver.agentAccess(model);
    const modelConfig = access && known.of({ backend: driver.name, reference: model.name, access });
    return modelConfig ? { ...model, modelConfig } : model;
  });
}

/** A loaded model as agents are to know it, where it is served by an object of its own. */
export function loadedWirable(driver: Driver, { name, resource }: LoadedModel): WirableModel | undefined {
  if (resource === undefined) return undefined;
  const access = driver.agentAccess({ backend: driver.name, name, path: resource });
  return access?.object === resource ? { backend: driver.name, reference: name, access } : undefined;
}

/** Loaded models with what agents know them by, where each is served by an object of its own. */
function loadedWithAgents(driver: Driver, rows: readonly LoadedModel[], known: Known | undefined) {
  if (!known || known.refs.length === 0 || rows.every(({ resource }) => resource === undefined)) return rows;
  return rows.map(row => {
    const wirable = loadedWirable(driver, row);
    const modelConfig = wirable && known.of(wirable);
    return modelConfig ? { ...row, modelConfig } : row;
  });
}

/** Whether this is how a signal says that time is up. */
const isTimeUp = (error: unknown) => error instanceof DOMException && error.name === 'TimeoutError';

/** What is seen of a source, or why it could not be seen: a failure, or that the call's time was up before. */
export async function readSource<T>(
  source: Source<T>,
  call: Call,
): Promise<Pick<Observation<T>, 'value' | 'error' | 'busy' | 'observedAt'>> {
  try {
    return await source.read(call);
  } catch (error) {
    if (isTimeUp(error))
      return { value: undefined, error: asGatewayError(error, call.requestId), observedAt: new Date() };
    throw error;
  }
}

/** What the driver saw of one thing, or the error it failed with. */
export async function readValue<T>(source: Source<T>, call: Call): Promise<T> {
  const { value, error } = await readSource(source, call);
  if (error || value === undefined) throw error ?? new Error('a source was read before it saw anything');
  return value;
}

/** Waits for the work until the call's deadline; true when that came first. */
export async function isLate(work: Promise<void>, call: Call): Promise<boolean> {
  try {
    await unlessAborted(work, call.signal);
    return false;
  } catch (error) {
    if (isTimeUp(error) && error === call.signal.reason) return true;
    throw error;
  }
}
