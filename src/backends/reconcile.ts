import type { Logger } from 'pino';
import { type Call, createCall } from '../call.ts';
import type { Model } from '../domain.ts';
import { messageOf } from '../errors.ts';
import type { Jobs } from '../jobs/runner.ts';
import { isFinished } from '../jobs/store.ts';
import type { Known, WiringTarget } from '../wiring/wiring.ts';
import { type Backend, readValue } from './backend.ts';
import type { Registry } from './registry.ts';
import { makeKnown, wirableOf, wiredWhenServed } from './wiring.ts';

export interface ReconcilerOptions {
  readonly registry: Registry;
  readonly wiring: WiringTarget;
  readonly jobs: Jobs;
  /** Milliseconds between passes, where there is anything to compare again and again. */
  readonly intervalMs: number;
  readonly log: Logger;
}

/** A pass ends after this, in milliseconds, done or not. */
const passMs = 60_000;

/**
 * Keeps what agents know at what is served, as the gateway itself: what we wired to an address that a backend no longer has
 * is written again, and what is served without being known is wired. Nothing is ever removed. It compares when it starts and
 * when backends change; where backends serve models by objects of their own, and while a comparison could not be made,
 * every `intervalMs` too. Returns how to stop it.
 */
export function startReconciler(options: ReconcilerOptions): () => void {
  const { registry, intervalMs, log } = options;
  const stopped = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let running = false;
  let wanted = false;

  async function run() {
    if (running) {
      wanted = true;
      return;
    }
    running = true;
    clearTimeout(timer);
    let done = false;
    try {
      await pass(options, createCall({ log, signal: stopped.signal, timeoutMs: passMs }));
      done = true;
    } catch (error) {
      if (!stopped.signal.aborted) log.warn({ error: messageOf(error) }, 'what is wired cannot be compared');
    }
    running = false;
    if (stopped.signal.aborted) return;
    if (wanted) {
      wanted = false;
      void run();
    } else if (!done || registry.backends.some(({ driver }) => wiredWhenServed(driver))) {
      timer = setTimeout(run, intervalMs);
      timer.unref();
    }
  }

  const unsubscribe = registry.registered.subscribe(run);
  void run();
  return () => {
    unsubscribe();
    stopped.abort();
    clearTimeout(timer);
  };
}

async function pass({ registry, wiring, jobs }: ReconcilerOptions, call: Call): Promise<void> {
  const { backends } = registry;
  if (backends.length === 0) return;
  const known = await readValue(wiring.known, call);
  for (const backend of backends) {
    const listed = wiredWhenServed(backend.driver) ? await servedBy(backend, call) : [];
    const loading = loadsOf(backend, jobs);
    const models = [...moved(backend, known, listed), ...unknownOf(backend, known, listed)].filter(
      model => !loading(model),
    );
    for (const model of models) {
      const wirable = wirableOf(backend.driver, model);
      if (!wirable) continue;
      try {
        await makeKnown(wiring, call, 'reconcile', wirable);
      } catch {
        // That it cannot is in the audit trail; the next pass tries again.
        call.signal.throwIfAborted();
      }
    }
  }
}

/** Models of a backend; none when it cannot be asked, which its health tells. */
async function servedBy(backend: Backend, call: Call): Promise<readonly Model[]> {
  return (await readValue(backend.models, call)).rows;
}

/** Models that we wired to another address than they have now. */
function moved({ name, driver }: Backend, known: Known, listed: readonly Model[]): Model[] {
  const ours = known.refs.filter(ref => ref.managed && ref.backend === name && ref.model !== undefined);
  return ours.flatMap(({ model: reference = '', endpoint }) => {
    const model = listed.find(each => each.name === reference) ?? { backend: name, name: reference };
    const url = driver.agentAccess(model)?.url;
    return url !== undefined && url !== endpoint ? [model] : [];
  });
}

/** Models that are ready and that agents do not know. */
const unknownOf = ({ driver }: Backend, known: Known, listed: readonly Model[]): Model[] =>
  listed.filter(model => {
    const wirable = wirableOf(driver, model);
    return model.running?.status === 'Ready' && wirable && !known.of(wirable);
  });

/** Whether a load of a model is under way: that sees to its own. */
function loadsOf({ name, driver }: Backend, jobs: Jobs): (model: Model) => boolean {
  const loads = jobs.store.list().filter(job => job.type === 'load' && job.backend === name && !isFinished(job));
  return model => {
    const object = driver.agentAccess(model)?.object;
    return loads.some(({ resource, model: reference }) =>
      resource === undefined ? driver.find([model], reference) !== undefined : resource === object,
    );
  };
}
