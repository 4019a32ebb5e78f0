import { wasLost, wasRefused } from '../errors.ts';

/** How an exchange ended that did not bring what was asked for. */
export type Ending =
  | { readonly status: number; readonly retryAfterMs?: number | undefined }
  | { readonly error: unknown };

/** So often an exchange is tried while the server asks for patience. */
const patientTries = 4;
/** Before a server that refuses connections is asked again: one that restarts is back soon. In milliseconds. */
const refusedPauseMs = 200;

/**
 * Milliseconds after which to try again; undefined when not to. What may have been done is never done twice: a change is
 * only tried again when the server has put it off, or there was no connection to send it over.
 */
export function pauseBeforeRetry(method: string, tries: number, ending: Ending): number | undefined {
  const reads = method === 'GET';
  if ('error' in ending) {
    if (tries > 1) return undefined;
    if (wasRefused(ending.error)) return refusedPauseMs;
    return reads && wasLost(ending.error) ? 0 : undefined;
  }
  const { status, retryAfterMs } = ending;
  const putOff = status === 429 || (status === 503 && reads);
  return putOff && tries < patientTries ? retryAfterMs : undefined;
}

/** Milliseconds in a `Retry-After` header: seconds, or a date. */
export function retryAfterOf(header: string | undefined, now: number): number | undefined {
  if (header === undefined || header.trim() === '') return undefined;
  const seconds = Number(header);
  const ms = Number.isNaN(seconds) ? Date.parse(header) - now : seconds * 1000;
  return Number.isNaN(ms) ? undefined : Math.max(0, Math.ceil(ms));
}
