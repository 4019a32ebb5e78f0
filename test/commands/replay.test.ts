import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { replay } from '../../src/commands/replay.ts';
import { printRecording } from '../../src/drivers/kserve/recording.ts';
import { recordingFolder, recordingNames, recordingOf } from '../drivers/kserve/recordings.ts';
import { folder, start } from './running.ts';

const fileOf = (name: string) => new URL(`${name}.yaml`, recordingFolder).pathname;

/** What is printed, and how long it waits before a line, in milliseconds. */
async function played(name: string, { speed = Number.POSITIVE_INFINITY, width = Number.POSITIVE_INFINITY } = {}) {
  const lines: string[] = [];
  const pauses: number[] = [];
  const signal = new AbortController().signal;
  await replay(recordingOf(name), {
    speed,
    signal,
    width,
    pause: async ms => void pauses.push(ms),
    print: line => lines.push(line),
  });
  return { lines, pauses };
}

const replayed = async (name: string, width?: number) => (await played(name, width ? { width } : {})).lines;

for (const name of recordingNames) {
  test(`${name} is told to its end`, async () => {
    const lines = await replayed(name);
    assert.match(lines[0] ?? '', /^\S+ in model-serving, 2026-10-05T\S+Z: \d/);
    const news = lines.filter(line => /^\+\d+:\d\d:\d\d {2}\S/.test(line));
    assert.ok(news.length > 0);
    assert.equal(
      lines.filter(line => /^ {2}(scheduling|ready) +(pending|in progress|done|failed)/.test(line)).length,
      2,
    );
    assert.doesNotMatch(lines.join('\n'), /undefined|NaN|Invalid/);
  });
}

test('each step is a line when it begins and ends, with the time since the object was made', async () => {
  const lines = await replayed('serve-from-zero');
  const news = lines.filter(line => line.startsWith('+'));
  for (const line of [
    '+0:00:40  scheduling           in progress  NodeLaunching: Karpenter nominated NodeClaim gpu-l4-k7x2m; no instance has launched yet',
    '+0:01:20  scheduling           done         took 1m0s',
    '+0:07:00  downloading weights  done         took 1m12s',
    '+0:10:30  pulling image        done         took 4m0s',
    '+0:11:00  ready                done',
  ]) {
    assert.ok(news.includes(line), `${line}\nis not in\n${news.join('\n')}`);
  }
});

test('lines fit the terminal, and what went wrong is told in full at the end', async () => {
  const lines = await replayed('crash-loop', 80);
  assert.ok(lines.filter(line => line.startsWith('+')).every(({ length }) => length <= 80));
  assert.match(
    lines.at(-1) ?? '',
    /^CrashLoopBackOff: runtime crashed 4× .*; back-off 5m0s restarting failed container=main$/,
  );
});

const run = async (t: TestContext, ...argv: string[]) => {
  const command = start(t, argv);
  const code = await command.ended;
  return { code, out: command.out, err: command.err };
};

test('the command replays a file', async t => {
  for (const speed of [['--speed', 'max'], ['--speed=0'], ['--speed', '1000000']]) {
    const { code, out, err } = await run(t, 'replay', fileOf('serve-from-zero'), ...speed);
    assert.equal(code, 0, err);
    assert.match(out, /\+0:11:00 {2}ready +done/);
    assert.equal(err, '');
  }
});

test('what moves the cursor or colours the terminal is shown as nothing', async t => {
  const { put } = folder(t);
  const recording = { ...recordingOf('cpu-serve'), about: 'a\u001b[2Jb\u0007c' };
  const { out } = await run(t, 'replay', put('odd.yaml', printRecording(recording)), '--speed', 'max');
  assert.match(out, /^a \[2Jb c$/m);
});

test('a span of which nothing is told is cut to seconds, and said', async () => {
  const { lines, pauses } = await played('serve-from-zero', { speed: 200 });
  const total = pauses.reduce((sum, ms) => sum + ms, 0);
  assert.equal(total, 659_000 / 200 + 3_000);
  assert.equal(lines[lines.indexOf('+0:11:00  ready                done') + 1], '          … 2h52m later');
  assert.equal(lines.filter(line => line.includes('later')).length, 1);

  const slow = await played('serve-from-zero', { speed: 0.000001 });
  assert.ok(slow.pauses.every(ms => ms === 3_000));
  assert.ok(slow.lines.includes('          … 28s later'));
  const atOnce = await played('serve-from-zero');
  assert.deepEqual(atOnce.pauses, []);
  assert.ok(!atOnce.lines.some(line => line.includes('later')));
});

test('the table in the end is of the instant that tells most, however much is gone at the last one', async () => {
  const lines = await replayed('serve-from-zero');
  const table = lines.slice(lines.findIndex(line => line.startsWith('  step')) + 1);
  assert.deepEqual(
    table.slice(0, 7).map(line => line.replace(/ *█*$/, '').split(/ {2,}/).slice(1)),
    [
      ['scheduling', 'done', '33s'],
      ['node starting', 'done', '3m30s'],
      ['downloading weights', 'done', '1m12s'],
      ['pulling image', 'done', '4m0s'],
      ['loading', 'done', '1m2s'],
      ['routing', 'done', '9s'],
      ['ready', 'done', '0s'],
    ],
  );
  const bars = table.slice(0, 7).map(line => line.split('█').length - 1);
  assert.deepEqual([Math.max(...bars), bars[3], bars[6]], [24, 24, 0]);
  assert.equal(lines.at(-1), 'ready after 10m49s on ip-10-0-12-34.eu-central-1.compute.internal');

  // Going away is how it ended; the steps are those from before.
  const gone = await replayed('terminating');
  assert.match(gone.join('\n'), /^ {2}ready +done[\s\S]*\nterminating, Terminating/m);
});

test('Ctrl-C ends it where it is', async t => {
  const command = start(t, ['replay', fileOf('serve-from-zero'), '--speed', '0.001']);
  await command.wrote('WaitingForPod');
  command.kill('SIGINT');
  assert.equal(await command.ended, 0);
  assert.equal(command.err, '');
  assert.match(command.out, /scheduling, Pending\nWaitingForPod/);
});

test('what cannot be replayed is a sentence without a stack', async t => {
  const { put } = folder(t);
  const text = printRecording(recordingOf('cpu-serve'));
  const broken = put('broken.yaml', text.replace('at: 2026', 'at: then, 2026'));
  const refused = put('refused.yaml', text.replace(/^( *)labels:$/m, '$1labels:\n$1  app: no label'));
  const table: [string[], RegExp][] = [
    [['demo', '--replay', refused], /refused\.yaml: instants\[0\] has the .* a cluster refuses: .*"no label"/],
    [['replay'], /^the file of the recording is missing; write it as in model-manager replay nova-4b\.yaml\n$/],
    [['replay', 'none.yaml'], /^cannot read the recording: ENOENT.*none\.yaml/],
    [['replay', broken], /broken\.yaml: line \d+: instants\[0\]\.at must be a time such as/],
    [['replay', broken, 'more'], /"more" is one word too many/],
    [['replay', broken, '--speed', 'fast'], /--speed "fast" is no speed; write how many times as fast/],
    [['demo', '--replay', broken], /instants\[0\]\.at must be a time/],
    [['demo', '--speed', '2'], /--speed is of a recording; name one with --replay FILE/],
    [['demo', '--replay'], /--replay needs a value/],
  ];
  const runs = await Promise.all(table.map(async ([argv, words]) => ({ words, ...(await run(t, ...argv)) })));
  for (const { words, code, err } of runs) {
    assert.match(err, words);
    assert.doesNotMatch(err, /\n\s+at /);
    assert.equal(code, 2);
  }
});
