import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordingFolder } from '../drivers/kserve/recordings.ts';
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
    demo.kill('SIGTERM');
    assert.equal(await demo.ended, 0, demo.err);
  });
}
