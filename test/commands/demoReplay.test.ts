import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordingFolder } from '../drivers/kserve/recordings.ts';
import { openStream } from '../support/server.ts';
import { start } from './running.ts';

const fileOf = (name: string) => new URL(`${name}.yaml`, recordingFolder).pathname;

/** A model as `GET /api/v1/loaded` has it. */
interface Loaded {
  readonly resource?: string;
  readonly status?: string;
  readonly node?: string;
  readonly endpoint?: string;
  readonly preset?: string;
  readonly message?: string;
}

for (const [name, object, expected] of [
  [
    'serve-from-zero',
    'nova-4b',
    { status: 'Ready', endpoint: 'https://models.demo.example.com/model-serving/nova-4b', preset: 'nova-4b' },
  ],
  ['crash-loop', 'nova-4b', { status: 'NotReady', node: 'ip-10-0-10-11.eu-central-1.compute.internal' }],
] as const) {
  test(`the demo serves ${name} as any other model`, async t => {
    const file = fileOf(name);
    const demo = start(t, ['demo', '--replay', file, '--speed', 'max', '--listen', '127.0.0.1:0']);
    await demo.wrote('the recording is over');
    const url = /(http:\/\/127\.0\.0\.1:\d+)\/graphql/.exec(demo.out)?.[1];
    assert.ok(url, demo.out);
    // What was written is seen within moments; each look waits for the newest.
    let row: Loaded | undefined;
    for (const end = performance.now() + 10_000; performance.now() < end; ) {
      const answer = (await fetch(`${url}/api/v1/loaded?backend=kserve`).then(each => each.json())) as {
        loaded: Loaded[];
      };
      row = answer.loaded.find(({ resource }) => resource === object);
      if (row?.status === expected.status && ('node' in expected ? row.node === expected.node : row.preset)) break;
    }
    for (const [field, value] of Object.entries(expected)) assert.equal(row?.[field as keyof Loaded], value, field);
    demo.kill('SIGINT');
    assert.equal(await demo.ended, 0, demo.err);
  });
}

test('what is played unhurriedly begins when the page was opened, and the greeting is about it', async t => {
  const file = fileOf('serve-from-zero');
  const demo = start(t, ['demo', '--replay', file, '--listen', '127.0.0.1:0']);
  await demo.wrote('Ctrl-C ends the demo');
  const [greeting = ''] = /^A made-up cluster[\s\S]*Ctrl-C/m.exec(demo.out) ?? [];
  assert.match(greeting, /cluster in which nova-4b is served as it is on record in\n\S+serve-from-zero\.yaml,/);
  assert.match(greeting, /It took 3h3m, and takes 59s now: 10 times as fast, [\s\S]*It begins in 5s\./);
  assert.doesNotMatch(greeting, /load -d|gemma|qwen/, 'nothing that is not there');
  for (const line of greeting.split('\n')) assert.ok(line.length <= 80 || line.includes(file), line);

  const [, url = '', body = ''] = /curl -N (\S+) [\s\S]*?-d '([^']*)'/.exec(greeting) ?? [];
  const follower = await openStream(url, JSON.parse(body));
  const phase = async () => (await follower.nextPayload('a phase')).data.serve.serve?.phase;
  assert.equal(await phase(), undefined, 'it has not begun');
  assert.doesNotMatch(demo.out, /the recording begins/);
  for (let next = await phase(); next !== 'SCHEDULING'; ) next = await phase();
  assert.match(demo.out, /the recording begins/);
  follower.leave();
  const [, list = ''] = /curl '([^']*)'/.exec(greeting) ?? [];
  const { loaded } = (await fetch(list).then(each => each.json())) as { loaded: Loaded[] };
  assert.ok(loaded.some(({ resource }) => resource === 'nova-4b'));
  demo.kill('SIGINT');
  assert.equal(await demo.ended, 0, demo.err);
});
