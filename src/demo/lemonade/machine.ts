import { document, type Reply } from '../host/reply.ts';
import type { Incoming, Signals } from '../host/server.ts';
import type { Memory } from './memory.ts';

/** One server as its handlers see it. */
export interface Machine extends Memory {
  readonly version: string;
  /** What a request must bring, on a server that wants a key. */
  readonly apiKey: string | undefined;
  /** Browser pages allowed besides those of this machine. */
  readonly origins: readonly string[];
  /** Without a way to the registry. */
  readonly offline: boolean;
  /** Whether a model is listed while it loads. */
  readonly listsLoading: boolean;
  /** Between two words of a completion. */
  readonly tokenMs: number;
  /** Until the devices are found, the first time. */
  readonly probeMs: number;
  /** What the description of the machine has in place of the usual. */
  readonly system: Readonly<Record<string, unknown>>;
  readonly complete: (model: string, prompt: string) => string;
}

export type Handler = (incoming: Incoming, machine: Machine, signals: Signals) => Reply | Promise<Reply>;
export type Routes = Readonly<Record<string, Readonly<Record<string, Handler>>>>;

export const json = (value: unknown, status = 200) => document(value, status, 'application/json');
