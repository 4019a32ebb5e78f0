import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseKeepAlive } from '../../../src/drivers/ollama/keepAlive.ts';
import { GatewayError } from '../../../src/errors.ts';
import { workedMs } from '../../support/eventLoop.ts';

test('numeric text becomes a JSON number, a duration stays text', () => {
  const table: [string, number | string][] = [
    ['-1', -1],
    ['600', 600],
    ['1.5', 1.5],
    ['.5', 0.5],
    ['5.', 5],
    ['+30', 30],
    ['-0.5', -0.5],
    [' 300 ', 300],
    ['0.000000001', 0.000000001],
    ['-0.0000000001', -0.0000000001],
    ['5m', '5m'],
    ['1h30m', '1h30m'],
    ['1.5h', '1.5h'],
    ['90s', '90s'],
    ['-1m', '-1m'],
    ['+10m', '+10m'],
    ['100ms', '100ms'],
    ['2µs', '2µs'],
    ['2μs', '2μs'],
    ['1ns', '1ns'],
    ['0h5m', '0h5m'],
    ['\t24h\n', '24h'],
  ];
  for (const [text, sent] of table) assert.equal(parseKeepAlive(text), sent, text);
});

test('every spelling of zero is refused on load and points to unload', () => {
  const zeros = ['0', '00', '-0', '+0', '0.0', '.0', '0.', '0s', '0m', '0ms', '0h0m', '-0s', '0h0m0s', '0.0s', '0.1ns'];
  for (const text of [...zeros, '0.0000000001'])
    assert.throws(
      () => parseKeepAlive(text),
      (error: unknown) =>
        error instanceof GatewayError &&
        error.code === 'invalid_request' &&
        error.message.startsWith(`invalid request: keepAlive "${text}" would unload the model; use unload for that`),
      text,
    );
});

test('what is neither number nor duration is refused with field, value and the way out', () => {
  const garbage = [
    '',
    'banana',
    '5 m',
    '5M',
    '1d',
    'm',
    '-',
    '.',
    '1h-30m',
    '1e3',
    '0x10',
    'Infinity',
    'NaN',
    '1,5',
    '５m',
  ];
  for (const text of garbage)
    assert.throws(
      () => parseKeepAlive(text),
      (error: unknown) =>
        error instanceof GatewayError &&
        error.code === 'invalid_request' &&
        error.message ===
          `invalid request: keepAlive ${JSON.stringify(text)} is neither a number of seconds nor a duration; ` +
            'give seconds (300), a duration of h, m and s ("10m", "1h30m"), or -1 to keep it loaded',
      text,
    );
});

test('what Go cannot count is refused, and endless text costs no time', () => {
  for (const text of ['99999999999', '9999999h', '-9999999h', '9'.repeat(70)])
    assert.throws(() => parseKeepAlive(text), /is longer than Ollama can count; .*-1 to keep it loaded/);
  const began = workedMs();
  assert.throws(() => parseKeepAlive(`${'1'.repeat(1_000_000)}x`), /keepAlive "1{80}…" is neither/);
  assert.ok(workedMs() - began < 1_000);
});
