/** Backends and calls as tests of single functions need them. */
import { createBackend } from '../../src/backends/backend.ts';
import { createRegistry } from '../../src/backends/registry.ts';
import { type CallOptions, createCall } from '../../src/call.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { silent } from './gateway.ts';

/** A registry over these drivers. A look may take `lookMs`. */
export const registryOf = (drivers: readonly Driver[], { lookMs = 8_500 } = {}) =>
  createRegistry(drivers.map(driver => createBackend(driver, 'static', silent, { lookMs })));

export const callOf = (options: Partial<CallOptions> = {}) => createCall({ log: silent, ...options });
