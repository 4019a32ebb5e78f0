import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withoutDocument } from '../../../src/drivers/kserve/discovery.ts';
import { type CacheContent, type FitFacts, fitOf, questionOf } from '../../../src/drivers/kserve/fit.ts';
import type { HubFacts } from '../../../src/drivers/kserve/hub/facts.ts';
import { downloadBytesOf, indexFile, weigh } from '../../../src/drivers/kserve/hub/weights.ts';
import { readFiles, readIndex, readRepository } from '../../../src/drivers/kserve/hub/wire.ts';
import { presetsIn } from '../../../src/drivers/kserve/presets.ts';
import { GatewayError } from '../../../src/errors.ts';
import {
  clusterNodes,
  discoveryRef,
  jsonOf,
  locationOf,
  objectsOf,
  overhead,
  plain,
  presetMap,
  presetMaps,
  presets,
  settingsWith,
} from './world.ts';

interface FitCase {
  readonly case: string;
  readonly about: string;
  readonly request: { model?: string; preset?: string; node?: string };
  readonly discovery: string | null;
  readonly sizes?: string;
  readonly cache?: string | null;
  readonly nodes: readonly string[];
  readonly cacheEntries?: CacheContent['entries'];
  readonly cacheIndex?: CacheContent['records'];
  readonly reservedBytes?: Record<string, number>;
  readonly presets?: string;
  readonly hub?: string;
  readonly hubToken?: boolean;
  readonly ignorePatterns?: readonly string[];
  readonly expect: {
    readonly result?: Record<string, unknown>;
    readonly error?: { code: string; message: string };
    readonly errorContains?: readonly string[];
  };
}

const fixture = jsonOf('fit/fit-cases.json') as {
  readonly discoveries: Record<string, { gpuPool?: object }>;
  readonly sizes: Record<string, object[]>;
  readonly cases: readonly FitCase[];
};
const responses = jsonOf('fit/hub-responses.json') as Record<string, { status: number; body: unknown }>;
const morePresets = objectsOf('fit/presets.yaml').map((document, place) => presetMap(document, `more-${place}`));

/** What the Hub of the fixtures knows. */
function hubFacts(repository: string, revision: string, ignore: readonly string[]): HubFacts {
  const answer = (path: string) => responses[path] ?? { status: 404, body: { error: 'not found' } };
  const about = answer(`/api/models/${repository}`);
  if (about.status === 404) return { miss: { why: 'missing', words: `${repository} is not on the hub`, status: 404 } };
  if (about.status !== 200) {
    const words = `${repository} is gated or private; configure a hub token with access (HTTP ${about.status})`;
    return { miss: { why: 'refused', words, status: about.status } };
  }
  const files = readFiles(answer(`/api/models/${repository}/tree/${revision}?recursive=true`).body) ?? [];
  const index = files.some(({ path }) => path === indexFile)
    ? readIndex(answer(`/${repository}/resolve/${revision}/${indexFile}`).body)
    : undefined;
  return {
    repository: readRepository(about.body),
    weights: weigh(files, index),
    downloadBytes: downloadBytesOf(files, ignore),
  };
}

const silentHub: HubFacts = {
  miss: { why: 'timeout', words: 'the Hugging Face Hub did not answer within 4s: nothing came', withinMs: 4000 },
};

function answerTo(each: FitCase) {
  const spec = each.discovery === null ? undefined : fixture.discoveries[each.discovery];
  const instances = each.sizes && fixture.sizes[each.sizes];
  const settings = settingsWith(spec && instances ? { ...spec, gpuPool: { ...spec.gpuPool, instances } } : spec);
  const known = each.presets ? presetsIn([...presetMaps, ...morePresets], overhead).presets : presets;
  const question = questionOf(known, each.request);
  const facts: FitFacts = {
    backend: 'kserve',
    settings,
    nodes: clusterNodes.filter(({ metadata }) => each.nodes.includes(metadata.name)),
    location: locationOf(settings, each.cache),
    reserved: each.reservedBytes && new Map(Object.entries(each.reservedBytes)),
    against: each.reservedBytes ? 'free' : 'budget',
    hub: each.hub ? silentHub : hubFacts(question.repository, question.revision, each.ignorePatterns ?? []),
    tokenConfigured: each.hubToken ?? false,
    withoutDocument: each.discovery === null ? withoutDocument({ state: 'missing' }, discoveryRef) : undefined,
  };
  return fitOf(question, facts, { entries: each.cacheEntries, records: each.cacheIndex });
}

/** What an expectation leaves out is absent or false, the backend's name aside. */
function comparable(fit: object, expected: Record<string, unknown>) {
  const { backend, ...rest } = plain(fit) as Record<string, unknown>;
  assert.equal(backend, 'kserve');
  return Object.fromEntries(Object.entries(rest).filter(([name, value]) => value !== false || name in expected));
}

for (const each of fixture.cases) {
  test(`fit: ${each.case}: ${each.about}`, () => {
    const { result, error, errorContains = [] } = each.expect;
    if (result) {
      assert.deepEqual(comparable(answerTo(each), result), result);
      return;
    }
    assert.throws(
      () => answerTo(each),
      (thrown: GatewayError) => {
        assert.ok(thrown instanceof GatewayError);
        if (error)
          assert.deepEqual([thrown.code, thrown.message.replace(/^[a-z ]+: /, '')], [error.code, error.message]);
        for (const part of errorContains) assert.ok(thrown.message.includes(part), thrown.message);
        return true;
      },
    );
  });
}
