import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCall } from '../../src/call.ts';
import { defaultLimits } from '../../src/config/limits.ts';
import { createEngine } from '../../src/http/graphql/engine.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { fakeDriver, silent, testGateway } from '../support/gateway.ts';

/** Asks a gateway with that many models. */
async function ask(models: number, query: string) {
  const driver = fakeDriver({ models: Array.from({ length: models }, (_, n) => `m${n}:latest`) });
  const engine = createEngine(schema, []);
  const context = {
    gateway: testGateway({ drivers: [driver] }),
    call: createCall({ log: silent }),
    face: 'graphql' as const,
  };
  return engine.execute(await engine.prepare({ query }), context);
}

test('lists in lists are refused as a whole once they pass the rows of an answer', async () => {
  for (const [models, query] of [
    [
      60,
      '{ backends { items { models { backend { models { backend { models { backend { models { name } } } } } } } } } }',
    ],
    [5_000, '{ models { items { backend { models { name } } } } }'],
    [5_000, `{ ${Array.from({ length: 10 }, (_, n) => `a${n}: models { items { name } }`).join(' ')} }`],
  ] as const) {
    const { data, errors = [] } = await ask(models, query);
    assert.equal(data, undefined, query);
    assert.equal(errors.length, 1);
    assert.equal(errors[0]?.extensions.code, 'COST_LIMIT');
    assert.match(errors[0]?.message ?? '', new RegExp(`more than ${defaultLimits.rows} rows; ask for`));
  }
});

test('a long list and what its rows lead to are answered', async () => {
  const { data, errors } = await ask(5_000, '{ models { items { name backend { healthy } } } }');
  assert.equal(errors, undefined);
  assert.equal((data as { models: { items: unknown[] } }).models.items.length, 5_000);
});
