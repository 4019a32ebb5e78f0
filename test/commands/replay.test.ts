import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { replay } from '../../src/commands/replay.ts';
import { printRecording } from '../../src/drivers/kserve/recording.ts';
import { recordingFolder, recordingNames, recordingOf } from '../drivers/kserve/recordings.ts';
import { folder, start } from './running.ts';

const fileOf = (name: string) => new URL(`${name}.yaml`, recordingFolder).pathname;

async function replayed(name: string, width = Number.POSITIVE_INFINITY): Promise<readonly string[]> {
  const lines: string[] = [];
  const signal = new AbortController().signal;
  await replay(recordingOf(name), { speed: Number.POSITIVE_INFINITY, signal, width, print: line => lines.push(line) });
  return lines;
}

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
    '+0:11:00  ready                done         took 0s',
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

test('a pause that no timer can hold is waited for', async t => {
  const command = start(t, ['replay', fileOf('serve-from-zero'), '--speed', '0.00000001']);
  await command.wrote('WaitingForPod');
  command.kill('SIGINT');
  assert.equal(await command.ended, 0);
  assert.doesNotMatch(command.out, /NodeLaunching/);
  assert.equal(command.err, '');
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
