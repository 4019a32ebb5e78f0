import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Model } from '../../../src/domain.ts';
import { createOllamaDriver, type OllamaOptions } from '../../../src/drivers/ollama/index.ts';
import { answer, type Seen, serve } from '../scripted.ts';

const now = () => Date.parse('2026-08-22T08:00:00Z');
const meminfo = async () => 'MemTotal: 67108864 kB\n';
export const model = (name: string, more: Partial<Model> = {}): Model => ({ backend: 'ollama', name, ...more });

/** A driver whose server answers `METHOD /path` from a table; what is not in it is the router's plain 404. */
export async function against(
  t: TestContext,
  table: Readonly<Record<string, unknown>>,
  options: Partial<OllamaOptions> = {},
) {
  const host = await serve(t, ({ method, path }, response) => {
    const entry = table[`${method} ${path}`];
    if (entry === undefined) answer(response, 404, '404 page not found', 'text/plain');
    else if (Array.isArray(entry)) answer(response, ...(entry as [number, unknown, string?]));
    else answer(response, 200, entry);
  });
  const driver = driverAt(host.endpoint, options);
  return { ...host, driver };
}

/** A driver with all its methods, on a fixed clock and a host of 64 GiB. */
export const driverAt = (endpoint: string, options: Partial<OllamaOptions> = {}) => {
  const driver = createOllamaDriver({ endpoint, keepAliveDefault: '5m', now, meminfo, ...options });
  const { loaded, load, unload, remove, pull, nodes } = driver;
  assert.ok(loaded && load && unload && remove && pull && nodes);
  return { ...driver, loaded, load, unload, remove, pull, nodes };
};

/** What was asked, for a comparison. */
export const asked = (requests: readonly Seen[]) =>
  requests.map(({ method, path, body }) => [`${method} ${path}`, body]);
