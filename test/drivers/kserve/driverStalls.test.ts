import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createCall } from '../../../src/call.ts';
import { silent } from '../../support/gateway.ts';
import { eventually, within } from '../../support/server.ts';
import { served, startDriver, tenSeconds, worldOf } from './driverLab.ts';
import { clusterNodes } from './world.ts';

const node = clusterNodes[0]?.metadata.name ?? '';
const late = 'the API server has not answered yet';

/** What a driver is asked, as one text each: the first row's message or the reason, or the error. */
async function answers(lab: Awaited<ReturnType<typeof startDriver>>, timeoutMs: number) {
  const call = createCall({ log: silent, timeoutMs });
  const { driver } = lab;
  const rows = (all: readonly { readonly message?: string | undefined }[] = []) =>
    `${all.length}: ${all[0]?.message ?? ''}`;
  const asked = {
    nodes: async () => rows(await driver.nodes?.(call)),
    models: async () => rows((await driver.models(call)).map(() => ({}))),
    loaded: async () => rows(await driver.loaded?.(call)),
    presets: async () => rows((await driver.presets?.(call))?.map(() => ({}))),
    fit: async () => (await driver.checkFit?.(call, { preset: 'nova-4b' }))?.reason ?? '',
    status: async () => (await driver.describe(call)).message ?? '',
  };
  const said = (work: Promise<string>) => work.catch((error: Error) => `error: ${error.message}`);
  const all = Object.entries(asked).map(async ([name, ask]) => [name, await said(ask())] as const);
  return Object.fromEntries(await within(Promise.all(all), 'all answers', timeoutMs)) as Record<
    keyof typeof asked,
    string
  >;
}

const fits = /fit within/;
const fine = { nodes: /^5: $/, models: /^1: $/, loaded: /^1: $/, presets: /^4: $/, fit: fits, status: /^$/ };
const said = (what: string) => new RegExp(`${what}: ${late}`);
const unknown = (what: string) => new RegExp(`^error: .*${what}: ${late}`);
const servers = 'llminferenceservices.serving.kserve.io';

const stalls: Record<string, Partial<typeof fine>> = {
  configmaps: {
    nodes: said('^5: presets'),
    loaded: said('^1: presets'),
    presets: unknown('presets'),
    fit: unknown('presets'),
    status: /^discovery: read .*not answered yet/,
  },
  pods: {
    nodes: said('^5: pods of served models'),
    loaded: said('^1: pods of served models'),
    fit: said('fit within.*; pods of served models'),
  },
  persistentvolumeclaims: {
    nodes: said('^5: the claim of the cache'),
    fit: said('fit within.*; the claim of the cache'),
  },
  persistentvolumes: { nodes: said('^5: the volume of the cache'), fit: said('fit within.*; the volume of the cache') },
  nodes: { nodes: unknown('nodes'), fit: unknown('nodes') },
  [servers]: {
    nodes: said('^5: served models'),
    models: unknown('served models'),
    loaded: unknown('served models'),
    fit: said('fit within.*; served models'),
    status: said('^LLMInferenceService API not available in model-serving: .*served models'),
  },
  'llminferenceserviceconfigs.serving.kserve.io': { status: /^cannot tell whether .*not answered yet/ },
  'jobs.batch': {},
};

// Those with much time at the same time: they do nothing but wait.
for (const [timeoutMs, concurrency] of [
  [10_000, true],
  [2_000, false],
] as const) {
  describe(`an API server that does not answer, for callers with ${timeoutMs} ms`, { concurrency }, () => {
    for (const [resource, expected] of Object.entries(stalls)) {
      test(`about ${resource}: the rest is answered, and says so`, async () => {
        await using lab = await startDriver({ objects: worldOf({ more: served('nova-4b', node) }) });
        lab.cluster.fault({ kind: 'hang', resource });
        const seen = await answers(lab, timeoutMs);
        for (const [name, pattern] of Object.entries({ ...fine, ...expected })) {
          assert.match(seen[name as keyof typeof seen], pattern, name);
        }
      });
    }
    test('about anything: each answer says so in time', async () => {
      await using lab = await startDriver();
      lab.cluster.fault({ kind: 'hang' });
      for (const [name, text] of Object.entries(await answers(lab, timeoutMs)))
        assert.match(text, new RegExp(late), name);
    });
  });
}

test('once it answers again, so does the driver, without anything of before', async () => {
  await using lab = await startDriver({ objects: worldOf({ more: served('nova-4b', node) }) });
  const mend = lab.cluster.fault({ kind: 'hang', resource: 'pods' });
  const { driver } = lab;
  const stop = driver.observed?.nodes.subscribe(() => {});
  const first = () => driver.observed?.nodes.current?.value?.[0];
  assert.match(
    (await driver.nodes?.(createCall({ log: silent, timeoutMs: 1_000 })))?.[0]?.message ?? '',
    said('pods of served models'),
  );
  mend();
  // The list under way is given up after eight seconds.
  await eventually(() => first()?.message === undefined, 'the pods', 20_000);
  assert.deepEqual([first()?.message, first()?.reservedBytes], [undefined, 20 * 2 ** 30]);
  assert.equal((await driver.loaded?.(tenSeconds()))?.[0]?.message, undefined);
  stop?.();
});
