import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PullProgress } from '../../../src/domain.ts';
import { linesOf } from '../../../src/drivers/lines.ts';
import { progressOf } from '../../../src/drivers/ollama/pull.ts';
import { GatewayError } from '../../../src/errors.ts';
import { fixture } from './fixtures.ts';

interface End {
  /** `success`, or the code of the failure. */
  readonly end: string;
  readonly message?: RegExp;
  readonly completed: number;
  readonly total: number;
}

const ends: Readonly<Record<string, End>> = {
  'pull-ok.ndjson': { end: 'success', completed: 2_019_387_077, total: 2_019_387_077 },
  'pull-cached.ndjson': { end: 'success', completed: 2_019_387_077, total: 2_019_387_077 },
  'pull-regress.ndjson': { end: 'success', completed: 4_000_000_512, total: 4_000_000_512 },
  'pull-safetensors.ndjson': { end: 'success', completed: 17_179_869_184, total: 17_179_869_184 },
  'pull-error.ndjson': {
    end: 'not_found',
    message: /^model not found: ollama: pull model manifest: file does not exist$/,
    completed: 0,
    total: 0,
  },
  'pull-error-412.ndjson': {
    end: 'backend_error',
    message:
      /^ollama: pull model manifest: 412: The model you are attempting to pull requires a newer version of Ollama\. Please download the latest version at: https:\/\/ollama\.com\/download$/,
    completed: 0,
    total: 0,
  },
  'pull-digest-mismatch.ndjson': {
    end: 'backend_error',
    message: /^ollama: digest mismatch, file must be downloaded again: want sha256:55eae5\w+, got sha256:2f05d4\w+$/,
    completed: 800_000_000,
    total: 800_000_000,
  },
  'pull-truncated.ndjson': {
    end: 'backend_error',
    message:
      /^ollama: POST \/api\/pull: the stream ended without success after 400000000 of 800000000 bytes; a new pull/,
    completed: 400_000_000,
    total: 800_000_000,
  },
};

async function* from(chunks: readonly Uint8Array[]) {
  yield* chunks;
}

/** Replays chunks to the end, checking on the way that bytes never go back. */
async function replay(chunks: readonly Uint8Array[]) {
  const seen: PullProgress[] = [];
  let before = { bytesCompleted: 0, bytesTotal: 0 };
  try {
    for await (const step of progressOf(linesOf(from(chunks), 'ollama: POST /api/pull'))) {
      assert.ok(step.bytesCompleted >= before.bytesCompleted && step.bytesTotal >= before.bytesTotal);
      assert.ok(step.bytesCompleted <= step.bytesTotal);
      seen.push(step);
      before = step;
    }
    return { seen, end: 'success', message: '' };
  } catch (error) {
    assert.ok(error instanceof GatewayError);
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
  assert.equal(seen[0]?.status, 'pulling manifest');
  if (end === 'success') assert.equal(last?.status, 'success');
}

const withCarriageReturns = (bytes: Buffer) => Buffer.from(bytes.toString().replaceAll('\n', '\r\n'));

for (const name of Object.keys(ends)) {
  const variants = [fixture(name), withCarriageReturns(fixture(name))];

  test(`${name} ends the same whole, byte by byte and cut at every position, with either line end`, async () => {
    for (const bytes of variants) {
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
}

test('the bytes of a regressing layer stand still until it catches up', async () => {
  const { seen } = await replay([fixture('pull-regress.ndjson')]);
  assert.deepEqual(
    seen.map(({ bytesCompleted }) => bytesCompleted),
    [
      0, 0, 1_200_000_000, 1_900_000_000, 1_900_000_000, 1_900_000_000, 2_600_000_000, 2_600_000_000, 4_000_000_000,
      4_000_000_512, 4_000_000_512, 4_000_000_512, 4_000_000_512, 4_000_000_512, 4_000_000_512,
    ],
  );
  assert.ok(seen.some(({ status }) => status.startsWith("couldn't remove unused layers") && status.includes('🚧')));
});

const text = (...lines: string[]) => [Buffer.from(lines.join('\n'))];

test('a stream that ends without success has failed, with or without a last line end', async () => {
  const table: string[][] = [
    [],
    ['', '', ''],
    ['{"status":"pulling manifest"}', ''],
    ['{"status":"verifying sha256 digest"}', '{"status":"writing manifest"}', ''],
    ['{"status":"pulling manifest"}', '{"status":"succ'],
  ];
  for (const lines of table) {
    const { end, message } = await replay(text(...lines));
    assert.equal(end, 'backend_error');
    assert.equal(message, 'ollama: POST /api/pull: the stream ended without success; a new pull resumes');
  }
});

test('success counts without its line end, and what follows it does not', async () => {
  assert.equal((await replay(text('{"status":"success"}'))).end, 'success');
  assert.equal((await replay(text('{"status":"success"}', '{"error":"late"}', 'noise'))).end, 'success');
});

test('a line that is no JSON object fails the pull and is named', async () => {
  for (const line of ['<html><title>Sign in</title>', 'null', '17', '[]', 'x'.repeat(10_000)]) {
    const { end, message } = await replay(text('{"status":"pulling manifest"}', line, '{"status":"success"}', ''));
    assert.equal(end, 'backend_error');
    assert.match(message, /^ollama: POST \/api\/pull: a line that is not a JSON object: \S/);
    assert.doesNotMatch(message, /<html/);
    assert.ok(message.length < 300);
  }
});

test('an error line fails the pull whatever its form; an empty error is none', async () => {
  const table: [string, string, RegExp][] = [
    ['{"error":"max retries exceeded: EOF"}', 'backend_error', /^ollama: max retries exceeded: EOF$/],
    ['{"error":{"message":"odd form"}}', 'backend_error', /^ollama: odd form$/],
    ['{"error":{"why":1}}', 'backend_error', /^ollama: {"why":1}$/],
    ['{"status":"success","error":"no"}', 'backend_error', /^ollama: no$/],
    [
      '{"error":"pull model manifest: 404: {\\"error\\":\\"Repository not found\\"}"}',
      'not_found',
      /Repository not found/,
    ],
    [
      '{"error":"pull model manifest: Get \\"https://r\\": dial tcp: lookup r: host not found"}',
      'backend_error',
      /host not found$/,
    ],
    ['{"error":"open blob: file does not exist"}', 'backend_error', /^ollama: open blob/],
    [
      '{"error":"pull model manifest: realm host \\"huggingface.co\\" does not match original host \\"hf.co\\""}',
      'backend_error',
      /does not exist on Hugging Face, or it is private$/,
    ],
    ['{"error":""}\n{"status":"success"}', 'success', /^$/],
    ['{"error":null,"status":"success"}', 'success', /^$/],
  ];
  for (const [line, end, message] of table) {
    const got = await replay(text(line, ''));
    assert.equal(got.end, end, line);
    assert.match(got.message, message);
  }
});

test('counts that are no counts are ignored, unknown fields pass, layers without a total grow with their bytes', async () => {
  const { seen, end } = await replay(
    text(
      '{"status":"a","digest":"sha256:1","total":-5,"completed":"12"}',
      '{"status":"b","digest":"sha256:1","total":1e400,"completed":1.5}',
      '{"status":"c","digest":5,"total":10,"completed":10}',
      '{"digest":"sha256:1","total":100,"completed":50,"more":{}}',
      '{"unknown":true}',
      '{"status":"d","digest":"sha256:2","completed":7}',
      '{"status":"e","digest":"sha256:1","total":80,"completed":200}',
      '{"status":"success"}',
      '',
    ),
  );
  assert.equal(end, 'success');
  assert.deepEqual(
    seen.map(({ status, bytesCompleted, bytesTotal }) => [status, bytesCompleted, bytesTotal]),
    [
      ['a', 0, 0],
      ['b', 0, 0],
      ['c', 0, 0],
      ['d', 57, 107],
      ['e', 207, 207],
      ['success', 207, 207],
    ],
  );
});
