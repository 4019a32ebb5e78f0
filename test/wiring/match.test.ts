import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WirableModel } from '../../src/domain.ts';
import { knownOf } from '../../src/wiring/kagent/match.ts';
import type { Row } from '../../src/wiring/kagent/modelConfig.ts';
import { lemonadeModel, ollamaModel, openAI, row, servedModel } from './modelConfigs.ts';

const name = (rows: readonly Row[], model: WirableModel, prefix = '') => knownOf(rows, prefix).of(model)?.name;

test('ours is the one whose annotation names the model and whose label names the backend, or nothing', () => {
  const model = ollamaModel('smollm2:135m');
  const table: [rows: Parameters<typeof row>[0][], found: string | undefined][] = [
    [[], undefined],
    [[{ name: 'any-name', backend: 'ollama', model: 'smollm2:135m' }], 'any-name'],
    [[{ name: 'any-name', model: 'smollm2:135m' }], 'any-name'],
    [[{ name: 'smollm2-135m', backend: 'lemonade', model: 'smollm2:135m' }], undefined],
    [[{ name: 'smollm2-135m', backend: 'ollama', model: 'smollm2-135m' }], undefined],
    [[{ name: 'any-name', backend: 'ollama', model: 'SmolLM2:135m' }], undefined],
    [[{ name: 'smollm2-135m', backend: false, model: 'smollm2:135m' }], undefined],
    // By its name, when it says no model.
    [[{ name: 'smollm2-135m', backend: 'ollama' }], 'smollm2-135m'],
    [[{ name: 'smollm2-135m' }], 'smollm2-135m'],
    [[{ name: 'smollm2-135m-ollama', backend: 'ollama' }], 'smollm2-135m-ollama'],
    [[{ name: 'smollm2-135m', backend: 'lemonade' }], undefined],
    [[{ name: 'smollm2', backend: 'ollama' }], undefined],
    // Of several, the one that says most.
    [
      [
        { name: 'a', model: 'smollm2:135m' },
        { name: 'b', backend: 'ollama', model: 'smollm2:135m' },
      ],
      'b',
    ],
    [
      [
        { name: 'smollm2-135m', backend: 'ollama' },
        { name: 'z', model: 'smollm2:135m' },
      ],
      'z',
    ],
    [
      [
        { name: 'b', backend: 'ollama', model: 'smollm2:135m' },
        { name: 'a', backend: 'ollama', model: 'smollm2:135m' },
      ],
      'a',
    ],
  ];
  for (const [written, found] of table) assert.equal(name(written.map(row), model), found, JSON.stringify(written));
});

test('two references with one name are two models', () => {
  const rows = [row({ name: 'a-b-1', backend: 'ollama', model: 'a/b:1' })];
  assert.equal(name(rows, ollamaModel('a/b:1')), 'a-b-1');
  assert.equal(name(rows, ollamaModel('a-b:1')), undefined);
});

test('the configured prefix is part of the name', () => {
  const rows = [row({ name: 'mm-qwen2-5-0-5b', backend: 'ollama' })];
  assert.equal(name(rows, ollamaModel(), 'mm-'), 'mm-qwen2-5-0-5b');
  assert.equal(name(rows, ollamaModel()), undefined);
  const served = [row({ name: 'mm-qwen3-4b-instruct', backend: 'kserve' })];
  assert.equal(name(served, servedModel(), 'mm'), 'mm-qwen3-4b-instruct');
});

test('somebody else’s counts for the same endpoint host and model, where that is said', () => {
  const theirs = (endpoint: string, model: string) => [
    row({ name: 'theirs', backend: false, spec: openAI(endpoint, model) }),
  ];
  const shared = servedModel();
  const table: [rows: Row[], model: WirableModel, found: boolean][] = [
    [theirs('https://models.example.com/model-serving/qwen3-4b-instruct/v1', 'qwen3-4b'), shared, true],
    [theirs('http://MODELS.example.com:8443/other', 'qwen3-4b'), shared, true],
    [theirs('models.example.com', 'qwen3-4b-instruct'), shared, true],
    [theirs('https://models.example.com/v1', 'another'), shared, false],
    [theirs('https://models.example.com/v1', 'QWEN3-4b'), shared, false],
    [theirs('https://models.example.org/v1', 'qwen3-4b'), shared, false],
    [theirs('https://models.example.com/v1', 'qwen3-4b'), servedModel({ shared: false }), false],
    [theirs('http://172.21.0.1:13305/api/v1', 'qwen3-4b-FLM'), lemonadeModel(), false],
  ];
  for (const [rows, model, found] of table)
    assert.equal(name(rows, model), found ? 'theirs' : undefined, rows[0]?.ref.endpoint);
});

test('of several of somebody else the same one is meant each time', () => {
  const spec = openAI('https://models.example.com/v1', 'qwen3-4b');
  const rows = ['b', 'a', 'c'].map(each => row({ name: each, backend: false, spec }));
  assert.equal(name(rows, servedModel()), 'a');
});

test('ours comes before somebody else’s', () => {
  const rows = [
    row({ name: 'a', backend: false, spec: openAI('https://models.example.com/v1', 'qwen3-4b') }),
    row({ name: 'b', backend: 'kserve', model: 'Qwen/Qwen3-4B-Instruct' }),
  ];
  assert.equal(name(rows, servedModel()), 'b');
  assert.deepEqual(
    knownOf(rows, '').refs.map(({ managed }) => managed),
    [false, true],
  );
});

test('names of an object’s prototype are names like any other', () => {
  for (const reference of ['constructor', '__proto__', 'toString']) {
    assert.equal(name([], ollamaModel(reference)), undefined);
    assert.equal(name([row({ name: 'x', backend: 'ollama', model: reference })], ollamaModel(reference)), 'x');
  }
});

test('5,000 models are found among hundreds of objects without looking through them', () => {
  const rows = Array.from({ length: 800 }, (_, index) =>
    row(
      index % 2
        ? { name: `own-${index}`, backend: 'kserve', model: `org/repo-${index}` }
        : { name: `their-${index}`, backend: false, spec: openAI('https://models.example.com', `served-${index}`) },
    ),
  );
  let reads = 0;
  const counted = rows.map(each => ({
    ...each,
    get annotated() {
      reads++;
      return each.annotated;
    },
  }));
  const known = knownOf(counted, '');
  reads = 0;
  let found = 0;
  for (let index = 0; index < 5_000; index++)
    if (known.of({ ...servedModel({ model: `served-${index}` }), reference: `org/repo-${index}` })) found++;
  assert.equal(found, 800);
  assert.ok(reads < 5_000, `${reads} rows were looked at`);
});
