/** Many subscribers, one connection each. What they receive is counted message by message and not kept. */
import { connect, type Socket } from 'node:net';

/** How a subscriber speaks. */
export interface Protocol {
  /** What it says first. */
  readonly hello: Buffer;
  /** Takes what arrived, answers on the socket where it must, and returns how many whole messages there were. */
  create(): (bytes: Buffer, socket: Socket) => number;
}

/** Connections under way at the same time. */
const atOnce = 64;
/** A message that has not reached everybody by then is lost, in milliseconds. */
const patienceMs = 15_000;

export class Crowd implements Disposable {
  readonly #port: number;
  readonly #protocol: Protocol;
  readonly #sockets: Socket[] = [];
  /** All that arrives is read into this one buffer, for each callback is done with it before the next. */
  readonly #buffer = Buffer.allocUnsafe(64 * 1024);
  /** Messages of those who have had their first. */
  #received = 0;
  #wanted = 0;
  #waiting = waiter();
  /** The bytes that came last. */
  newest: Buffer = Buffer.alloc(0);

  constructor(port: number, protocol: Protocol) {
    this.#port = port;
    this.#protocol = protocol;
  }

  /** Adds subscribers until there are so many, each with its first message. */
  async grow(size: number): Promise<void> {
    const join = async () => {
      while (this.#sockets.length < size) await this.#join();
    };
    await Promise.all(Array.from({ length: atOnce }, join));
  }

  /** Resolves when every subscriber has had one more message. */
  async next(): Promise<void> {
    this.#received = 0;
    this.#wanted = this.#sockets.length;
    const waiting = waiter();
    this.#waiting = waiting;
    const timer = setTimeout(() => {
      waiting.reject(new Error(`${this.#received} of ${this.#wanted} subscribers got the message`));
    }, patienceMs);
    await waiting.promise.finally(() => clearTimeout(timer));
  }

  [Symbol.dispose]() {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #join(): Promise<void> {
    const joined = Promise.withResolvers<void>();
    const take = this.#protocol.create();
    let isIn = false;
    const fail = (error: Error) => {
      joined.reject(error);
      this.#waiting.reject(error);
    };
    const onMessages = (messages: number, bytes: Buffer) => {
      if (isIn) this.#count(messages, bytes);
      isIn = true;
      joined.resolve();
    };
    const callback = (length: number) => {
      const bytes = this.#buffer.subarray(0, length);
      try {
        const messages = take(bytes, socket);
        if (messages > 0) onMessages(messages, bytes);
      } catch (error) {
        fail(error as Error);
      }
      return true;
    };
    const options = { port: this.#port, host: '127.0.0.1', noDelay: true };
    const socket: Socket = connect({ ...options, onread: { buffer: this.#buffer, callback } });
    this.#sockets.push(socket);
    socket.on('error', fail).on('end', () => fail(new Error('a subscriber lost its connection')));
    socket.write(this.#protocol.hello);
    await joined.promise;
  }

  #count(messages: number, bytes: Buffer): void {
    if (this.#received === 0) this.newest = Buffer.from(bytes);
    this.#received += messages;
    if (this.#received === this.#wanted) this.#waiting.resolve();
  }
}

/** A subscriber may fail while nobody waits for a message; the next message will then not reach everybody. */
function waiter(): PromiseWithResolvers<void> {
  const waiting = Promise.withResolvers<void>();
  waiting.promise.catch(() => {});
  return waiting;
}

const head = (lines: readonly string[]) => `${lines.join('\r\n')}\r\n\r\n`;

/** A subscription over Server-Sent Events. */
export function eventStream(query: string): Protocol {
  const body = JSON.stringify({ query });
  const hello = head([
    'POST /graphql HTTP/1.1',
    'host: localhost',
    'accept: text/event-stream',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
  ]);
  return {
    hello: Buffer.from(hello + body),
    create: () => bytes => occurrences(bytes, 'event: next\n'),
  };
}

function occurrences(bytes: Buffer, text: string): number {
  let count = 0;
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) count++;
  return count;
}

/** A subscription over `graphql-transport-ws`. */
export function webSocket(query: string): Protocol {
  const hello = head([
    'GET /graphql HTTP/1.1',
    'host: localhost',
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${Buffer.alloc(16).toString('base64')}`,
    'sec-websocket-protocol: graphql-transport-ws',
  ]);
  const init = frame(opcodes.text, JSON.stringify({ type: 'connection_init' }));
  const subscribe = frame(opcodes.text, JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
  return {
    hello: Buffer.from(hello),
    create() {
      let answers = 0;
      return (bytes, socket) => {
        // The first answer is the upgrade, the second lets us in; then come messages.
        if (++answers > 2) return messagesIn(bytes, socket);
        socket.write(answers === 1 ? init : subscribe);
        return 0;
      };
    },
  };
}

const opcodes = { text: 1, ping: 9, pong: 10 };
const pong = () => frame(opcodes.pong, '');

/** Counts the messages among the frames, and answers a ping: who does not is thrown out. */
function messagesIn(bytes: Buffer, socket: Socket): number {
  let messages = 0;
  let at = 0;
  while (at < bytes.length) {
    const opcode = bytes.readUInt8(at) & 0x0f;
    const short = bytes.readUInt8(at + 1);
    const length = short < 126 ? short : bytes.readUInt16BE(at + 2);
    if (opcode === opcodes.text) messages += isEvent(bytes.subarray(at));
    if (opcode === opcodes.ping) socket.write(pong());
    at += (short < 126 ? 2 : 4) + length;
  }
  if (at > bytes.length) throw new Error('a message came in pieces: it is too large for this');
  return messages;
}

function isEvent(text: Buffer): number {
  if (text.includes('"type":"next"')) return 1;
  throw new Error(`no event: ${text}`);
}

/** A frame of a client, masked with zeros. */
function frame(opcode: number, text: string): Buffer {
  const payload = Buffer.from(text);
  const isShort = payload.length < 126;
  const header = Buffer.alloc(isShort ? 6 : 8);
  header.writeUInt8(0x80 | opcode, 0);
  header.writeUInt8(0x80 | (isShort ? payload.length : 126), 1);
  if (!isShort) header.writeUInt16BE(payload.length, 2);
  return Buffer.concat([header, payload]);
}

/** A socket that says nothing and is sent messages of this many bytes. */
export function plainSocket(size: number): Protocol {
  return {
    hello: Buffer.alloc(0),
    create() {
      let bytesSoFar = 0;
      return bytes => {
        bytesSoFar += bytes.length;
        const messages = Math.floor(bytesSoFar / size);
        bytesSoFar %= size;
        return messages;
      };
    },
  };
}
