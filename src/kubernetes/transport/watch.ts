import type { Call } from '../../call.ts';
import { backendError, type GatewayError } from '../../errors.ts';
import type { WatchEvent } from '../client.ts';
import { attemptWords, parsedOrUndefined, statusError, statusWords } from '../errors.ts';
import type { KubernetesObject } from '../resource.ts';
import type { ApiRequest, ApiStream, Transport } from '../transport.ts';
import { newline } from './bodies.ts';
import { isObject } from './objects.ts';

/** Bytes; etcd holds no object near as large. */
const lineLimit = 8 * 1024 * 1024;
/** So many events may wait for a slow reader; then the server has to. */
const waitingLimit = 256;

/**
 * The events of a watch, which begins when it is first read. An iterator by hand: `return()` and the call's signal end it
 * at once and free its connection, also while a `next()` waits.
 */
export function watchEvents<T extends KubernetesObject>(
  transport: Transport,
  call: Call,
  request: ApiRequest,
): AsyncIterableIterator<WatchEvent<T>, undefined> {
  const what = attemptWords(request.attempt);
  const lines = createLines(lineLimit);
  const events: WatchEvent<T>[] = [];
  let begun = false;
  let stream: ApiStream | undefined;
  /** Of the iteration: why there is nothing after the events that wait. */
  let ending: { readonly error?: GatewayError } | undefined;
  let waiting: PromiseWithResolvers<IteratorResult<WatchEvent<T>, undefined>> | undefined;

  function begin() {
    begun = true;
    transport.stream(call, request).then(
      opened => {
        stream = opened;
        if (ending) return free();
        opened.body.on('data', take);
        opened.body.on('error', error => end(opened.failed(error)));
        opened.body.on('end', () =>
          end(lines.rest() ? backendError(`${what}: it broke off within an event`) : undefined),
        );
      },
      error => end(error),
    );
  }

  function take(chunk: Uint8Array) {
    if (ending || !stream) return;
    try {
      for (const line of lines.push(chunk)) {
        const event = eventIn<T>(line, request, stream);
        if (event) events.push(event);
      }
      if (lines.rest() > lineLimit) throw backendError(`${what}: an event of more than 8 MiB`);
    } catch (error) {
      end(error as GatewayError);
    }
    if (events.length > waitingLimit) stream.body.pause();
    deliver();
  }

  function end(error?: GatewayError) {
    ending ??= error ? { error } : {};
    free();
    deliver();
  }

  function free() {
    if (!stream) return;
    const { body, release } = stream;
    stream = undefined;
    release();
    // What the body has to say about its end interests nobody any more.
    body
      .removeAllListeners('data')
      .on('error', () => {})
      .destroy();
  }

  function deliver() {
    if (!waiting) return;
    const event = events.shift();
    if (event) {
      waiting.resolve({ done: false, value: event });
      if (events.length === 0 && stream?.body.isPaused()) stream.body.resume();
    } else if (ending?.error) {
      waiting.reject(ending.error);
      ending = {};
    } else if (ending) waiting.resolve({ done: true, value: undefined });
    else return;
    waiting = undefined;
  }

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      if (!begun && !ending) begin();
      waiting ??= Promise.withResolvers();
      const { promise } = waiting;
      deliver();
      return promise;
    },
    return() {
      events.length = 0;
      ending = {};
      free();
      deliver();
      return Promise.resolve({ done: true, value: undefined });
    },
  };
}

/** The event in a line; undefined for one of a type that is not known here. Throws what an `ERROR` event says. */
function eventIn<T extends KubernetesObject>(
  line: string,
  { attempt }: ApiRequest,
  { sender }: ApiStream,
): WatchEvent<T> | undefined {
  if (line.trim() === '') return undefined;
  const { type, object } = (parsedOrUndefined(line) ?? {}) as { type?: unknown; object?: unknown };
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      if (isObject<T>(object)) return { type, object };
      break;
    case 'BOOKMARK': {
      const version = (object as Partial<KubernetesObject> | undefined)?.metadata?.resourceVersion;
      if (typeof version === 'string') return { type, resourceVersion: version };
      break;
    }
    case 'ERROR':
      throw statusError(attempt, sender, statusWords(object));
    default:
      if (typeof type === 'string') return undefined;
  }
  throw backendError(`${attemptWords(attempt)}: ${sender.server} sent a line that is no event`);
}

/** Cuts bytes, which arrive cut anywhere, into lines. A line is decoded when it is whole, so no character is torn. */
function createLines(limit: number) {
  let parts: Uint8Array[] = [];
  let size = 0;
  return {
    /** The lines that the bytes complete. */
    push(chunk: Uint8Array): string[] {
      const lines: string[] = [];
      let from = 0;
      for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, from)) {
        parts.push(chunk.subarray(from, to));
        lines.push(Buffer.concat(parts).toString());
        parts = [];
        size = 0;
        from = to + 1;
      }
      if (from < chunk.length && size <= limit) {
        parts.push(chunk.subarray(from));
        size += chunk.length - from;
      }
      return lines;
    },
    /** Bytes of the line that is not complete yet. */
    rest: () => size,
  };
}
