/** One served model as a subscriber follows it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BackendStatus, LoadedModel, Model, NodeInfo, Preset, Step } from '../../src/domain.ts';
import type { Driver } from '../../src/drivers/driver.ts';
import { createCell } from '../../src/live/cell.ts';
import { fakeDriver, testGateway } from '../support/gateway.ts';
import { openStream, startServer, textOf } from '../support/server.ts';

const model = 'acme-labs/Nova-4B-Instruct';

const step = (name: Step['name'], state: Step['state'], second = 0): Step => ({
  name,
  state,
  since: new Date(Date.UTC(2026, 0, 1, 0, 0, second)),
});

const row = (resource: string, more: Partial<LoadedModel> = {}): LoadedModel => ({
  backend: 'kserve',
  name: model,
  instance: resource,
  resource,
  preset: resource,
  phase: 'ready',
  steps: [step('scheduling', 'done')],
  ...more,
});

/** A backend that pushes what it serves. */
function pushing(rows: readonly LoadedModel[] = []) {
  const loaded = createCell<readonly LoadedModel[]>(rows);
  const driver: Driver = {
    ...fakeDriver({ name: 'kserve', kind: 'kserve' }),
    observed: {
      loaded,
      status: createCell<BackendStatus>({ healthy: true }),
      models: createCell<readonly Model[]>([]),
      nodes: createCell<readonly NodeInfo[]>([]),
      presets: createCell<readonly Preset[]>([]),
    },
  };
  return { loaded, driver };
}

async function following(reference: string, rows: readonly LoadedModel[] = []) {
  const { loaded, driver } = pushing(rows);
  const server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const stream = await openStream(server.graphqlUrl, {
    query: textOf('watchServe'),
    variables: { model: reference, backend: 'kserve' },
  });
  return {
    loaded,
    stream,
    next: async (what: string) => (await stream.nextPayload(what)).data.serve,
    async [Symbol.asyncDispose]() {
      stream.leave();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('a serve is followed from before its load until after it is gone, and again', async () => {
  await using serve = await following('nova-4b');
  const { loaded, next } = serve;
  const before = await next('that nothing serves it');
  assert.deepEqual([before.serve, before.removed, before.errors], [null, false, []]);
  loaded.set([row('nova-4b')]);
  const served = await next('the serve');
  assert.deepEqual([served.serve.resource, served.serve.phase, served.removed], ['nova-4b', 'READY', false]);
  loaded.set([row('nova-4b', { phase: 'terminating' })]);
  assert.equal((await next('that it goes')).serve.phase, 'TERMINATING');
  loaded.set([row('other')]);
  const gone = await next('that it is gone');
  assert.deepEqual([gone.serve.resource, gone.removed], ['nova-4b', true]);
  loaded.set([row('other'), row('nova-4b')]);
  const again = await next('the next one');
  assert.deepEqual([again.serve.phase, again.removed], ['READY', false]);
  const revisions = [before, served, gone, again].map(({ revision }) => revision);
  assert.deepEqual(
    revisions,
    revisions.toSorted((a, b) => a - b),
  );
});

test('while it is on its way time is news, and not after', async () => {
  const loading = row('nova-4b', { phase: 'loading', steps: [step('loading', 'inProgress')] });
  await using serve = await following('nova-4b', [loading]);
  const { loaded, stream, next } = serve;
  const first = await next('the serve');
  const second = await next('a second later');
  const [[before], [after]] = [first.serve.steps, second.serve.steps];
  assert.ok(after.elapsedSeconds > before.elapsedSeconds, `${after.elapsedSeconds} > ${before.elapsedSeconds}`);
  assert.deepEqual({ ...second.serve, steps: [before] }, first.serve);
  loaded.set([row('nova-4b')]);
  assert.equal((await next('that it is ready')).serve.phase, 'READY');
  loaded.set([row('nova-4b'), row('other')]);
  loaded.set([row('nova-4b')]);
  loaded.set([row('nova-4b', { phase: 'terminating' })]);
  assert.equal((await next('the next change')).serve.phase, 'TERMINATING');
  assert.equal(stream.unread.length, 0);
});

test('a reference is an object, else a preset, else a model: what stays before what goes, then the latest', async () => {
  const rows = [
    row('a', { steps: [step('scheduling', 'done', 3)] }),
    row('b', { steps: [step('scheduling', 'done', 2)], preset: 'shared' }),
    row('c', { steps: [step('scheduling', 'done', 4)], phase: 'terminating' }),
    row('shared', { name: 'another/model', preset: 'mine' }),
  ];
  for (const [reference, expected] of [
    ['b', 'b'],
    ['shared', 'shared'],
    ['mine', 'shared'],
    [model.toUpperCase(), 'a'],
    ['nobody/serves-this', null],
  ] as const) {
    await using serve = await following(reference, rows);
    const { serve: found } = await serve.next(reference);
    assert.equal(found?.resource ?? null, expected, reference);
  }
});

test('of a backend that is not there nothing is followed', async () => {
  const { driver } = pushing();
  await using server = await startServer({ gateway: testGateway({ drivers: [driver] }) });
  const stream = await openStream(server.graphqlUrl, {
    query: 'subscription { serve(model: "a", backend: "nowhere") { revision } }',
  });
  const { errors } = await stream.nextPayload('the refusal');
  assert.match(errors[0].message, /nowhere/);
  stream.leave();
});
