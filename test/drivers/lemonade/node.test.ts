import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostMemoryOf, nodeOf } from '../../../src/drivers/lemonade/node.ts';
import { readSystemInfo } from '../../../src/drivers/lemonade/wire.ts';
import { fixtureJson, known } from './fixtures.ts';
import { model, now } from './host.ts';

const GiB = 2 ** 30;

function node(answer: unknown, more: Partial<Parameters<typeof nodeOf>[0]> = {}) {
  const system = readSystemInfo(answer);
  assert.ok(system);
  return nodeOf({ backend: 'lemonade', name: 'box', system, models: [], loaded: [], now: now(), ...more });
}

test('an APU host: NPU before GPU, what is not there not counted, the folder of its models, parts counted once', () => {
  const models = [
    model('a', { sizeBytes: 20e9, runtime: 'llamacpp' }),
    model('b', { sizeBytes: 3e9 }),
    model('c'),
    model('a and b', { sizeBytes: 23e9, runtime: 'collection.omni' }),
  ];
  const loaded = [model('b', { sizeBytes: 3e9 }), model('c')];
  assert.deepEqual(known(node(fixtureJson('system-info.json'), { models, loaded })), {
    backend: 'lemonade',
    name: 'box',
    ready: true,
    eligible: true,
    architecture: 'amd64',
    allocatableMemoryBytes: Math.round(86.07 * GiB),
    gpuCount: 2,
    gpuProduct: 'AMD NPU (NPU Strix Halo)',
    budgetBytes: Math.round(86.07 * GiB),
    budgetSource: 'system-info',
    reservedBytes: 3e9,
    freeBytes: Math.round(86.07 * GiB) - 3e9,
    cache: {
      mountPath: '/home/user/.cache/huggingface/hub',
      models: 4,
      bytesUsed: 23e9,
      scannedAt: new Date(now()),
      inventory: 'models',
    },
  });
});

for (const { answer, expect } of fixtureJson('system-info-odd.json').cases)
  test(`a host with ${answer['OS Version']}, ${answer['Physical Memory']}`, () => {
    const found = node(answer);
    assert.deepEqual(
      [found.budgetBytes ?? 0, found.architecture, found.gpuCount, found.gpuProduct ?? null, found.cache ?? null],
      [expect.budgetBytes, expect.architecture, expect.gpuCount, expect.gpuProduct, null],
    );
    if (expect.messagePrefix) assert.ok(found.message?.startsWith(expect.messagePrefix));
    else assert.equal(found.message, undefined);
  });

test('memory is binary whatever the unit is called, a bare number is GB, and what is no amount says why', () => {
  const table: [string | number | undefined, number | RegExp][] = [
    ['23.54 GB', 25_275_882_537],
    ['32.00 GB', 32 * GiB],
    ['64 GB', 64 * GiB],
    ['64GiB', 64 * GiB],
    [' 512 mb ', 512 * 2 ** 20],
    ['1.5 TB', 1.5 * 2 ** 40],
    ['1048576 KB', GiB],
    ['4096 B', 4096],
    ['16', 16 * GiB],
    [16, 16 * GiB],
    ['0 GB', /^system-info says "0 GB"$/],
    [0, /^system-info says "0"$/],
    ['-4 GB', /^system-info says "-4 GB"$/],
    ['Unknown', /^system-info says "Unknown"$/],
    ['ERROR - Physical memory not found', /^system-info says "ERROR - Physical memory not found"$/],
    ['12 XB', /^system-info says/],
    ['1e3 GB', /^system-info says/],
    ['99999999999999 TB', /^system-info says/],
    ['', /^system-info says ""$/],
    [undefined, /^system-info does not say$/],
  ];
  for (const [text, expected] of table) {
    const memory = hostMemoryOf(text);
    if (typeof expected === 'number') assert.deepEqual(memory, { bytes: expected }, String(text));
    else assert.match('unknown' in memory ? memory.unknown : '(known)', expected, String(text));
  }
});

test('unknown memory is unknown, not zero, and what is loaded is reserved all the same', () => {
  const found = node({ 'Physical Memory': 'Unknown' }, { loaded: [model('a', { sizeBytes: 5 })] });
  assert.deepEqual(
    [found.budgetBytes, found.allocatableMemoryBytes, found.freeBytes, found.reservedBytes, found.message],
    [undefined, undefined, undefined, 5, 'host memory unknown (system-info says "Unknown")'],
  );
});

test('free never falls below 0', () => {
  const found = node({ 'Physical Memory': '1 GB' }, { loaded: [model('a', { sizeBytes: 2 * GiB })] });
  assert.deepEqual([found.reservedBytes, found.freeBytes], [2 * GiB, 0]);
});

test('the architecture has the spelling of Kubernetes', () => {
  const table: [unknown, string | undefined][] = [
    ['x86_64', 'amd64'],
    ['AMD64', 'amd64'],
    ['x64', 'amd64'],
    ['aarch64', 'arm64'],
    ['ARM64', 'arm64'],
    ['RISCV64', 'riscv64'],
    ['', undefined],
    [1, undefined],
  ];
  for (const [family, expected] of table)
    assert.equal(node({ devices: { cpu: { family } } }).architecture, expected, String(family));
});

test('accelerators are counted under the names of every release, once, and only those that work', () => {
  const gpu = (name: string, available?: boolean) => ({ name, available });
  const table: [object, number, string | undefined][] = [
    [{ amd_npu: gpu('N', true), npu: gpu('N', true), amd_gpu: [gpu('A', true)] }, 2, 'N'],
    [{ amd_gpu: [gpu('A', true)], amd_igpu: gpu('A', true), amd_dgpu: [] }, 1, 'A'],
    [{ amd_igpu: gpu('I', true), amd_dgpu: [gpu('D', true)], nvidia_dgpu: [gpu('V', true)] }, 3, 'I'],
    [{ amd_npu: gpu('N', false), nvidia_gpu: [gpu('V', true), gpu('', false)] }, 1, 'V'],
    [{ amd_npu: { available: true }, amd_gpu: [{ available: true }] }, 2, undefined],
    [{ amd_gpu: [gpu('A')], amd_npu: {}, metal: gpu('M', true) }, 1, 'A'],
    [{ amd_gpu: 'none', nvidia_gpu: [null, 7, {}], amd_npu: [] }, 0, undefined],
  ];
  for (const [devices, count, product] of table) {
    const found = node({ devices });
    assert.deepEqual([found.gpuCount, found.gpuProduct], [count, product], JSON.stringify(devices));
  }
});

test('a document with neither memory nor devices is none of Lemonade', () => {
  for (const document of [{}, { error: 'Unexpected endpoint' }, { devices: 7 }, [], null, 'x', undefined])
    assert.equal(readSystemInfo(document), undefined);
});
