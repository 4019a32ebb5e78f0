import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Model } from '../../../src/domain.ts';
import { createLmstudioDriver, type LmStudioOptions } from '../../../src/drivers/lmstudio/index.ts';
import { answer, type Seen, serve } from '../scripted.ts';

export const model = (name: string): Model => ({ backend: 'lmstudio', name });
/** An entry of a library, with the ids of its instances. */
export const entry = (key: string, ...ids: string[]) => ({
  key,
  size_bytes: 100,
  loaded_instances: ids.map(id => ({ id, config: {} })),
});

/**
 * A driver whose server answers `METHOD /path` from a table: a document, `[status, body, type?]`, or a function that makes
 * one of these. What is not in it gets what LM Studio answers for a path it does not know.
 */
export async function against(
  t: TestContext,
  table: Readonly<Record<string, unknown>>,
  options: Partial<LmStudioOptions> = {},
) {
  const host = await serve(t, (seen, response) => {
    const { method, path } = seen;
    const scripted = table[`${method} ${path}`] ?? { error: `Unexpected endpoint or method. (${method} ${path})` };
    const reply = typeof scripted === 'function' ? scripted(seen) : scripted;
    if (Array.isArray(reply)) answer(response, ...(reply as [number, unknown, string?]));
    else answer(response, 200, reply);
  });
  return { ...host, driver: driverAt(host.endpoint, options) };
}

/** A driver with all its methods that polls without a pause. */
export const driverAt = (endpoint: string, options: Partial<LmStudioOptions> = {}) => {
  const driver = createLmstudioDriver({ endpoint, pollMs: 0, ...options });
  const { loaded, load, unload, pull } = driver;
  assert.ok(loaded && load && unload && pull);
  return { ...driver, loaded, load, unload, pull };
};

/** What was asked, for a comparison. */
export const asked = (requests: readonly Seen[]) =>
  requests.map(({ method, path, body }) => (body === undefined ? [`${method} ${path}`] : [`${method} ${path}`, body]));
