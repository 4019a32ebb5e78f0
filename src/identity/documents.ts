import { getCACertificates } from 'node:tls';
import { Agent, request } from 'undici';
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
  const trusted = ca === '' ? {} : { ca: [...getCACertificates('default'), ca] };
  // Two documents in ten minutes: no connection is kept for them.
  const agent = new Agent({ pipelining: 0, connect: { lookup: lookupUnder(rule), ...trusted } });
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const headers = { accept: 'application/json' };
    const { statusCode, body } = await request(target, { dispatcher: agent, signal, headers });
    if (statusCode !== 200) throw failed(`answers ${statusCode}`);
    const text = await readText(body);
    if (text === undefined) throw failed(`answers more than ${maxBytes} bytes`);
    try {
      return JSON.parse(text);
    } catch {
      throw failed('answers no JSON');
    }
  } catch (error) {
    if (error instanceof Error && error.message.startsWith(url)) throw error;
    const { name, message } = error as Error;
    throw failed(name === 'TimeoutError' ? `no answer within ${timeoutMs / 1000} s` : message, error);
  } finally {
    void agent.destroy();
  }
}

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
