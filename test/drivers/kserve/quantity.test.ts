import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountOf, parseQuantity } from '../../../src/drivers/kserve/quantity.ts';
import { bytesOfGib, formatAmount, formatBytes, formatDuration } from '../../../src/drivers/kserve/units.ts';

const amount = (text: string) => {
  const read = parseQuantity(text);
  return 'value' in read ? read.value : assert.fail(`${text}: ${read.problem}`);
};
const problem = (text: string) => {
  const read = parseQuantity(text);
  return 'problem' in read ? read.problem : assert.fail(`${text} is ${read.value}`);
};

test('quantities are what Kubernetes takes them for', () => {
  const table: Record<string, number> = {
    '0': 0,
    '4': 4,
    '+4': 4,
    '-4': -4,
    '0.5': 0.5,
    '.5': 0.5,
    '5.': 5,
    '500m': 0.5,
    '100n': 1e-7,
    '3u': 3e-6,
    '7910m': 7.91,
    '1k': 1000,
    '2M': 2e6,
    '1G': 1e9,
    '1.5T': 1.5e12,
    '1P': 1e15,
    '1E': 1e18,
    '1e3': 1000,
    '1E3': 1000,
    '12e-1': 1.2,
    '1Ki': 1024,
    '16Gi': 16 * 2 ** 30,
    '0.5Gi': 2 ** 29,
    '31482348Ki': 31_482_348 * 1024,
    '1Ti': 2 ** 40,
    '1Pi': 2 ** 50,
    '1Ei': 2 ** 60,
    '11.9Gi': 11.9 * 2 ** 30,
    '9007199254740993': 9_007_199_254_740_992,
  };
  for (const [text, expected] of Object.entries(table)) assert.equal(amount(text), expected, text);
});

test('less than a billionth is one, and no quantity is more than the API server keeps', () => {
  assert.equal(amount('0.1n'), 1e-9);
  assert.equal(amount('1e-400'), 1e-9);
  assert.equal(amount('0e-400'), 0);
  for (const text of ['1e400', '1e999999999999', '99999999999999999999', '16Ei'])
    assert.equal(amount(text), 2 ** 63, text);
  assert.equal(amount('-1e400'), -(2 ** 63));
});

test('what is no quantity is told in words', () => {
  const want = 'want a Kubernetes quantity such as 500m, 4 or 16Gi';
  for (const text of ['', ' ', 'lots', '-', '.', '+.', 'Gi', 'NaN', 'Infinity', '1 Gi'.padStart(6), '9'.repeat(65)]) {
    assert.equal(problem(text), want, text);
  }
  for (const [text, suffix] of [
    ['4cores', 'cores'],
    ['16GiB', 'GiB'],
    ['16 Gi', ' Gi'],
    ['1gi', 'gi'],
    ['1e', 'e'],
    ['1e1.5', 'e1.5'],
    ['0x10', 'x10'],
    ['4\n', '\n'],
    ['1__proto__', '__proto__'],
    ['1constructor', 'constructor'],
  ] as const) {
    assert.equal(
      problem(text),
      `unknown suffix ${JSON.stringify(suffix)}: want one of m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei`,
    );
  }
});

test('what a node has is never below nothing', () => {
  assert.equal(amountOf('4'), 4);
  for (const text of [undefined, '', '-4', 'lots']) assert.equal(amountOf(text), undefined, text);
});

test('sizes as messages write them', () => {
  const table: [number, string][] = [
    [0, '0 B'],
    [512, '512 B'],
    [1023, '1023 B'],
    [1024, '1.0 KiB'],
    [1536, '1.5 KiB'],
    [31 * 2 ** 30, '31.0 GiB'],
    [2 ** 40 - 1, '1024.0 GiB'],
    [2 ** 40, '1.0 TiB'],
    [2 ** 50, '1024.0 TiB'],
  ];
  for (const [bytes, text] of table) assert.equal(formatBytes(bytes), text);
  assert.deepEqual([14.5, 16, 3.92, 11.96, 0].map(formatAmount), ['14.5', '16', '3.9', '12', '0']);
  assert.deepEqual([1, 2.4, 68.5].map(bytesOfGib), [2 ** 30, 2_576_980_378, 73_551_314_944]);
  assert.equal(bytesOfGib(1e300), Number.MAX_SAFE_INTEGER);
});

test('durations as Go writes them', () => {
  const table: [number, string][] = [
    [0, '0s'],
    [300, '300ms'],
    [1000, '1s'],
    [1500, '1.5s'],
    [4000, '4s'],
    [60_000, '1m0s'],
    [90_500, '1m30.5s'],
    [600_000, '10m0s'],
    [1_860_000, '31m0s'],
    [3_600_000, '1h0m0s'],
    [7_265_000, '2h1m5s'],
  ];
  for (const [ms, text] of table) assert.equal(formatDuration(ms), text);
});
