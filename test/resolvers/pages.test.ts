import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backendError } from '../../src/errors.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { callOf } from '../support/backends.ts';
import { type FakeDriver, fakeDriver, testGateway } from '../support/gateway.ts';
import { askGraph } from '../support/graph.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, index) => `m${index}:1b`);

/** Five of everything, over two or more backends. */
function five(): { gateway: Gateway; drivers: FakeDriver[] } {
  const drivers = ['ollama', 'lemonade', 'kserve', 'lmstudio', 'x'].map(name =>
    fakeDriver({ name, models: [`${name}-model`] }),
  );
  for (const { name, world } of drivers) world.loaded = [{ backend: name, name: `${name}-model` }];
  const gateway = testGateway({ drivers });
  for (const model of numbers(5)) {
    const spec = { type: 'pull', backend: 'ollama', model, key: model, wire: false } as const;
    gateway.jobs.start(callOf(), spec, async () => {});
  }
  return { gateway, drivers };
}

interface Page {
  readonly items: readonly { readonly id: string }[];
  readonly totalCount: number;
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

const pageOf = async (gateway: Gateway, list: string, first?: number | null, after?: string | null): Promise<Page> => {
  const query = `query ($first: Int, $after: ID) {
    ${list}(first: $first, after: $after) { items { id } totalCount pageInfo { hasNextPage endCursor } }
  }`;
  const { data, errors } = await askGraph(gateway, query, { first, after });
  assert.deepEqual(errors, []);
  return data[list];
};

for (const list of ['backends', 'models', 'loadedModels', 'nodes', 'jobs']) {
  test(`${list}: pages of any size give the whole list once, in its order`, async () => {
    const { gateway } = five();
    const all = (await pageOf(gateway, list)).items;
    assert.equal(all.length, 5);
    for (const size of [1, 2, 3, 5, 1000]) {
      const seen: unknown[] = [];
      let after: string | null = null;
      for (;;) {
        const { items, totalCount, pageInfo }: Page = await pageOf(gateway, list, size, after);
        assert.equal(totalCount, 5);
        assert.ok(items.length <= size);
        seen.push(...items);
        assert.equal(pageInfo.endCursor, items.at(-1)?.id);
        assert.equal(pageInfo.hasNextPage, seen.length < 5);
        if (!pageInfo.hasNextPage) break;
        after = pageInfo.endCursor;
      }
      assert.deepEqual(seen, all);
    }
    const rest = await pageOf(gateway, list, null, all[1]?.id);
    assert.deepEqual(rest.items, all.slice(2));
    const end = await pageOf(gateway, list, 10, all[4]?.id);
    assert.deepEqual([end.items, end.pageInfo], [[], { hasNextPage: false, endCursor: null }]);
  });

  test(`${list}: a size or a place that makes no sense is refused with its value`, async () => {
    const { gateway } = five();
    const query = `query ($first: Int, $after: ID) { ${list}(first: $first, after: $after) { totalCount } }`;
    for (const first of [0, -1, 1001, 2 ** 31 - 1]) {
      const { errors } = await askGraph(gateway, query, { first });
      assert.deepEqual(errors, [
        `${list}: invalid_request: invalid request: "first" is ${first}, it must be 1 to 1000`,
      ]);
    }
    for (const after of ['', 'nope', 'TW9kZWw6b2xsYW1hL25vcGU=', 'x'.repeat(10_000)]) {
      const { errors } = await askGraph(gateway, query, { after });
      const shown = JSON.stringify(after.length > 80 ? `${after.slice(0, 80)}…` : after);
      assert.deepEqual(errors, [
        `${list}: invalid_request: invalid request: "after" is ${shown}, which is not in the list (any more); start again without it`,
      ]);
    }
  });
}

test('a page follows from its cursor even when something before it has gone', async () => {
  const driver = fakeDriver({ models: numbers(5) });
  const gateway = testGateway({ drivers: [driver] });
  const names = async (after: string | null) => {
    const query = 'query ($after: ID) { models(first: 2, after: $after) { items { name } pageInfo { endCursor } } }';
    const { data } = await askGraph(gateway, query, { after });
    return {
      names: data.models.items.map(({ name }: { name: string }) => name),
      cursor: data.models.pageInfo.endCursor,
    };
  };
  const first = await names(null);
  driver.world.models = driver.world.models.slice(1);
  for (const backend of gateway.registry.backends) backend.changed();
  assert.deepEqual((await names(first.cursor)).names, ['m2:1b', 'm3:1b']);
});

test('an empty list is a page as well', async () => {
  assert.deepEqual(await pageOf(testGateway({ drivers: [fakeDriver()] }), 'models', 3), {
    items: [],
    totalCount: 0,
    pageInfo: { hasNextPage: false, endCursor: null },
  });
});

test('every page names the backends that could not answer', async () => {
  const { gateway, drivers } = five();
  const [, broken] = drivers;
  if (broken) {
    broken.script.models = async (): Promise<never> => {
      throw backendError('lemonade: down');
    };
  }
  const query = '{ models(first: 1) { items { name } totalCount errors { backend code message } } }';
  const { data, errors } = await askGraph(gateway, query);
  assert.deepEqual(errors, []);
  assert.deepEqual(data.models, {
    items: [{ name: 'ollama-model' }],
    totalCount: 4,
    errors: [{ backend: 'lemonade', code: 'backend_error', message: 'lemonade: down' }],
  });
});
