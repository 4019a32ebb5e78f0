import type { TestContext } from 'node:test';
import { type Call, createCall } from '../../src/call.ts';
import { silent } from '../support/gateway.ts';

/** A moment to begin with. */
export const start = Date.parse('2026-01-02T03:04:05Z');

/** Time that passes when the test says so: timers and the date. */
export function mockTime(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: start });
  return {
    /** Lets time pass, and what it sets off come to rest. */
    async pass(ms: number) {
      t.mock.timers.tick(ms);
      await settled();
    },
  };
}

/** Lets everything happen that waits for nothing but its turn. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

/** A call of somebody; `signal` aborts when they leave. */
export const callOf = (signal?: AbortSignal): Call => createCall({ log: silent, ...(signal && { signal }) });
