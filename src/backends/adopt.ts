import type { Logger } from 'pino';
import { createCall } from '../call.ts';
import { messageOf } from '../errors.ts';
import { createBackoff } from '../kubernetes/backoff.ts';
import { unlessAborted } from '../live/source.ts';
import { type Actions, startPull } from './actions.ts';
import type { Backend } from './backend.ts';

/** How long a backend may take to say what goes on there, in milliseconds. */
const askMs = 30_000;

/**
 * Follows what was being downloaded before this process began, where that goes on at the backend: as jobs that pulls of the
 * same model join. Each backend is asked when it is registered, and again after a while for as long as it cannot say.
 * Returns how to stop; jobs run on.
 */
export function startAdopting(actions: Actions, log: Logger): () => void {
  const { registry } = actions;
  const stopped = new AbortController();
  const asked = new WeakSet<Backend>();

  function ask() {
    for (const backend of registry.backends) {
      if (asked.has(backend)) continue;
      asked.add(backend);
      void adopt(actions, backend, stopped.signal, log);
    }
  }

  const unsubscribe = registry.registered.subscribe(ask);
  ask();
  return () => {
    unsubscribe();
    stopped.abort();
  };
}

/** Never rejects: a reason why a backend cannot say is logged when it is another than before. */
async function adopt(actions: Actions, backend: Backend, stopped: AbortSignal, log: Logger): Promise<void> {
  const { driver, name } = backend;
  if (!driver.unfinished) return;
  const isWanted = () => !stopped.aborted && actions.registry.backends.includes(backend);
  const backoff = createBackoff();
  let told: string | undefined;
  while (isWanted()) {
    const call = createCall({ log, signal: stopped, timeoutMs: askMs });
    try {
      const downloads = await driver.unfinished(call);
      if (!isWanted()) return;
      for (const download of downloads) await startPull(actions, call, backend, { ...download, wire: false });
      if (downloads.length > 0)
        log.info({ backend: name, downloads: downloads.length }, 'downloads are followed again');
      return;
    } catch (error) {
      if (stopped.aborted) return;
      const reason = messageOf(error);
      if (reason !== told) log.warn({ backend: name, error: reason }, 'cannot tell which downloads go on');
      told = reason;
    }
    await pause(backoff.next(), stopped);
  }
}

/** Ends early when the signal aborts. */
const pause = (ms: number, signal: AbortSignal) =>
  unlessAborted(new Promise<void>(resolve => setTimeout(resolve, ms).unref()), signal).catch(() => {});
