import type { Logger } from 'pino';
import { Agent } from 'undici';
import type { Call } from '../../../call.ts';
import { guardedConnector } from '../../../egress.ts';
import { readRefusal, wholeText } from '../../../kubernetes/transport/bodies.ts';
import { pause } from '../../../kubernetes/transport/bounds.ts';
import { pauseBeforeRetry } from '../../../kubernetes/transport/retry.ts';
import { unlessAborted } from '../../../live/source.ts';
import { answerWords, documentIn, isRedirect, isSuccess, type OnRequest, oneLine, transportWords } from '../../http.ts';
import type { Found, Miss } from './facts.ts';
import type { Looking } from './shared.ts';
import type { HubToken } from './token.ts';

export interface ExchangeOptions {
  /** As `parseEndpoint` answers it. */
  readonly endpoint: string;
  readonly token: HubToken;
  readonly log: Logger;
  readonly onRequest?: OnRequest | undefined;
  now(): number;
}

/** What is asked, and how its answer is read. */
export interface Question<T> {
  /** What it asks, as it is counted. */
  readonly op: string;
  /** Below the endpoint, and encoded. */
  readonly path: string;
  /** What may be missing or closed, for the words of a miss: `acme/x`. Absent where no refusal can be about it. */
  readonly subject?: string;
  /** What a document says; undefined when it is not one that the Hub gives to this question. */
  read(document: unknown): T | undefined;
}

type Asked = Pick<Question<unknown>, 'op' | 'path'>;

export interface Page<T> {
  readonly content: T;
  /** Length of its text. */
  readonly length: number;
  /** Its `Link` header. */
  readonly link: string | undefined;
}

export interface Exchange {
  /** Rejects just when the signal aborts. `call` is that of who asked first; what it waits for is `looking`. */
  ask<T>(call: Call, question: Question<T>, looking: Looking): Promise<Found<Page<T>>>;
}

/** An answer of any status. */
interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfterMs?: number | undefined;
  /** Where it points instead, without its query. */
  readonly location?: string | undefined;
  readonly text: string;
  readonly link?: string | undefined;
  /** Where redirects led to; undefined when there were none. */
  readonly moved: string | undefined;
  /** The token was sent with the first request. */
  readonly withToken: boolean;
}

/** Bytes of one answer. */
export const documentLimit = 8 * 1024 * 1024;
const mostRedirects = 3;
/** However long the Hub wants to be left alone, it is asked again after this, in milliseconds. */
const longestQuietMs = 5 * 60_000;
const timeouts = { headersTimeout: 30_000, bodyTimeout: 30_000 } as const;
const connectTimeoutMs = 5_000;

/**
 * GET requests to the Hub. Nothing of a caller travels with them. The Hub token goes to the endpoint and nowhere else: a
 * redirect is followed on the origin of the endpoint only, and without the token, because nobody knows what else lives
 * there. While the Hub has asked to be left alone, it is.
 */
export function createExchange({ endpoint, token, log, onRequest, now }: ExchangeOptions): Exchange {
  const { origin, pathname } = new URL(endpoint);
  const base = pathname === '/' ? '' : pathname;
  const agent = new Agent({ ...timeouts, connections: 8, connect: guardedConnector({ timeout: connectTimeoutMs }) });
  let quietUntil = 0;

  /** One request, with the redirects that it is led through. */
  async function send(call: Call, { op, path }: Asked, signal: AbortSignal): Promise<Answer> {
    const bearer = await token.read(signal);
    const began = performance.now();
    const ended = (outcome: 'ok' | 'refused' | 'failed') =>
      onRequest?.(op, outcome, (performance.now() - began) / 1000, call);
    try {
      const answer = await follow(path, bearer, signal);
      ended(isSuccess(answer.status) ? 'ok' : 'refused');
      return answer;
    } catch (error) {
      ended('failed');
      throw error;
    }
  }

  async function follow(path: string, bearer: string | undefined, signal: AbortSignal): Promise<Answer> {
    const headers = { accept: 'application/json', 'user-agent': 'model-manager' };
    const withToken = bearer !== undefined;
    let target = new URL(origin + base + path);
    for (let hops = 0; ; hops++) {
      const sent = withToken && hops === 0 ? { ...headers, authorization: `Bearer ${bearer}` } : headers;
      const where = target.pathname + target.search;
      const request = agent.request({ origin, path: where, method: 'GET', headers: sent, signal });
      const reply = await unlessAborted(request, signal);
      const header = (name: string) => [reply.headers[name]].flat()[0];
      const about = { status: reply.statusCode, moved: hops > 0 ? target.pathname : undefined, withToken };

      if (isSuccess(about.status)) {
        const text = await wholeText(reply.body, documentLimit);
        if (text === undefined) throw new TooLarge();
        const contentType = (header('content-type') ?? '').toLowerCase();
        return { ...about, contentType, text, link: header('link') };
      }
      const refusal = await readRefusal(reply);
      const location = isRedirect(about.status) ? header('location') : undefined;
      const next = location === undefined ? null : URL.parse(location, target);
      if (next?.origin !== origin || hops === mostRedirects) {
        const retryAfterMs = refusal.retryAfterMs ?? rateLimitOf(header('ratelimit'));
        return { ...about, ...refusal, retryAfterMs, text: token.hide(refusal.text) };
      }
      target = next;
    }
  }

  /** The answer of a Hub that has patience with us, and we with it. */
  async function answerTo(call: Call, asked: Asked, { signal, leftMs }: Looking): Promise<Answer | Miss> {
    for (let tries = 1; ; tries++) {
      const quietMs = quietUntil - now();
      if (quietMs > 0) {
        if (quietMs > leftMs()) return limited(quietMs);
        await pause(quietMs, signal);
      }

      const ending = await send(call, asked, signal).catch((error: unknown) => ({ error }));
      if (signal.aborted) throw signal.reason;
      const pauseMs = pauseBeforeRetry('GET', tries, ending);
      if ('error' in ending) {
        if (pauseMs === undefined) return failed(brokenWords(ending.error));
        await pause(pauseMs, signal);
        continue;
      }
      const { status, retryAfterMs = 0 } = ending;
      if (status !== 429 && (status !== 503 || retryAfterMs === 0)) return ending;
      quietUntil = Math.max(quietUntil, now() + Math.min(retryAfterMs, longestQuietMs));
      if (pauseMs === undefined) return limited(retryAfterMs, status);
    }
  }

  const failed = (words: string, status?: number): Miss => ({ why: 'failed', words, status });

  function limited(ms: number, status = 429): Miss {
    const howLong = ms > 0 ? `for ${Math.ceil(ms / 1000)} s` : 'for now';
    return failed(`${endpoint} wants no more requests ${howLong}`, status);
  }

  function brokenWords(error: unknown): string {
    if (error instanceof TooLarge) return `an answer of ${endpoint} is larger than 8 MiB`;
    return token.hide(transportWords(error, endpoint, 'the Hugging Face Hub'));
  }

  function refused(subject: string | undefined, answer: Answer): Miss {
    const { status, moved, withToken } = answer;
    const http = `(HTTP ${status})`;
    if (subject !== undefined && status === 404)
      return { why: 'missing', words: `${subject} is not on the hub`, status };
    if (subject === undefined || (status !== 401 && status !== 403)) {
      const advice = isRedirect(status) ? ', which is not followed' : '';
      return failed(`${endpoint} answered with ${answerWords(answer)}${advice} ${http}`, status);
    }
    if (moved !== undefined && withToken)
      return failed(
        `${subject} has moved to ${oneLine(moved, 200)}, which gets no hub token; use its new name ${http}`,
        status,
      );
    if (token.problem !== undefined)
      return failed(`${subject} needs a hub token, and ${token.problem} ${http}`, status);
    return {
      why: 'refused',
      words: `${subject} is gated or private; configure a hub token with access ${http}`,
      status,
    };
  }

  return {
    async ask(call, { op, path, subject, read }, looking) {
      const answer = await answerTo(call, { op, path }, looking);
      if ('why' in answer) return { miss: answer };
      const { status, text, link } = answer;
      log.debug({ path, status }, 'the hub answered');
      if (!isSuccess(status)) return { miss: refused(subject, answer) };
      const content = read(documentIn(answer));
      if (content !== undefined) return { value: { content, length: text.length, link } };
      const found = token.hide(answerWords(answer));
      return {
        miss: failed(`${endpoint} did not answer like the Hugging Face Hub but with ${found} (HTTP ${status})`),
      };
    },
  };
}

class TooLarge extends Error {}

/** Milliseconds until a `RateLimit` header has requests again: `"api";r=0;t=55`. Undefined while it has some. */
function rateLimitOf(header: string | undefined): number | undefined {
  const [, left, seconds] = /;\s*r=(\d+)\s*;\s*t=(\d+)/.exec(header ?? '') ?? [];
  return left === '0' ? Number(seconds) * 1000 : undefined;
}
