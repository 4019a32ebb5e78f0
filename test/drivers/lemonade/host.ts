import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Model } from '../../../src/domain.ts';
import { createLemonadeDriver, type LemonadeOptions } from '../../../src/drivers/lemonade/index.ts';
import { answer, type Seen, serve } from '../scripted.ts';

export const now = () => Date.parse('2026-08-22T08:00:00Z');
export const model = (name: string, more: Partial<Model> = {}): Model => ({ backend: 'lemonade', name, ...more });
/** The list of a host that has these models. */
export const list = (...ids: string[]) => ({ object: 'list', data: ids.map(id => ({ id })) });

/** A driver whose server answers `METHOD /path` from a table; what is not in it is the server's own 404. */
export async function against(
  t: TestContext,
  table: Readonly<Record<string, unknown>>,
  options: Partial<LemonadeOptions> = {},
) {
  const host = await serve(t, ({ method, path }, response) => {
    const entry = table[`${method} ${path}`];
    if (entry === undefined) answer(response, 404, noSuchEndpoint(path));
    else if (Array.isArray(entry)) answer(response, ...(entry as [number, unknown, string?]));
    else answer(response, 200, entry);
  });
  const driver = driverAt(host.endpoint, options);
  return { ...host, driver };
}

export const noSuchEndpoint = (path: string) => ({
  error: { message: 'The requested endpoint does not exist', path, type: 'not_found' },
});

/** A driver with all its methods, on a fixed clock that waits for nothing. */
export const driverAt = (endpoint: string, options: Partial<LemonadeOptions> = {}) => {
  const driver = createLemonadeDriver({ endpoint, now, pause: async () => {}, ...options });
  const { loaded, load, unload, remove, pull, nodes } = driver;
  assert.ok(loaded && load && unload && remove && pull && nodes);
  return { ...driver, loaded, load, unload, remove, pull, nodes };
};

/** What was asked, for a comparison. */
export const asked = (requests: readonly Seen[]) =>
  requests.map(({ method, path, body }) => [`${method} ${path}`, body]);
