import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WirableModel } from '../../src/domain.ts';
import { GatewayError } from '../../src/errors.ts';
import { indexOf } from '../../src/wiring/kagent/match.ts';
import { planOf } from '../../src/wiring/kagent/plan.ts';
import { ollamaModel, openAI, row, servedModel } from './modelConfigs.ts';

type Written = Parameters<typeof row>[0];

/** The plan as names: `new x`, `over x`, `over x - y`, `is x`. */
function plan(written: readonly Written[], model: WirableModel, prefix = ''): string {
  const found = planOf(indexOf(written.map(row)), model, prefix);
  if ('answer' in found) return `is ${found.answer.ref.name}`;
  const without = found.superseded.map(({ ref }) => ` - ${ref.name}`).join('');
  return `${found.before ? 'over' : 'new'} ${found.name}${without}`;
}

function refused(written: readonly Written[], model: WirableModel, words: RegExp) {
  assert.throws(
    () => plan(written, model),
    (error: unknown) => error instanceof GatewayError && error.code === 'conflict' && words.test(error.message),
  );
}

const shared = ollamaModel('shared:1b');

test('which name is written', () => {
  const table: [Written[], WirableModel, string][] = [
    [[], shared, 'new shared-1b'],
    [[{ name: 'shared-1b', backend: 'ollama', model: 'shared:1b' }], shared, 'over shared-1b'],
    // It keeps its name.
    [[{ name: 'by-hand', backend: 'ollama', model: 'shared:1b' }], shared, 'over by-hand'],
    [[{ name: 'shared-1b-ollama', backend: 'ollama', model: 'shared:1b' }], shared, 'over shared-1b-ollama'],
    // It says no backend, or no model: then it is taken in.
    [[{ name: 'shared-1b', model: 'shared:1b' }], shared, 'over shared-1b'],
    [[{ name: 'shared-1b' }], shared, 'over shared-1b'],
    [[{ name: 'shared-1b', backend: 'ollama' }], shared, 'over shared-1b'],
    // Another backend's has the name.
    [[{ name: 'shared-1b', backend: 'lemonade', model: 'shared:1b' }], shared, 'new shared-1b-ollama'],
    [[{ name: 'shared-1b', backend: 'lemonade', model: 'shared-1b' }], shared, 'new shared-1b-ollama'],
    [
      [
        { name: 'shared-1b', backend: 'lemonade', model: 'shared:1b' },
        { name: 'shared-1b-ollama', backend: 'ollama' },
      ],
      shared,
      'over shared-1b-ollama',
    ],
    // Somebody else's counts only where that is said.
    [[{ name: 'x', backend: false, spec: openAI('http://172.21.0.1:11434', 'shared:1b') }], shared, 'new shared-1b'],
  ];
  for (const [written, model, expected] of table) assert.equal(plan(written, model), expected, JSON.stringify(written));
  assert.equal(plan([], shared, 'mm'), 'new mm-shared-1b');
});

test('a model with an object of its own takes that one’s name', () => {
  const model = servedModel();
  const { reference } = model;
  const table: [Written[], string][] = [
    [[], 'new qwen3-4b-instruct'],
    [[{ name: 'qwen3-4b-instruct', backend: 'kserve', model: reference }], 'over qwen3-4b-instruct'],
    [[{ name: 'old', backend: 'kserve', model: reference }], 'new qwen3-4b-instruct - old'],
    [
      [
        { name: 'qwen3-4b-instruct', backend: 'kserve', model: reference },
        { name: 'old', backend: 'kserve', model: reference },
        { name: 'older', model: reference },
      ],
      'over qwen3-4b-instruct - old - older',
    ],
    [
      [
        { name: 'qwen3-4b-instruct', backend: 'kserve' },
        { name: 'old', backend: 'kserve', model: reference },
      ],
      'over qwen3-4b-instruct - old',
    ],
    [
      [
        { name: 'qwen3-4b-instruct', backend: 'ollama', model: 'qwen3-4b-instruct' },
        { name: 'old', backend: 'kserve', model: reference },
      ],
      'new qwen3-4b-instruct-kserve - old',
    ],
    [[{ name: 'qwen3-4b-instruct-kserve', backend: 'kserve', model: reference }], 'over qwen3-4b-instruct-kserve'],
    [
      [{ name: 'qwen3-4b-instruct', backend: 'kserve' }, { name: 'qwen3-4b-instruct-kserve' }],
      'over qwen3-4b-instruct - qwen3-4b-instruct-kserve',
    ],
  ];
  for (const [written, expected] of table) assert.equal(plan(written, model), expected, JSON.stringify(written));
  assert.equal(plan([], model, 'mm'), 'new mm-qwen3-4b-instruct');
});

test('somebody else’s of the same endpoint and served name is the answer', () => {
  const theirs: Written = { name: 'theirs', backend: false, spec: openAI('https://MODELS.example.com/x', 'qwen3-4b') };
  const model = servedModel();
  assert.equal(plan([theirs], model), 'is theirs');
  assert.equal(plan([theirs], servedModel({ shared: false })), 'new qwen3-4b-instruct');
  // Ours is refreshed, whatever else there is.
  const ours: Written = { name: 'qwen3-4b-instruct', backend: 'kserve', model: model.reference };
  assert.equal(plan([theirs, ours], model), 'over qwen3-4b-instruct');
  // The object's name is not what is served.
  const odd = { ...theirs, spec: openAI('https://models.example.com/x', 'qwen3-4b-instruct') };
  assert.equal(plan([odd], model), 'new qwen3-4b-instruct');
});

test('a name that is taken is taken from nobody', () => {
  const unmanaged = /^conflict: ModelConfig kagent\/shared-1b(-ollama)? exists but is not managed by model-manager$/;
  refused([{ name: 'shared-1b', backend: false }], shared, unmanaged);
  refused([{ name: 'shared-1b', backend: false, model: 'shared:1b' }], shared, unmanaged);
  const lemonades: Written = { name: 'shared-1b', backend: 'lemonade', model: 'shared:1b' };
  refused([lemonades, { name: 'shared-1b-ollama', backend: false }], shared, unmanaged);
  refused([{ name: 'a-b-1', backend: 'ollama', model: 'a/b:1' }], ollamaModel('a-b:1'), /is that of a\/b:1 on ollama/);
  refused([{ name: 'a-b-1', model: 'a/b:1' }], ollamaModel('a-b:1'), /is that of a\/b:1/);
  refused([lemonades, { name: 'shared-1b-ollama', backend: 'lmstudio', model: 'm' }], shared, /shared-1b-ollama too/);
  refused(
    [{ name: 'qwen3-4b-instruct', backend: false }],
    servedModel(),
    /^conflict: ModelConfig kagent\/qwen3-4b-instruct exists but is not managed by model-manager$/,
  );
});

test('one on its way out is not written to', () => {
  const leaving = { name: 'x', backend: 'ollama', model: 'shared:1b', deletionTimestamp: '2026-01-02T03:04:05Z' };
  refused([leaving], shared, /ModelConfig kagent\/x is being deleted; try again/);
});
