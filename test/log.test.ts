import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { backendError, GatewayError } from '../src/errors.ts';
import { createLogger, type LogOptions } from '../src/log.ts';

interface DescribedError {
  readonly message: string;
  readonly stack?: string;
  readonly cause?: DescribedError;
}

interface Line extends Readonly<Record<string, unknown>> {
  readonly time: string;
  readonly msg: string;
  readonly err: DescribedError;
}

/** A logger and what it wrote. */
function recorder(options: Partial<LogOptions> & { isTTY?: boolean; colors?: boolean } = {}) {
  const { isTTY = false, colors = false, ...rest } = options;
  const written: string[] = [];
  const stream = { write: (line: string) => written.push(line), isTTY, hasColors: () => colors };
  const log = createLogger({ format: 'json', stream, ...rest });
  return { log, written, last: () => JSON.parse(written.at(-1) ?? '') as Line };
}

const jwt = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJqYW5lIn0.dGhpcy1pcy1ub3QtcmVhbA';
const hubToken = 'hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567';

describe('lines', () => {
  test('a line is one JSON object with time, level, msg and the fields', () => {
    const { log, written, last } = recorder();
    log.info({ backend: 'ollama', durationMs: 12 }, 'model loaded');
    assert.match(written[0] ?? '', /^\{.*\}\n$/);
    const { time, ...line } = last();
    assert.deepEqual(line, { level: 'info', backend: 'ollama', durationMs: 12, msg: 'model loaded' });
    assert.equal(new Date(time).toISOString(), time);
  });

  test('debug lines are written only when asked for', () => {
    const [quiet, verbose] = [recorder(), recorder({ verbose: true })];
    for (const { log } of [quiet, verbose]) log.debug('behind the scenes');
    assert.deepEqual([quiet.written.length, verbose.written.length], [0, 1]);
  });

  test('auto writes for people on a terminal and for machines elsewhere; json and text are always that', () => {
    for (const [format, isTTY, isJson] of [
      ['auto', true, false],
      ['auto', false, true],
      ['json', true, true],
      ['text', false, false],
    ] as const) {
      const { log, written } = recorder({ format, isTTY });
      log.info('hello');
      assert.equal(written[0]?.startsWith('{'), isJson, `${format} ${isTTY}`);
    }
  });
});

describe('errors', () => {
  const refused = Object.assign(
    new AggregateError([new Error('connect ECONNREFUSED ::1:1'), new Error('connect ECONNREFUSED 127.0.0.1:1')], ''),
    { code: 'ECONNREFUSED' },
  );
  const failed = new TypeError('fetch failed', { cause: refused });

  test('an error is its message, its code and its causes, wherever it hangs', () => {
    const { log, last } = recorder();
    const expected = {
      type: 'TypeError',
      message: 'fetch failed',
      cause: {
        type: 'AggregateError',
        message: '',
        code: 'ECONNREFUSED',
        errors: [
          { type: 'Error', message: 'connect ECONNREFUSED ::1:1' },
          { type: 'Error', message: 'connect ECONNREFUSED 127.0.0.1:1' },
        ],
      },
    };
    log.warn({ err: failed }, 'backend is gone');
    assert.deepEqual(last().err, expected);
    log.warn({ backend: { name: 'ollama', error: failed } }, 'backend is gone');
    assert.deepEqual(last().backend, { name: 'ollama', error: expected });
    log.child({ err: failed }).warn('backend is gone');
    assert.deepEqual(last().err, expected);
  });

  test('an error alone gives the line its message', () => {
    const { log, last } = recorder();
    log.warn(failed);
    assert.equal(last().msg, 'fetch failed');
    assert.equal(last().err.message, 'fetch failed');
  });

  test('a stack is written for what nobody expected, and only at level error', () => {
    const stacks = (error?: DescribedError): boolean[] =>
      error === undefined ? [] : ['stack' in error, ...stacks(error.cause)];
    const cause = new Error('deep');
    for (const [error, level, expected] of [
      [new Error('surprise', { cause }), 'error', [true, true]],
      [new Error('surprise', { cause }), 'fatal', [true, true]],
      [new Error('surprise', { cause }), 'warn', [false, false]],
      [backendError('ollama said no', { cause }), 'error', [false, false]],
      [new GatewayError('internal_error', 'unexpected error', { cause }), 'error', [false, true]],
    ] as const) {
      const { log, last } = recorder();
      log[level]({ err: error }, 'failed');
      assert.deepEqual(stacks(last().err), expected, `${error.message} ${level}`);
    }
  });

  test('a circle of causes or objects ends', () => {
    const { log, last } = recorder();
    const error = new Error('round');
    error.cause = error;
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    log.error({ err: error, circle }, 'and round');
    assert.equal(last().err.cause?.cause?.message, 'round');
    assert.match(JSON.stringify(last().circle), /\[deeper\]/);
  });
});

describe('secrets', () => {
  test('what hangs on a secret key goes, however deep and whatever it is', () => {
    const { log, last } = recorder();
    log.info(
      {
        headers: { Authorization: 'x', cookie: ['a', 'b'], 'set-cookie': 'c', 'x-api-key': 'd', accept: '*/*' },
        variables: [{ input: { accessToken: { value: 'e' }, password: 7, apiKey: null } }],
        token: 'f',
        maxTokens: 5,
        tokenizer: 'bpe',
      },
      'request',
    );
    const { time: _, ...line } = last();
    assert.deepEqual(line, {
      level: 'info',
      headers: {
        Authorization: '[redacted]',
        cookie: '[redacted]',
        'set-cookie': '[redacted]',
        'x-api-key': '[redacted]',
        accept: '*/*',
      },
      variables: [{ input: { accessToken: '[redacted]', password: '[redacted]', apiKey: '[redacted]' } }],
      token: '[redacted]',
      maxTokens: 5,
      tokenizer: 'bpe',
      msg: 'request',
    });
  });

  test('what looks like a secret goes from every string', () => {
    const nested = JSON.stringify({ outer: JSON.stringify({ token: 'se"cr\\et', n: 1 }), last: 'kept' });
    const cases: [string, string][] = [
      [`pull with ${hubToken} failed`, 'pull with [redacted] failed'],
      [`line\n${hubToken}`, 'line\n[redacted]'],
      [`got ${jwt}, sorry`, 'got [redacted], sorry'],
      [`line\n${jwt}`, 'line\n[redacted]'],
      [`${jwt}.a.b`, '[redacted]'],
      ['Bearer abc-def_123.x/y+z==', 'Bearer [redacted]'],
      ['authorization: Basic amFuZTpodW50ZXIy\r\naccept: */*', 'authorization: [redacted]\r\naccept: */*'],
      ['Cookie: session=1; theme=dark', 'Cookie: [redacted]'],
      ['http://hub/x?token=abc&revision=main', 'http://hub/x?token=[redacted]&revision=main'],
      ['{"token":"abc","a":1}', '{"token":"[redacted]","a":1}'],
      ['{"idToken": "a\\"b\\\\", "a": 1}', '{"idToken": "[redacted]\\\\", "a": 1}'],
      ['mutation { login(password: "a b", user: "jane") }', 'mutation { login(password: "[redacted]", user: "jane") }'],
      [nested, nested.replace(/se.*et/, '[redacted]')],
      ['{"password":"never closed \\', '{"password":"[redacted]\\'],
    ];
    for (const [said, expected] of cases) {
      const { log, last } = recorder();
      log.info({ deep: [{ said }] }, said);
      assert.equal(last().msg, expected);
      assert.deepEqual(last().deep, [{ said: expected }]);
      log.child({ said }).error({ err: new Error('outer', { cause: new Error(said) }) }, 'failed');
      assert.equal(last().said, expected);
      assert.equal(last().err.cause?.message, expected);
      assert.equal(last().err.cause?.stack?.includes(said), false);
    }
  });

  test('a secret binding of a child logger goes, quotes and all', () => {
    const { log, last } = recorder();
    log.child({ token: 'a"b\\', after: 'kept' }).info('hello');
    assert.deepEqual([last().token, last().after, last().msg], ['[redacted]', 'kept', 'hello']);
  });

  test('whatever is said, the line stays JSON', () => {
    const pieces = ['"', '\\', '\n', ' ', ':', '=', 'token', '{"token":"', hubToken, 'Bearer ', 'cookie: '];
    const sayings = (length: number): string[] =>
      length === 0 ? [''] : sayings(length - 1).flatMap(begun => pieces.map(piece => begun + piece));
    const { log, written } = recorder();
    for (const said of sayings(4)) log.info({ said, json: JSON.stringify({ token: said }), kept: said.length }, said);
    for (const line of written) {
      assert.deepEqual(Object.keys(JSON.parse(line)), ['level', 'time', 'said', 'json', 'kept', 'msg'], line);
    }
  });

  test('ordinary words stay', () => {
    for (const said of [
      'unexpected token } in JSON at position 5',
      'Bearer resource_metadata="http://box/.well-known/x", error="invalid_token"',
      'hf_transfer is off; eyJ is how a JWT begins; hf.co/org/repo:Q4_K_M',
      '{"maxTokens":5,"token_count":"7","tokenizer":"bpe"}',
      'no cookie, no authorization, no password',
    ]) {
      const { log, last } = recorder();
      log.info({ said }, said);
      assert.deepEqual([last().msg, last().said], [said, said]);
    }
  });

  test('lines for people have no secrets either', () => {
    const { log, written } = recorder({ format: 'text' });
    log.child({ token: 'abc' }).error({ err: new Error(`no ${hubToken}`), apiKey: 'def' }, jwt);
    assert.doesNotMatch(written.join(''), /abc|def|hf_|eyJ/);
  });
});

describe('lines for people', () => {
  test('a line reads from left to right: when, how bad, what, and the facts', () => {
    const { log, written } = recorder({ format: 'text' });
    log.info({ backend: 'ollama', model: 'qwen3:8b', note: 'two words', n: 1, list: ['a'] }, 'model loaded');
    log.warn(
      { err: new Error('fetch failed', { cause: Object.assign(new Error('no route'), { code: 'E1' }) }) },
      'gone',
    );
    assert.match(
      written[0] ?? '',
      /^\d\d:\d\d:\d\d {2}INFO: model loaded backend=ollama model=qwen3:8b note="two words" n=1 list=\["a"\]\n$/,
    );
    assert.match(written[1] ?? '', /^\d\d:\d\d:\d\d {2}WARN: gone err="fetch failed, because no route \(E1\)"\n$/);
  });

  test('the stack of a surprise stands below its line', () => {
    const { log, written } = recorder({ format: 'text' });
    log.error(new RangeError('surprise'));
    assert.match(written[0] ?? '', /^.* ERROR: surprise err=surprise\n {4}RangeError: surprise\n {8}at .*/);
  });

  test('nothing that is logged can move the cursor or break the line', () => {
    const { log, written } = recorder({ format: 'text' });
    const evil = 'a\u001b[2Jb\u009b1mc\r\nd';
    log.info({ model: evil, err: new Error(evil), list: [evil] }, evil);
    assert.equal(written.length, 1);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
    assert.doesNotMatch((written[0] ?? '').slice(0, -1), /[\u0000-\u001f\u007f-\u009f]/);
  });

  test('colours are for terminals that have them', () => {
    for (const [isTTY, colors] of [
      [true, true],
      [true, false],
      [false, true],
    ] as const) {
      const { log, written } = recorder({ format: 'text', isTTY, colors });
      log.info({ a: 1 }, 'hello');
      assert.equal(written.join('').includes('\u001b['), isTTY && colors);
    }
  });
});

describe('standard output', () => {
  const logModule = new URL('../src/log.ts', import.meta.url).href;

  /** A process that logs, and its standard output. */
  const logging = (body: string, stdout: 'pipe' | number = 'pipe') =>
    spawn(
      process.execPath,
      ['--input-type=module', '-e', `import { createLogger } from ${JSON.stringify(logModule)};\n${body}`],
      { stdio: ['pipe', stdout, 'pipe'] },
    );

  for (const format of ['json', 'text']) {
    test(`the last ${format} line before an exit gets out`, async () => {
      const child = logging(`
        const log = createLogger({ format: '${format}' });
        for (let i = 0; i < 100; i++) log.info('line ' + i);
        log.fatal('the end');
        process.exit(1);`);
      const [[code], out] = await Promise.all([once(child, 'exit'), text(child.stdout as Readable)]);
      assert.equal(code, 1);
      assert.match(out, /the end/);
      assert.equal(out.trim().split('\n').length, 101);
    });
  }

  test('a reader that stops reading stops nobody, costs bounded memory, and learns how many lines it lost', async () => {
    const child = logging(`
      const log = createLogger({ format: 'json' });
      const before = process.memoryUsage.rss();
      const words = 'x'.repeat(1000);
      for (let i = 0; i < 40_000; i++) log.info(words);
      process.stderr.write('done ' + Math.round((process.memoryUsage.rss() - before) / 2 ** 20) + '\\n');
      await new Promise(resume => process.stdin.once('data', resume));
      log.info('later');
      process.stdin.destroy();`);
    const [said] = await once(child.stderr as Readable, 'data');
    assert.ok(Number(/^done (\d+)/.exec(said)?.[1]) < 150, `MiB: ${said}`);

    const out = text(child.stdout as Readable);
    child.stdin?.write('go on\n');
    const lines = (await out)
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>);
    const lost = lines.find(line => 'lost' in line);
    assert.equal(lost?.level, 'warn');
    assert.equal(lines.length - 1 + Number(lost?.lost), 40_001);
  });

  test('a reader that went away does not end the process', async () => {
    const child = logging(`
      const log = createLogger({ format: 'json' });
      process.stdin.once('data', () => {
        for (let i = 0; i < 10; i++) log.info('anybody there?');
        setImmediate(() => { log.info('no'); setImmediate(() => process.exit(7)); });
      });`);
    child.stdout?.destroy();
    child.stdin?.write('go on\n');
    assert.deepEqual(await once(child, 'exit'), [7, null]);
  });

  test('a full disk does not end the process', {
    skip: process.platform !== 'linux' && 'needs /dev/full',
  }, async () => {
    const child = logging(
      `
      const log = createLogger({ format: 'json' });
      for (let i = 0; i < 10; i++) log.info('no room');
      setImmediate(() => { log.info('still none'); setImmediate(() => process.exit(7)); });`,
      openSync('/dev/full', 'w'),
    );
    assert.deepEqual(await once(child, 'exit'), [7, null]);
  });
});
