import assert from 'node:assert/strict';
import { test } from 'node:test';
import { budgetOverrideOf, kubernetesArchitecture, memTotalOf, nodeOf } from '../../../src/drivers/ollama/node.ts';

const GiB = 2 ** 30;
const loaded = (...rows: [number | undefined, number | undefined][]) =>
  rows.map(([sizeBytes, vramBytes], i) => ({ backend: 'ollama', name: `m${i}:latest`, sizeBytes, vramBytes }));
const facts = {
  backend: 'ollama',
  agentHost: 'http://box:11434',
  loaded: loaded(),
  memory: { bytes: 64 * GiB },
  architecture: 'x64',
} as const;

test('MemTotal is read in kB or bytes, and anything else is malformed', () => {
  const table: [string, number | RegExp][] = [
    ['MemTotal:       65536000 kB\nMemFree: 1 kB\n', 65_536_000 * 1024],
    ['MemFree: 1 kB\nMemTotal: 2048 KB\n', 2048 * 1024],
    ['MemTotal: 4096\n', 4096],
    ['MemTotal: 1024 kB\r\n', 1024 * 1024],
    ['MemFree: 1 kB\n', /^no MemTotal in \/proc\/meminfo$/],
    ['', /^no MemTotal/],
    ['MemTotal: 12 MB\n', /^malformed "MemTotal: 12 MB"/],
    ['MemTotal: 0 kB\n', /^malformed/],
    ['MemTotal: 12 kB more\n', /^malformed/],
    ['MemTotal:\n', /^malformed/],
    ['MemTotal: -4 kB\n', /^malformed/],
    ['MemTotal: 99999999999999999999 kB\n', /^malformed/],
  ];
  for (const [text, expected] of table) {
    const memory = memTotalOf(text);
    if (typeof expected === 'number') assert.deepEqual(memory, { bytes: expected }, text);
    else assert.match('unknown' in memory ? memory.unknown : '(known)', expected, text);
  }
});

test('a budget override is a positive number of GiB; empty and zero are none; the rest is ignored aloud', () => {
  const table: [string | undefined, object][] = [
    [undefined, {}],
    ['', {}],
    ['  ', {}],
    ['0', {}],
    ['0.0', {}],
    ['-0', {}],
    ['24', { bytes: 24 * GiB }],
    [' 1.5 ', { bytes: 1.5 * GiB }],
    ['1e2', { bytes: 100 * GiB }],
    ['0.1', { bytes: Math.round(0.1 * GiB) }],
    ['-4', { ignored: '-4' }],
    ['NaN', { ignored: 'NaN' }],
    ['Inf', { ignored: 'Inf' }],
    ['Infinity', { ignored: 'Infinity' }],
    ['1e-12', { ignored: '1e-12' }],
    ['1e300', { ignored: '1e300' }],
    ['24GiB', { ignored: '24GiB' }],
    ['0x10', { ignored: '0x10' }],
  ];
  for (const [text, expected] of table) assert.deepEqual(budgetOverrideOf(text), expected, text);
});

test('the architecture has the spelling of Kubernetes', () => {
  assert.deepEqual(['x64', 'arm64', 'ia32', 's390x'].map(kubernetesArchitecture), ['amd64', 'arm64', '386', 's390x']);
});

test('an empty host: all of its memory is free and nothing is accelerated', () => {
  assert.deepEqual(nodeOf(facts), {
    backend: 'ollama',
    name: 'box',
    ready: true,
    eligible: true,
    architecture: 'amd64',
    allocatableMemoryBytes: 64 * GiB,
    gpuCount: 0,
    accelerated: false,
    budgetBytes: 64 * GiB,
    budgetSource: 'host-meminfo',
    reservedBytes: 0,
    freeBytes: 64 * GiB,
    message: 'memory as seen from the pod; per-model share on accelerators in running.vramBytes',
  });
});

test('loaded models reserve their size, a share on an accelerator marks the node, free never falls below 0', () => {
  const some = nodeOf({ ...facts, loaded: loaded([10 * GiB, 0], [20 * GiB, undefined], [undefined, undefined]) });
  assert.deepEqual([some.reservedBytes, some.freeBytes, some.accelerated], [30 * GiB, 34 * GiB, false]);
  const gpu = nodeOf({ ...facts, loaded: loaded([80 * GiB, 1]) });
  assert.deepEqual([gpu.reservedBytes, gpu.freeBytes, gpu.accelerated], [80 * GiB, 0, true]);
});

test('unknown host memory is unknown, not zero, and says why', () => {
  const node = nodeOf({ ...facts, memory: { unknown: 'cannot read /proc/meminfo: ENOENT' } });
  assert.deepEqual(
    [node.budgetBytes, node.budgetSource, node.allocatableMemoryBytes, node.freeBytes],
    [undefined, 'host-meminfo', undefined, undefined],
  );
  assert.match(node.message ?? '', /^host memory unknown \(cannot read \/proc\/meminfo: ENOENT\); /);
});

test('an override is the budget beside the true memory, and names where it was set', () => {
  const node = nodeOf({ ...facts, memoryBudgetGiB: '24.5', loaded: loaded([4 * GiB, 0]) });
  assert.deepEqual(
    [node.budgetBytes, node.budgetSource, node.allocatableMemoryBytes, node.freeBytes],
    [24.5 * GiB, 'override', 64 * GiB, 20.5 * GiB],
  );
  assert.match(node.message ?? '', /chart value ollama\.memoryBudgetGiB, flag --ollama-memory-budget-gib/);
  const blind = nodeOf({ ...facts, memoryBudgetGiB: '24', memory: { unknown: 'no MemTotal' } });
  assert.deepEqual([blind.budgetBytes, blind.allocatableMemoryBytes], [24 * GiB, undefined]);
  assert.match(blind.message ?? '', /^host memory unknown \(no MemTotal\); budget set by the operator/);
});

test('an unusable override is ignored and named', () => {
  const node = nodeOf({ ...facts, memoryBudgetGiB: 'lots' });
  assert.deepEqual([node.budgetBytes, node.budgetSource], [64 * GiB, 'host-meminfo']);
  assert.match(
    node.message ?? '',
    /^ignoring memory budget override "lots" \(want a positive number of GiB\); memory as/,
  );
});
