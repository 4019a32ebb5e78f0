/** The agent on a node: it has the cache mounted there, and answers what is in it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { messageOf } from '../../errors.ts';
import { countFolder } from './cacheAgent/walk.ts';

export interface CacheAgentOptions {
  /** The folder where the claim is mounted. */
  readonly root: string;
  /** Name of the node. */
  readonly node: string;
  readonly log: Logger;
}

/**
 * Answers `GET /inventory` with a count, which those who ask at the same time share, and `GET /healthz`. Nobody is asked who
 * they are: it tells names and sizes, and nothing of what is in a file.
 */
export function createCacheAgent({ root, node, log }: CacheAgentOptions) {
  let counting: Promise<string> | undefined;

  async function count(): Promise<string> {
    const began = performance.now();
    const { entries, warnings } = await countFolder(root);
    const ms = Math.round(performance.now() - began);
    log.info({ root, entries: entries.length, warnings: warnings.length, ms }, 'counted the cache');
    return JSON.stringify({ node, root, scannedAt: wholeSeconds(new Date()), entries, warnings }, timesInSeconds);
  }

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url?.split('?')[0];
    if (path !== '/inventory' && path !== '/healthz') return send(response, 404, 'there is /inventory and /healthz');
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      return send(response, 405, 'it is only read here');
    }
    if (path === '/healthz') return send(response, 200, 'ok');
    try {
      counting ??= count().finally(() => {
        counting = undefined;
      });
      send(response, 200, await counting, 'application/json');
    } catch (error) {
      log.error({ err: error }, 'the cache cannot be counted');
      send(response, 500, `the cache cannot be counted: ${messageOf(error)}`);
    }
  };
}

function send(response: ServerResponse, status: number, body: string, contentType = 'text/plain; charset=utf-8') {
  response.writeHead(status, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body);
}

/** RFC 3339, with whole seconds. */
const wholeSeconds = (date: Date) => `${date.toISOString().slice(0, 19)}Z`;

function timesInSeconds(this: Readonly<Record<string, unknown>>, key: string, value: unknown): unknown {
  const original = this[key];
  return original instanceof Date ? wholeSeconds(original) : value;
}
