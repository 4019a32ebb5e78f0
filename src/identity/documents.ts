import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https, { type RequestOptions } from 'node:https';
import { getCACertificates } from 'node:tls';
import { addressProblem, literalAddress, lookupUnder } from './addresses.ts';

/** How the documents of an identity provider are read. */
export interface Reading {
  /** PEM certificates to trust beside those of the system; '' for none. */
  readonly ca: string;
  readonly allowPrivate: boolean;
}

/** Bytes of a document at most; those of real providers have a few thousand. */
const maxBytes = 512 * 1024;
/** Milliseconds until the whole document is there. */
const timeoutMs = 5_000;

/**
 * Reads one JSON document. Follows no redirect: whoever answers for the provider is who was asked. Rejects with an `Error`
 * that names the URL.
 */
export async function readDocument(url: string, { ca, allowPrivate }: Reading): Promise<unknown> {
  const failed = (what: string, cause?: unknown) => new Error(`${url}: ${what}`, { cause });
  const target = URL.parse(url);
  if (!target || !/^https?:$/.test(target.protocol)) throw failed('is no http or https URL');
  const isPlain = target.protocol === 'http:';
  if (isPlain && !allowPrivate) throw failed('is not encrypted');
  const rule = { allowPrivate, onlyPrivate: isPlain };
  const literal = literalAddress(target);
  const problem = literal && addressProblem(literal, rule);
  if (problem) throw failed(problem);
  try {
    const { status, text } = await get(target, {
      lookup: lookupUnder(rule),
      ...(ca !== '' && { ca: [...getCACertificates('default'), ca] }),
    });
    if (status !== 200) throw failed(`answers ${status}`);
    if (text === undefined) throw failed(`answers more than ${maxBytes} bytes`);
    try {
      return JSON.parse(text);
    } catch {
      throw failed('answers no JSON');
    }
  } catch (error) {
    if (error instanceof Error && error.message.startsWith(url)) throw error;
    const { name, message } = error as Error;
    throw failed(isTimeout(error) ? `no answer within ${timeoutMs / 1000} s` : message || name, error);
  }
}

/** `text` is undefined when there is too much of it. The connection is not kept: these are two documents in ten minutes. */
async function get(url: URL, options: RequestOptions): Promise<{ status: number; text: string | undefined }> {
  const ask = url.protocol === 'https:' ? https : http;
  const signal = AbortSignal.timeout(timeoutMs);
  const req = ask.get(url, { ...options, agent: false, signal, headers: { accept: 'application/json' } });
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  try {
    const status = res.statusCode ?? 0;
    return { status, text: status === 200 ? await readText(res) : '' };
  } finally {
    req.destroy();
  }
}

const isTimeout = (error: unknown) =>
  error instanceof Error &&
  (error.name === 'TimeoutError' || (error.cause as Error | undefined)?.name === 'TimeoutError');

/** Undefined when there is too much of it. */
async function readText(body: AsyncIterable<Buffer>): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
