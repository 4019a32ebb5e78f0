import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PullProgress } from '../../../src/domain.ts';
import { type PullServer, progressOf } from '../../../src/drivers/lmstudio/pull.ts';
import { type Download, readDownload, readEntries } from '../../../src/drivers/lmstudio/wire.ts';
import { backendError, GatewayError } from '../../../src/errors.ts';
import { fixtureJson, fixtureLines } from './fixtures.ts';

const unheard = { lost: backendError('lmstudio: nobody there') };
type Answer = Download | typeof unheard | Error;

interface Script {
  /** To the start, then to each question; the last one again and again. */
  readonly answers: readonly Answer[];
  /** The library before, and at each look after; keys with their size. */
  readonly library?: readonly (Readonly<Record<string, number>> | Error)[];
  readonly reference?: string;
  /** Leaves at this pause, counted from 1. */
  readonly leaveAt?: number;
}

const ref = 'a/b';

/** Runs a pull against a script, checking on the way that bytes never go back nor beyond their total. */
async function run({ answers, library = [{}, { [ref]: 7 }], reference = ref, leaveAt }: Script) {
  const ids: string[] = [];
  let looks = 0;
  let pauses = 0;
  const take = (answer: Answer | undefined) => {
    if (answer instanceof Error) throw answer;
    assert.ok(answer);
    return answer;
  };
  const server: PullServer = {
    async library() {
      const sizes = library[Math.min(looks++, library.length - 1)];
      if (sizes instanceof Error) throw sizes;
      const models = Object.entries(sizes ?? {}).map(([key, size_bytes]) => ({ key, size_bytes }));
      return readEntries({ models }) ?? [];
    },
    start: async () => take(answers[0]) as Download,
    async status(id) {
      ids.push(id);
      return take(answers[Math.min(ids.length, answers.length - 1)]);
    },
    async pause() {
      if (++pauses === leaveAt) throw backendError('lmstudio: left');
    },
    isAbandoned: () => leaveAt !== undefined && pauses >= leaveAt,
  };
  const seen: PullProgress[] = [];
  let last = { bytesCompleted: 0, bytesTotal: 0 };
  const result = (end: string, message: string) => ({ end, message, seen, last, ids, looks, pauses });
  try {
    for await (const step of progressOf(reference, server)) {
      assert.ok(step.bytesCompleted >= last.bytesCompleted && step.bytesTotal >= last.bytesTotal);
      assert.ok(step.bytesTotal === 0 || step.bytesCompleted <= step.bytesTotal);
      last = { bytesCompleted: step.bytesCompleted, bytesTotal: step.bytesTotal };
      seen.push(step);
    }
    return result('success', '');
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return result(error.code, error.message);
  }
}

const recorded = (name: string) =>
  fixtureLines(name).map(line => {
    const download = readDownload(line);
    assert.ok(download);
    return download;
  });
const steps = (seen: readonly PullProgress[]) =>
  seen.map(({ status, bytesCompleted, bytesTotal }) => [status, bytesCompleted, bytesTotal]);
const going: Download = { id: 'j', state: 'downloading' };
const completed: Download = { state: 'completed' };

test('a download is followed to its end, under its first id, with its speed and its last phase', async () => {
  const { end, seen, ids, pauses } = await run({ answers: recorded('download.ndjson') });
  const total = 2_279_145_003;
  assert.equal(end, 'success');
  assert.deepEqual(steps(seen), [
    ['downloading', 0, total],
    ['downloading (7.8 MB/s)', 15_669_843, total],
    ['downloading (5.2 MB/s)', 1_139_572_501, total],
    ['finalizing', total, total],
    ['completed', total, total],
  ]);
  assert.deepEqual(new Set(ids), new Set(['job_6f1b2c9e01']));
  assert.equal(pauses, 4, 'one before each question');
});

test('a pause and an unknown state are tolerated, bytes stand still when the server steps back, failed is failed', async () => {
  const { end, message, seen } = await run({ answers: recorded('download-paused.ndjson') });
  assert.equal(end, 'backend_error');
  assert.equal(message, 'lmstudio: checksum mismatch');
  assert.deepEqual(steps(seen), [
    ['downloading', 0, 1e9],
    ['paused', 4e8, 1e9],
    ['verifying', 4e8, 1e9],
    ['downloading (1.5 MB/s)', 4e8, 1e9],
  ]);
});

test('what the server has already is success with its size, when the library has it', async () => {
  const already = readDownload(fixtureJson('download-already.json')) as Download;
  const { end, seen, ids } = await run({ answers: [already], library: [{ [ref]: 123 }] });
  assert.equal(end, 'success');
  assert.deepEqual(steps(seen), [['completed', 123, 123]]);
  assert.deepEqual(ids, []);

  // Somebody else's new model is not what the server had already.
  const gone = await run({ answers: [already], library: [{ old: 1 }, { old: 1, new: 2 }] });
  assert.equal(gone.end, 'not_found');
  assert.equal(
    gone.message,
    'model not found: lmstudio: LM Studio has it already by its own account, but its library has no single model for a/b: ' +
      'it keeps the model under another key, or an older download of it has not ended, or its files were removed by hand',
  );
});

test('a download that is complete at once is success, also without a job', async () => {
  for (const state of ['completed', 'already_downloaded']) {
    const { end, seen } = await run({ answers: [{ state, bytesTotal: 9 }] });
    assert.equal(end, 'success');
    assert.equal(seen.length, 1);
  }
});

test('a download with no job to follow is a failure; so is one that fails at once or is refused', async () => {
  const table: [Answer, RegExp][] = [
    [
      { state: 'downloading' },
      /^lmstudio: the answer to the download names no job to follow \(its status is "download/,
    ],
    [{ state: 'queued\n<b>' }, /\(its status is "queued <b>"\)$/],
    [{ state: 'failed', error: 'no\nspace' }, /^lmstudio: no space$/],
    [{ state: 'failed' }, /^lmstudio: download failed$/],
    [backendError('lmstudio: refused'), /^lmstudio: refused$/],
  ];
  for (const [answer, words] of table) {
    const { end, message, looks } = await run({ answers: [answer] });
    assert.equal(end, 'backend_error');
    assert.match(message, words);
    assert.equal(looks, 1);
  }
});

test('without a total the size in the library is the total; a total below the bytes grows with them', async () => {
  const unsized = await run({ answers: [going, { state: 'downloading', bytesCompleted: 5 }, completed] });
  assert.deepEqual(steps(unsized.seen), [
    ['downloading', 0, 0],
    ['downloading', 5, 0],
    ['completed', 7, 7],
  ]);
  const short = await run({
    answers: [going, { state: 'downloading', bytesCompleted: 12 }, { state: 'x', bytesTotal: 10 }, completed],
  });
  assert.deepEqual(short.last, { bytesCompleted: 12, bytesTotal: 12 });
  const unknown = await run({ answers: [{ ...going, bytesCompleted: 3 }, completed], library: [{}, { [ref]: -1 }] });
  assert.deepEqual(unknown.last, { bytesCompleted: 3, bytesTotal: 3 });
});

test('speeds have decimal units, and none is no speed', async () => {
  const table: [number, string][] = [
    [0, 'downloading'],
    [999, 'downloading (999 B/s)'],
    [1000, 'downloading (1.0 kB/s)'],
    [125_400, 'downloading (125.4 kB/s)'],
    [5_200_000, 'downloading (5.2 MB/s)'],
    [1_250_000_000, 'downloading (1.3 GB/s)'],
    [5e12, 'downloading (5000.0 GB/s)'],
  ];
  for (const [bytesPerSecond, status] of table)
    assert.equal((await run({ answers: [{ ...going, bytesPerSecond }, completed] })).seen[0]?.status, status);
});

const times = (count: number, answer: Answer): Answer[] => Array.from({ length: count }, () => answer);
const standing: [string, Answer, RegExp][] = [
  ['paused', { state: 'paused' }, /^lmstudio: the download is paused; resume or cancel it in LM Studio, then pull/],
  [
    'an unknown state',
    { state: 'verifying' },
    /^lmstudio: the download stays at "verifying"; look at it in LM Studio$/,
  ],
  ['no answer', unheard, /^lmstudio: nobody there; no answer for 31 questions in a row, so the download is no longer/],
];

for (const [what, answer, words] of standing) {
  test(`${what} is tolerated for thirty questions in a row and no longer; downloading begins the count again`, async () => {
    const patient = await run({ answers: [going, ...times(30, answer), going, ...times(30, answer), completed] });
    assert.equal(patient.end, 'success');
    const stuck = await run({ answers: [going, answer] });
    assert.equal(stuck.end, 'backend_error');
    assert.match(stuck.message, words);
    assert.equal(stuck.ids.length, 31);
  });
}

test('kinds of standing still are counted together', async () => {
  const { ids, end } = await run({
    answers: [going, ...times(15, { state: 'paused' }), ...times(15, unheard), { state: 'x' }],
  });
  assert.equal(end, 'backend_error');
  assert.equal(ids.length, 31);
});

test('a download that says so may take as long as it takes, also after its last byte', async () => {
  const last: Download = { state: 'downloading', bytesCompleted: 9, bytesTotal: 9 };
  const { end, seen } = await run({ answers: [going, ...times(500, last), completed] });
  assert.equal(end, 'success');
  assert.ok(seen.slice(1, -1).every(({ status }) => status === 'finalizing'));
});

test('a refusal in the middle ends the pull at once', async () => {
  const { message, ids } = await run({ answers: [going, going, backendError('lmstudio: Download job not found')] });
  assert.equal(message, 'lmstudio: Download job not found');
  assert.equal(ids.length, 2);
});

test('a download that became another key is success and says which', async () => {
  const link = 'https://huggingface.co/lmstudio-community/Qwen3-8B-GGUF';
  const { end, seen } = await run({
    answers: [going, completed],
    reference: link,
    library: [{ old: 1 }, { old: 1, 'qwen/qwen3-8b': 42 }],
  });
  assert.equal(end, 'success');
  assert.deepEqual(steps(seen).at(-1), ['completed as qwen/qwen3-8b', 42, 42]);
});

test('the library may need a moment to learn of new files, and to be read', async () => {
  const answers = [going, completed];
  assert.equal((await run({ answers, library: [{}, {}, {}, { [ref]: 1 }] })).end, 'success');
  assert.equal((await run({ answers, library: [{}, backendError('x'), { [ref]: 1 }] })).end, 'success');
  const never = await run({ answers, library: [{}] });
  assert.equal(never.end, 'not_found');
  assert.equal(never.looks, 4, 'one before and three after');
  const dead = await run({ answers, library: [{}, backendError('lmstudio: dead')] });
  assert.equal(dead.message, 'lmstudio: dead');
});

test('a download that is not found in the library has failed, with the keys it may be under', async () => {
  const { end, message, seen } = await run({
    answers: [going, completed],
    reference: 'https://huggingface.co/lmstudio-community/Qwen3-8B-GGUF',
    library: [{ old: 1, 'qwen/qwen3-8b': 2 }],
  });
  assert.equal(end, 'not_found');
  assert.equal(
    message,
    'model not found: lmstudio: LM Studio downloaded it, but its library has no single model for ' +
      'https://huggingface.co/lmstudio-community/Qwen3-8B-GGUF: it keeps the model under another key; it may be qwen/qwen3-8b',
  );
  assert.ok(
    seen.every(({ status }) => !status.startsWith('completed')),
    'nothing said that it is complete',
  );
});

test('without the library nothing is downloaded', async () => {
  const { message, seen } = await run({ answers: [], library: [backendError('lmstudio: dead')] });
  assert.equal(message, 'lmstudio: dead');
  assert.equal(seen.length, 0);
});

test('who leaves is told as the last status that the server goes on; after the end there is nothing to tell', async () => {
  const { message, seen } = await run({ answers: [{ ...going, bytesTotal: 9 }, going], leaveAt: 3 });
  assert.equal(message, 'lmstudio: left');
  assert.deepEqual(steps(seen).at(-1), ['no longer followed; LM Studio goes on with the download', 0, 9]);
  const after = await run({ answers: [completed], library: [{}], leaveAt: 1 });
  assert.equal(after.message, 'lmstudio: left');
  assert.deepEqual(after.seen, []);
});
