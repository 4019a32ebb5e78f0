/** Many requests over kept connections, one at a time on each. The answers are counted, not read, so that we are not what is measured. */
import { connect, type Socket } from 'node:net';
import type { Child } from './child.ts';
import type { Measure } from './measure.ts';

const connections = 16;
/** How long one sample takes, in milliseconds. */
const sampleMs = 200;
/** A server that does not answer for this long has failed, in milliseconds. */
const silenceMs = 10_000;

export interface RequestOptions {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON with POST. */
  readonly body?: unknown;
}

export function requestOf({ path, headers = {}, body }: RequestOptions): Buffer {
  const text = body === undefined ? '' : JSON.stringify(body);
  const lines = Object.entries({
    host: 'localhost',
    ...(text && { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${text ? 'POST' : 'GET'} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`);
}

/** One answer, read: its status, and its body as text. */
export async function ask(port: number, { path, headers = {}, body }: RequestOptions) {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/**
 * Puts these requests to a server, in turn and over again, and measures what one costs. All of them must have answers of
 * one size: what arrives is counted by it.
 */
export async function createLoad(server: Child, port: number, requests: readonly Buffer[], status = 200) {
  const size = await sizeOfAnswer(port, requests[0] as Buffer, status);
  const workers = await Promise.all(Array.from({ length: connections }, () => createWorker(port, size)));
  let turn = 0;

  const measure: Measure = async () => {
    const cpuBefore = await server.cpu();
    const began = performance.now();
    const until = began + sampleMs;
    let answered = 0;
    using _awake = stayAwake();
    await Promise.all(
      workers.map(async worker => {
        while (performance.now() < until) {
          await worker.exchange(requests[turn++ % requests.length] as Buffer);
          answered++;
        }
      }),
    );
    const wall = ((performance.now() - began) * 1000) / answered;
    return { wall, cpu: ((await server.cpu()) - cpuBefore) / answered };
  };
  return {
    measure,
    [Symbol.dispose]() {
      for (const { socket } of workers) socket.destroy();
    },
  };
}

/**
 * Keeps us from waiting in the kernel: a server pays for waking whom it answers, and only one that is slower than we are would
 * have to.
 */
function stayAwake(): Disposable {
  let isAwake = true;
  const turn = () => {
    if (isAwake) setImmediate(turn);
  };
  turn();
  return {
    [Symbol.dispose]() {
      isAwake = false;
    },
  };
}

/** Bytes of an answer, head and all. Everything in them that changes from one to the next keeps its length. */
async function sizeOfAnswer(port: number, request: Buffer, status: number): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  socket.setTimeout(silenceMs, () => socket.destroy(new Error('no answer')));
  socket.write(request);
  let answer = Buffer.alloc(0);
  for await (const chunk of socket) {
    answer = Buffer.concat([answer, chunk]);
    const head = answer.indexOf('\r\n\r\n');
    if (head < 0) continue;
    const text = answer.toString('latin1', 0, head);
    if (!text.startsWith(`HTTP/1.1 ${status} `)) throw new Error(`expected ${status}, got ${text}`);
    const length = Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0);
    if (answer.length === head + 4 + length) return answer.length;
  }
  throw new Error('the server closed the connection');
}

interface Worker {
  readonly socket: Socket;
  exchange(request: Buffer): Promise<void>;
}

async function createWorker(port: number, size: number): Promise<Worker> {
  const connected = Promise.withResolvers<void>();
  let waiting: PromiseWithResolvers<void> = connected;
  let left = 0;
  const buffer = Buffer.allocUnsafe(256 * 1024);
  const callback = (bytes: number) => {
    left -= bytes;
    if (left === 0) waiting.resolve();
    if (left < 0) waiting.reject(new Error('an answer was longer than the first'));
    return true;
  };
  const socket = connect({ port, host: '127.0.0.1', noDelay: true, onread: { buffer, callback } });
  socket.setTimeout(silenceMs, () => waiting.reject(new Error(`no answer; ${left} bytes are missing`)));
  socket.on('connect', () => connected.resolve());
  socket.on('error', error => waiting.reject(error));
  socket.on('end', () => waiting.reject(new Error('the server closed the connection')));
  await connected.promise;
  return {
    socket,
    exchange(request) {
      waiting = Promise.withResolvers();
      left = size;
      socket.write(request);
      return waiting.promise;
    },
  };
}
