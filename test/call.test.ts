import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { atMost, createCall, detached, outliving, type Span, within } from '../src/call.ts';

test('whose work it is stands in a line of the log once, however the work was handed on', () => {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: line => lines.push(line) });
  const call = createCall({ log, requestId: 'r1' });
  for (const each of [call, atMost(call, 1), outliving(outliving(call, 1), 1), detached(call, call.signal)]) {
    each.log.info('done');
  }
  assert.equal(lines.length, 4);
  for (const line of lines) {
    assert.equal(line.match(/"requestId":"r1"/g)?.length, 1, line);
    assert.equal(line.match(/"caller":/g)?.length, 1, line);
  }
});

test('the trace of a request is in the lines of its log once, and is that of the part which is under way', () => {
  const lines: string[] = [];
  const log = pino({ base: null }, { write: line => lines.push(line) });
  const spanOf = (traceId: string | undefined): Span => ({ traceId, begin: () => spanOf(traceId), end() {} });
  const call = createCall({ log, span: spanOf('a') });
  const part = within(call, spanOf('b'));
  const traces = [call, atMost(call, 1), outliving(call, 1), detached(call, call.signal), part, atMost(part, 1)];
  for (const each of traces) each.log.info('done');
  createCall({ log, span: spanOf(undefined) }).log.info('begins with the next part');
  assert.deepEqual(
    lines.map(line => [...line.matchAll(/"traceId":"(\w+)"/g)].map(([, traceId]) => traceId)),
    [['a'], ['a'], ['a'], ['a'], ['b'], ['b'], []],
  );
  assert.deepEqual(
    traces.map(({ span }) => span?.traceId),
    ['a', 'a', 'a', 'a', 'b', 'b'],
  );
});

test('a part of a call ends with it', () => {
  const gone = new AbortController();
  const span: Span = { traceId: 'a', begin: () => span, end() {} };
  const call = createCall({ log: pino({ level: 'silent' }), signal: gone.signal, timeoutMs: 60_000 });
  const part = within(call, span);
  assert.equal(part.deadline, call.deadline);
  gone.abort();
  assert.ok(part.signal.aborted);
});
