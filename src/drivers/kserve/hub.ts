/**
 * What the Hugging Face Hub knows of models. All look-ups of one call share one budget and leave two seconds of the call's
 * deadline, so a Hub that is slow or blocked costs a fit its precision and never its answer.
 */
import type { Logger } from 'pino';
import type { Call } from '../../call.ts';
import { backendError, invalidRequest, quoted } from '../../errors.ts';
import type { OnRequest } from '../http.ts';
import { type Budget, createBudgets } from './hub/budget.ts';
import { createExchange, documentLimit, type Page, type Question } from './hub/exchange.ts';
import { type Found, type HubFacts, hubError } from './hub/facts.ts';
import { isCommit, isRepository, isRevision } from './hub/reference.ts';
import { createShared, type Looking } from './hub/shared.ts';
import { createHubToken } from './hub/token.ts';
import { downloadBytesOf, type HubFile, indexFile, type ShardIndex, weigh } from './hub/weights.ts';
import { type Hit, nextQueryOf, type Repository, readFiles, readHits, readIndex, readRepository } from './hub/wire.ts';
import { formatDuration } from './units.ts';

export interface HubOptions {
  /** As `parseEndpoint` answers it. */
  readonly endpoint: string;
  /** What is in the operator's Secret; undefined when there is none. Read once a minute at most. */
  token(): Promise<string | undefined>;
  /** For all look-ups of one call, in milliseconds. */
  readonly timeoutMs: number;
  readonly log: Logger;
  readonly onRequest?: OnRequest | undefined;
  /** Milliseconds since the epoch; the clock's when absent. */
  now?(): number;
}

/**
 * Every method rejects with `invalid_request` for what cannot be a repository or a revision, and with `backend_error` when
 * the caller leaves. That the Hub fails is no error but a miss, except for a search.
 */
export interface Hub {
  repository(call: Call, repository: string): Promise<Found<Repository>>;
  /** All files at a revision: a branch, a tag or a commit. */
  files(call: Call, repository: string, revision: string): Promise<Found<readonly HubFile[]>>;
  /** What a fit needs. Files that match a pattern of `ignore` are not downloaded; they weigh all the same. */
  weights(call: Call, repository: string, revision: string, ignore: readonly string[]): Promise<HubFacts>;
  /** Repositories that match, most downloads first. */
  search(call: Call, query: string, limit: number): Promise<Hit[]>;
}

/** As long as what may change is kept, in milliseconds. */
const keptMs = 5 * 60_000;
const keptMsOf = (revision: string) => (isCommit(revision) ? Number.POSITIVE_INFINITY : keptMs);
/** Answers of each sort that are kept, and files in all of them. */
const keptEntries = 500;
const keptFiles = 200_000;
/** A page has a thousand files. */
const mostPages = 64;
const longestList = 4 * documentLimit;

/** What is asked, without what callers put into the path. */
const ops = {
  repository: 'GET /api/models/{repository}',
  files: 'GET /api/models/{repository}/tree/{revision}',
  index: `GET /{repository}/resolve/{revision}/${indexFile}`,
  search: 'GET /api/models',
} as const;

export function createHub({ endpoint, timeoutMs, log, ...options }: HubOptions): Hub {
  const now = options.now ?? Date.now;
  const token = createHubToken(options.token, { now, log });
  const { ask } = createExchange({ endpoint, token, log, now, onRequest: options.onRequest });
  const enter = createBudgets(timeoutMs, now);
  const onLost = (error: unknown) => log.error({ err: error }, 'a look-up of the hub broke while nobody waited for it');
  const shared = <T>(weigh: (value: T) => number) =>
    createShared<T>({ now, onLost, entries: keptEntries, weight: keptFiles, weigh });
  const repositories = shared<Repository>(() => 0);
  const lists = shared<readonly HubFile[]>(files => files.length);
  const indices = shared<ShardIndex>(({ shards }) => shards.length);

  /** An answer within the budget of the call; that it is used up is a miss. */
  async function within<T>(call: Call, read: (budget: Budget) => Promise<Found<T>>): Promise<Found<T>> {
    const budget = enter(call);
    try {
      return await read(budget);
    } catch (error) {
      if (call.signal.aborted) throw backendError('the hub look-up was cancelled by the caller', { cause: error });
      if (!budget.expired) throw error;
      const { allowedMs: withinMs } = budget;
      const words = `the Hugging Face Hub did not answer within ${formatDuration(Math.round(withinMs))}: nothing came from ${endpoint}`;
      return { miss: { why: 'timeout', words, withinMs } };
    } finally {
      budget.release();
    }
  }

  async function repository(call: Call, id: string): Promise<Found<Repository>> {
    checkNames(id);
    const path = `/api/models/${id}`;
    const question = { op: ops.repository, path, subject: id, read: readRepository };
    return within(call, budget => repositories.read(id, keptMs, budget, looking => one(call, question, looking)));
  }

  async function files(call: Call, id: string, revision: string): Promise<Found<readonly HubFile[]>> {
    checkNames(id, revision);
    const key = `${id} ${revision}`;
    return within(call, budget =>
      lists.read(key, keptMsOf(revision), budget, looking => list(call, id, revision, looking)),
    );
  }

  function index(call: Call, id: string, revision: string): Promise<Found<ShardIndex>> {
    const key = `${id} ${revision}`;
    const path = `/${id}/resolve/${encodeURIComponent(revision)}/${indexFile}`;
    const question = { op: ops.index, path, subject: `${indexFile} of ${id}`, read: readIndex };
    return within(call, budget =>
      indices.read(key, keptMsOf(revision), budget, looking => one(call, question, looking)),
    );
  }

  async function one<T>(call: Call, question: Question<T>, looking: Looking): Promise<Found<T>> {
    const { value, miss } = await ask(call, question, looking);
    return miss ? { miss } : { value: value.content };
  }

  /** Page for page. */
  async function list(call: Call, id: string, revision: string, looking: Looking): Promise<Found<readonly HubFile[]>> {
    const path = `/api/models/${id}/tree/${encodeURIComponent(revision)}`;
    const all = new Map<string, HubFile>();
    let query: string | undefined = '?recursive=true';
    let length = 0;
    for (let page = 1; page <= mostPages && length <= longestList; page++) {
      const question = { op: ops.files, path: path + query, subject: id, read: readFiles };
      const { value, miss }: Found<Page<HubFile[]>> = await ask(call, question, looking);
      if (miss) return { miss };
      for (const file of value.content) all.set(file.path, file);
      length += value.length;
      query = nextQueryOf(value.link);
      if (query === undefined) return { value: [...all.values()] };
    }
    return { miss: { why: 'failed', words: `the list of the files of ${id} has no end` } };
  }

  return {
    repository,
    files,

    async weights(call, id, revision, ignore) {
      const [about, listed] = await Promise.all([repository(call, id), files(call, id, revision)]);
      const known = about.value && { repository: about.value };
      const miss = about.miss ?? listed.miss;
      if (!listed.value || miss) {
        // The repository is there, so it is its revision that is not.
        const noRevision = about.value && miss?.why === 'missing';
        return {
          ...known,
          miss: noRevision ? { ...miss, words: `${id} has no revision ${revision} on the hub` } : miss,
        };
      }
      const found = listed.value;
      return {
        ...known,
        weights: weigh(found, await indexOf(call, id, revision, found)),
        downloadBytes: downloadBytesOf(found, ignore),
      };
    },

    async search(call, query, limit) {
      const parameters = new URLSearchParams({
        search: query,
        limit: String(limit),
        sort: 'downloads',
        direction: '-1',
        // Else the Hub leaves out what is gated, and when it was changed.
        full: 'true',
      });
      const question = { op: ops.search, path: `/api/models?${parameters}`, read: readHits };
      const { value, miss } = await within(call, ({ signal, until }) =>
        one(call, question, { signal, leftMs: () => until - now() }),
      );
      if (miss) throw hubError(miss);
      return value.slice(0, limit);
    },
  };

  /** The index where there is one that can be read. */
  async function indexOf(call: Call, id: string, revision: string, listed: readonly HubFile[]) {
    const file = listed.find(({ path }) => path === indexFile);
    if (!file) return undefined;
    const tooLarge = (file.bytes ?? 0) > documentLimit;
    const found = tooLarge ? undefined : await index(call, id, revision);
    if (found?.value) return found.value;
    const reason = found?.miss.words ?? 'it is larger than 8 MiB';
    log.warn({ repository: id, revision, reason }, `${indexFile} cannot be read; the files are counted instead`);
    return undefined;
  }
}

/** What becomes part of a path is nothing but a name. */
function checkNames(id: string, revision = 'main') {
  if (!isRepository(id)) throw invalidRequest(`${quoted(id)} is no Hugging Face repository (owner/name)`);
  if (!isRevision(revision)) throw invalidRequest(`${quoted(revision)} is no revision of a repository`);
}
