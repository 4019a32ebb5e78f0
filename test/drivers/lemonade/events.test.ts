import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventsOf } from '../../../src/drivers/lemonade/events.ts';
import { linesOf } from '../../../src/drivers/lines.ts';
import { all } from '../scripted.ts';

async function* from(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

const what = 'lemonade: POST /api/v1/pull';
const events = (...texts: string[]) => all(eventsOf(linesOf(from(...texts), what), what));

test('lines become events: comments and unknown fields pass, data lines are joined, the last blank line may miss', async () => {
  const text = [
    ': a comment',
    '',
    'event: progress',
    'id: 7',
    'retry',
    'data: {"a":',
    'data:1}',
    '',
    'data:  two blanks',
    '',
    '',
    'event: nameless data follows',
    '',
    'data',
    '',
    'event:complete',
    'data: {}',
  ].join('\n');
  const expected = [
    { name: 'progress', data: '{"a":\n1}', complete: true },
    { name: '', data: ' two blanks', complete: true },
    { name: '', data: '', complete: true },
    { name: 'complete', data: '{}', complete: false },
  ];
  for (const variant of [text, text.replaceAll('\n', '\r\n'), `\ufeff${text}`])
    assert.deepEqual(await events(variant), expected);
  assert.deepEqual((await events(`${text}\n\n`)).at(-1), { name: 'complete', data: '{}', complete: true });
});

test('an event without data is none, also at the end', async () => {
  assert.deepEqual(await events('event: complete\n\n'), []);
  assert.deepEqual(await events('event: complete'), []);
  assert.deepEqual(await events(''), []);
});

test('an event of endlessly many lines is given up at its bound', async () => {
  async function* endless() {
    const lines = Buffer.from(`data: ${'0'.repeat(300)}\ndata:\n`.repeat(100));
    for (;;) yield lines;
  }
  await assert.rejects(
    all(eventsOf(linesOf(endless(), what), what, 1_000)),
    /^GatewayError: lemonade: POST \/api\/v1\/pull: an event of more than 1000 characters$/,
  );
  await assert.rejects(all(eventsOf(linesOf(endless(), what), what)), /an event of more than 4194304 characters$/);
});
