import { document, Refusal, type Reply } from '../host/reply.ts';
import type { Incoming, Signals } from '../host/server.ts';
import type { Downloader } from './downloads.ts';
import type { Features } from './features.ts';
import type { Memory } from './instances.ts';

/** One app as its handlers see it. */
export interface Machine extends Memory, Downloader {
  readonly features: Features;
  /** One of which a request must bring, where there are any. */
  readonly tokens: readonly string[];
  /** Whether completions load what they need. */
  readonly onDemand: boolean;
  /** How long unloading takes. */
  readonly unloadMs: number;
  /** Between two words of a completion. */
  readonly tokenMs: number;
  readonly complete: (model: string, prompt: string) => string;
}

export type Handler = (incoming: Incoming, machine: Machine, signals: Signals) => Reply | Promise<Reply>;

export const json = (value: unknown, status = 200) => document(value, status, 'application/json; charset=utf-8');

/** A refusal as the management API words it. */
export const refusal = (status: number, type: string, message: string, more: { code?: string; param?: string } = {}) =>
  new Refusal(status, { error: { type, ...more, message } });

/** The fields of a body, whatever its content type said. */
export function bodyOf(raw: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = raw === '' ? {} : JSON.parse(raw);
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
  } catch {
    throw refusal(400, 'invalid_request', 'The request body is not valid JSON');
  }
}
