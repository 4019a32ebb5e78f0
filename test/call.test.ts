import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { atMost, createCall, detached, outliving } from '../src/call.ts';

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
