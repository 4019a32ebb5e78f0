import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PullProgress } from '../../../src/domain.ts';
import { eventsOf } from '../../../src/drivers/lemonade/events.ts';
import { progressOf, thinned } from '../../../src/drivers/lemonade/pull.ts';
import { linesOf } from '../../../src/drivers/lines.ts';
import { GatewayError } from '../../../src/errors.ts';
import { all } from '../scripted.ts';
import { fixture } from './fixtures.ts';

interface End {
  /** `success`, or the code of the failure. */
  readonly end: string;
  readonly message?: RegExp;
  readonly completed: number | undefined;
  readonly total: number | undefined;
}

const ends: Readonly<Record<string, End>> = {
  'pull.sse': { end: 'success', completed: 12_582_912, total: 12_582_912 },
  'pull-installed.sse': { end: 'success', completed: 12_582_912, total: 12_582_912 },
  'pull-resume.sse': { end: 'success', completed: 41_943_040, total: 41_943_040 },
  'pull-flm.sse': { end: 'success', completed: 2_832_413_491, total: 0 },
  'pull-collection.sse': { end: 'success', completed: 459_681_664, total: 459_681_664 },
  'pull-error.sse': {
    end: 'not_found',
    message: /^model not found: lemonade: Nope-GGUF is not in the catalog of the server; names differ by case/,
    completed: undefined,
    total: undefined,
  },
  'pull-error-late.sse': {
    end: 'backend_error',
    message:
      /^lemonade: Failed to download file: Gone-Q4_K_M\.gguf URL: https:\S+ Download failed after 11 attempts\. Last/,
    completed: 28,
    total: 1_048_576,
  },
  'pull-cut.sse': {
    end: 'backend_error',
    message:
      /^lemonade: POST \/api\/v1\/pull: the stream ended without completing after 10485760 of 12582912 bytes; a new pull resumes$/,
    completed: 10_485_760,
    total: 12_582_912,
  },
};

async function* from(chunks: readonly Uint8Array[]) {
  yield* chunks;
}

const what = 'lemonade: POST /api/v1/pull';

/** Replays chunks to the end, checking on the way that bytes never go back. */
async function replay(chunks: readonly Uint8Array[]) {
  const seen: PullProgress[] = [];
  let before = { bytesCompleted: 0, bytesTotal: 0 };
  try {
    for await (const step of progressOf(eventsOf(linesOf(from(chunks), what), what), 'Nope-GGUF')) {
      const back = step.bytesCompleted < before.bytesCompleted || step.bytesTotal < before.bytesTotal;
      // An assertion for every step of thousands of replays would be most of their time.
      if (back || (step.bytesTotal > 0 && step.bytesCompleted > step.bytesTotal)) assert.fail('bytes went back');
      seen.push(step);
      before = step;
    }
    return { seen, end: 'success', message: '' };
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return { seen, end: error.code, message: error.message };
  }
}

function check(name: string, { seen, end, message }: Awaited<ReturnType<typeof replay>>) {
  const expected = ends[name];
  assert.ok(expected);
  assert.equal(end, expected.end, `${name}: ${message}`);
  if (expected.message) assert.match(message, expected.message);
  const last = seen.at(-1);
  assert.deepEqual([last?.bytesCompleted, last?.bytesTotal], [expected.completed, expected.total], name);
  assert.equal(last?.status === 'success', end === 'success');
}

const withCarriageReturns = (bytes: Buffer) => Buffer.from(bytes.toString().replaceAll('\n', '\r\n'));

for (const name of Object.keys(ends))
  test(`${name} ends the same whole, byte by byte and cut at every position, with either line end`, async () => {
    for (const bytes of [fixture(name), withCarriageReturns(fixture(name))]) {
      const whole = await replay([bytes]);
      check(name, whole);
      const single = await replay(Array.from(bytes, byte => Uint8Array.of(byte)));
      assert.deepEqual(single, whole);
      // Compared as text: thousands of deep comparisons would be most of the suite's time.
      const text = JSON.stringify(whole);
      for (let cut = 1; cut < bytes.length; cut++)
        assert.equal(
          JSON.stringify(await replay([bytes.subarray(0, cut), bytes.subarray(cut)])),
          text,
          `cut at ${cut}`,
        );
    }
  });

test('a stream that stops anywhere has failed, unless all of its last event has come', async () => {
  const bytes = fixture('pull.sse');
  const needed = bytes.toString().trimEnd().length;
  for (let length = 0; length < needed; length++)
    assert.equal((await replay([bytes.subarray(0, length)])).end, 'backend_error', `${length} bytes`);
  for (let length = needed; length <= bytes.length; length++)
    assert.equal((await replay([bytes.subarray(0, length)])).end, 'success', `${length} bytes`);
});

const steps = async (name: string) => (await replay([fixture(name)])).seen.map(step => Object.values(step));

test('two files add up to one total that stays when the server says 0', async () => {
  assert.deepEqual(await steps('pull.sse'), [
    ['downloading Fake-Q4_K_M.gguf (1/2)', 0, 12_582_912],
    ['downloading Fake-Q4_K_M.gguf (1/2)', 0, 12_582_912],
    ['downloading Fake-Q4_K_M.gguf (1/2)', 128_000, 12_582_912],
    ['downloading Fake-Q4_K_M.gguf (1/2)', 1_048_576, 12_582_912],
    ['downloading Fake-Q4_K_M.gguf (1/2)', 5_242_880, 12_582_912],
    ['verifying Fake-Q4_K_M.gguf (1/2)', 9_437_184, 12_582_912],
    ['downloading mmproj-F16.gguf (2/2)', 9_437_184, 12_582_912],
    ['downloading mmproj-F16.gguf (2/2)', 9_437_184, 12_582_912],
    ['downloading mmproj-F16.gguf (2/2)', 9_631_744, 12_582_912],
    ['downloading mmproj-F16.gguf (2/2)', 11_534_336, 12_582_912],
    ['verifying mmproj-F16.gguf (2/2)', 12_582_912, 12_582_912],
    ['success', 12_582_912, 12_582_912],
  ]);
});

test('a resumed pull begins where the last one ended, and stands still when a file has to be fetched again', async () => {
  const bytes = (await steps('pull-resume.sse')).map(([, completed]) => completed);
  assert.equal(
    bytes.find(each => each !== 0),
    8_388_608,
  );
  assert.deepEqual(bytes.slice(-6), Array(6).fill(41_943_040));
});

test('an NPU download has no total: bytes, and a share of the whole that never goes back', async () => {
  assert.deepEqual(
    (await steps('pull-flm.sse')).map(([status, bytes]) => [status, bytes]),
    [
      ['downloading config.json (1/5)', 0],
      ['downloading config.json (1/5)', 1_258_291],
      ['downloading (1/5), 20 % of all', 1_258_291],
      ['downloading model.q4nx (2/5), 20 % of all', 1_258_291],
      ['downloading model.q4nx (2/5), 20 % of all', 420_688_691],
      ['downloading model.q4nx (2/5), 20 % of all', 2_832_413_491],
      ['downloading (2/5), 40 % of all', 2_832_413_491],
      ['downloading tokenizer.json (3/5), 40 % of all', 2_832_413_491],
      ['success', 2_832_413_491],
    ],
  );
});

test('the components of a collection add up, and the total grows with each', async () => {
  const seen = await steps('pull-collection.sse');
  assert.deepEqual(
    seen.map(([, ...bytes]) => bytes),
    [
      [0, 381_681_664],
      [200_000_000, 381_681_664],
      [381_681_664, 381_681_664],
      [381_681_664, 459_681_664],
      [459_373_377, 459_681_664],
      [459_681_664, 459_681_664],
      [459_681_664, 459_681_664],
    ],
  );
});

test('a file name that is not ASCII arrives whole', async () => {
  assert.ok((await steps('pull-cut.sse')).some(([status]) => status === 'downloading mmproj-視覚-F16.gguf (2/2)'));
});

const event = (name: string, data: unknown) =>
  `${name === '' ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
const text = (...events: string[]) => [Buffer.from(events.join(''))];
const progress = (data: object) => event('progress', data);
const pairs = ({ seen }: { seen: PullProgress[] }) => seen.map(step => [step.bytesCompleted, step.bytesTotal]);

test('more shapes of counting: one file without an overall size, the counters of other releases, mixed collections', async () => {
  const file = (n: number, of: number, done: number, size: number, total?: number) =>
    progress({
      file: `f${n}`,
      file_index: n,
      total_files: of,
      bytes_downloaded: done,
      bytes_total: size,
      total_download_size: total,
    });
  const table: [string, string[], number[][]][] = [
    [
      'one file, its own size is the total; a 404 page does not shrink it',
      [file(1, 1, 5, 10), file(1, 1, 5, 0), file(1, 1, 4, 4)],
      [
        [5, 10],
        [5, 10],
        [5, 10],
      ],
    ],
    [
      'several files, nobody says how much',
      [file(1, 2, 10, 10), file(2, 2, 5, 10)],
      [
        [10, 0],
        [15, 0],
      ],
    ],
    [
      'a cumulative counter is preferred',
      [progress({ file_index: 2, bytes_downloaded: 1, cumulative_bytes_downloaded: 41, total_download_size: 50 })],
      [[41, 50]],
    ],
    [
      'so is that of the finished files',
      [progress({ file_index: 2, bytes_downloaded: 1, completed_files_bytes: 40, total_download_size: 50 })],
      [[41, 50]],
    ],
    [
      'files without a number are told apart by name',
      [progress({ file: 'a', bytes_downloaded: 3 }), progress({ file: 'b', bytes_downloaded: 4 })],
      [
        [3, 0],
        [7, 0],
      ],
    ],
    ['a total that is too small is never exceeded', [file(1, 1, 60, 60, 50)], [[50, 50]]],
    [
      'a total that comes late is not below what is there',
      [file(1, 2, 60, 60), file(2, 2, 1, 10, 50)],
      [
        [60, 0],
        [60, 60],
      ],
    ],
    [
      'a total that is mended in the middle is the same component',
      [file(1, 2, 10, 10, 20), file(2, 2, 5, 15, 25)],
      [
        [10, 20],
        [15, 25],
      ],
    ],
    [
      'a component of unknown size after a known one moves on',
      [file(1, 2, 10, 10, 30), file(2, 2, 20, 20, 30), file(1, 3, 5, 7, 0), file(2, 3, 9, 9, 0)],
      [
        [10, 30],
        [30, 30],
        [35, 35],
        [44, 44],
      ],
    ],
    [
      'a known one after one of unknown size',
      [file(1, 2, 10, 10, 0), file(2, 2, 20, 20, 0), file(1, 1, 5, 40, 40)],
      [
        [10, 0],
        [30, 0],
        [35, 70],
      ],
    ],
    [
      'counts that are no counts are ignored',
      [progress({ file: 5, file_index: '1', bytes_downloaded: -4, bytes_total: 1.5, total_download_size: '9' })],
      [[0, 0]],
    ],
  ];
  for (const [claim, events, expected] of table) {
    const got = await replay(text(...events, event('complete', {})));
    assert.equal(got.end, 'success', claim);
    const last = expected.at(-1) ?? [];
    assert.deepEqual(pairs(got), [...expected, [last[1] || last[0], last[1]]], claim);
  }
});

test('the words name file and count as far as they are known', async () => {
  const { seen } = await replay(
    text(
      progress({}),
      progress({ file: 'a\nb', file_index: 1 }),
      progress({ file: 'c', file_index: 1, total_files: 2 }),
      progress({ file: 'Overall progress', percent: 400 }),
      progress({ file: 'Overall progress', percent: 12 }),
      event('complete', { status: 'ok' }),
    ),
  );
  assert.deepEqual(
    seen.map(({ status }) => status),
    [
      'downloading',
      'downloading a b',
      'downloading c (1/2)',
      'downloading, 100 % of all',
      'downloading, 100 % of all',
      'success',
    ],
  );
});

test('an event without a name is progress, one of another name is nothing, what follows the end is not read', async () => {
  const { seen, end } = await replay(
    text(
      ': hello\n\n',
      event('', { file: 'a', bytes_downloaded: 1 }),
      event('ping', 'not json'),
      event('future', { bytes_downloaded: 9 }),
      event('complete', {}),
      event('error', { error: 'late' }),
      'noise',
    ),
  );
  assert.equal(end, 'success');
  assert.deepEqual(pairs({ seen }), [
    [1, 0],
    [1, 0],
  ]);
});

test('an error fails the pull whatever its form and its event; the text decides only by its own sentences', async () => {
  const table: [string, unknown, string, RegExp][] = [
    ['error', { error: 'boom\n\tbang' }, 'backend_error', /^lemonade: boom bang$/],
    ['error', { error: { message: 'nested' } }, 'backend_error', /^lemonade: nested$/],
    ['error', { error: { why: 1 } }, 'backend_error', /^lemonade: {"why":1}$/],
    ['error', { message: 'odd' }, 'backend_error', /^lemonade: {"message":"odd"}$/],
    ['error', 'plain words', 'backend_error', /^lemonade: plain words$/],
    ['error', {}, 'backend_error', /^lemonade: {}$/],
    ['progress', { error: 'in a progress' }, 'backend_error', /^lemonade: in a progress$/],
    ['', { error: 'nameless' }, 'backend_error', /^lemonade: nameless$/],
    ['future', { error: 'of another name' }, 'backend_error', /^lemonade: of another name$/],
    ['complete', { status: 'error', message: 'no' }, 'backend_error', /^lemonade: no$/],
    ['complete', { status: 'error' }, 'backend_error', /^lemonade: it reports an error without words$/],
    ['error', { code: 'lemond_offline', error: 'Lemond is offline' }, 'backend_error', /^lemonade: Lemond is offline$/],
    ['error', { code: 'model_not_found', error: 'x' }, 'not_found', /^model not found: lemonade: x$/],
    [
      'error',
      { error: "Model 'X' is not available on this system. It needs an NPU." },
      'not_found',
      /^model not found: lemonade: Model 'X' is not available on this system\. It needs an NPU\.$/,
    ],
    [
      'error',
      { error: 'Hugging Face repository not found or not accessible: acme/x' },
      'not_found',
      /^model not found: lemonade: Hugging Face repository not found or not accessible: acme\/x$/,
    ],
    ['error', { error: 'Download validation failed: file not found' }, 'backend_error', /file not found$/],
  ];
  for (const [name, data, end, message] of table) {
    const got = await replay(text(progress({ bytes_downloaded: 1 }), event(name, data), event('complete', {})));
    assert.equal(got.end, end, JSON.stringify(data));
    assert.match(got.message, message);
    assert.equal(got.seen.length, 1);
  }
  for (const none of [{ error: null }, { error: '' }, { error: false }])
    assert.equal((await replay(text(event('complete', none)))).end, 'success');
});

test('progress that is no JSON object fails the pull and is named', async () => {
  for (const data of ['<html><title>Sign in</title>', 'null', '17', '[]', 'x'.repeat(10_000)]) {
    const { end, message } = await replay(text(progress({}), event('progress', data), event('complete', {})));
    assert.equal(end, 'backend_error');
    assert.match(message, /^lemonade: POST \/api\/v1\/pull: an event that is not a JSON object: \S/);
    assert.doesNotMatch(message, /<html/);
    assert.ok(message.length < 300);
  }
});

test('a stream that ends without a last event has failed', async () => {
  const reached =
    /^lemonade: POST \/api\/v1\/pull: the stream ended without completing( after 7 bytes)?; a new pull resumes$/;
  for (const chunks of [
    [],
    text('\n\n'),
    text(': only a comment'),
    text(progress({ bytes_downloaded: 7 })),
    text('OK'),
  ]) {
    const { end, message } = await replay(chunks);
    assert.equal(end, 'backend_error');
    assert.match(message, reached);
  }
});

test('steps are thinned to a few a second, but new words always pass', async () => {
  async function* given() {
    const status = (n: number) => (n === 900 ? 'verifying a' : n > 990 ? 'success' : 'downloading a');
    for (let n = 0; n < 992; n++) yield { status: status(n), bytesCompleted: n, bytesTotal: 992 };
  }
  let at = 0;
  const clock = () => at++;
  assert.deepEqual(
    (await all(thinned(given(), clock))).map(({ bytesCompleted }) => bytesCompleted),
    [0, 250, 500, 750, 900, 901, 991],
  );
  const back = [5_000, 4_000, 4_001];
  assert.equal((await all(thinned(given(), () => back.shift() ?? 4_001))).length, 5);
});
