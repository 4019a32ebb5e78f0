import type { Call } from '../../call.ts';
import { GatewayError } from '../../errors.ts';
import { createHttp, documentIn, type HttpAnswer, type HttpRequest, isSuccess, type OnRequest } from '../http.ts';
import { failureIn, ollamaFound, type Question, saysNotLoaded } from './errors.ts';
import type { Lost } from './pull.ts';
import { complaintIn, type Download, type Entry, namesInstance, readDownload, readEntries } from './wire.ts';

/**
 * LM Studio's management API, one function per endpoint. Each throws a `GatewayError`, also for a 200: that is the status
 * of what the server does not know, so only the expected document counts.
 */
export interface LmStudioClient {
  /** What is on disk, with what of it is in memory. */
  library(call: Call): Promise<Entry[]>;
  /** Loads another copy, also when there is one. */
  load(call: Call, key: string): Promise<void>;
  /** Lets go of one instance; one that is not loaded is no error. */
  unload(call: Call, instance: string): Promise<void>;
  startDownload(call: Call, reference: string): Promise<Download>;
  /** `lost` when there was no answer of LM Studio's: what it refuses is thrown. */
  download(call: Call, id: string): Promise<Download | Lost>;
}

/** A load holds its request until the weights are in memory. */
const loadBudgetMs = 10 * 60_000;
const changeBudgetMs = 60_000;
/** For a second question to a server that is not LM Studio. */
const secondLookBudgetMs = 2_000;

export function createLmStudioClient(
  endpoint: string,
  apiToken: string | undefined,
  onRequest?: OnRequest,
): LmStudioClient {
  const http = createHttp({ kind: 'lmstudio', product: 'LM Studio', endpoint, apiToken, onRequest });
  const withToken = (apiToken?.trim() ?? '') !== '';

  const about = ({ method, path }: HttpRequest, model?: string): Question => ({
    method,
    path,
    endpoint,
    model,
    withToken,
  });

  /** The version of an Ollama at this address. */
  async function ollamaVersion(call: Call): Promise<string | undefined> {
    const request: HttpRequest = { method: 'GET', path: '/api/version', budgetMs: secondLookBudgetMs };
    const answer = await http.document(call, request).catch(() => undefined);
    const document = answer && (documentIn(answer) as { version?: unknown } | null | undefined);
    return typeof document?.version === 'string' ? document.version : undefined;
  }

  return {
    async library(call) {
      const request: HttpRequest = { method: 'GET', path: '/api/v1/models' };
      const answer = await http.document(call, request);
      const entries = isDone(answer) ? readEntries(documentIn(answer)) : undefined;
      if (entries) return entries;
      const version = answer.status === 404 ? await ollamaVersion(call) : undefined;
      throw version === undefined ? failureIn(about(request), answer) : ollamaFound(endpoint, version);
    },

    async load(call, key) {
      const body = { model: key };
      const request: HttpRequest = { method: 'POST', path: '/api/v1/models/load', body, budgetMs: loadBudgetMs };
      const answer = await http.document(call, request);
      if (!isDone(answer) || !namesInstance(documentIn(answer))) throw failureIn(about(request, key), answer);
    },

    async unload(call, instance) {
      const body = { instance_id: instance };
      const request: HttpRequest = { method: 'POST', path: '/api/v1/models/unload', body, budgetMs: changeBudgetMs };
      const answer = await http.document(call, request);
      if (saysNotLoaded(answer)) return;
      if (!isDone(answer) || !namesInstance(documentIn(answer))) throw failureIn(about(request, instance), answer);
    },

    async startDownload(call, reference) {
      const body = { model: reference };
      const request: HttpRequest = { method: 'POST', path: '/api/v1/models/download', body, budgetMs: changeBudgetMs };
      const answer = await http.document(call, request);
      const download = downloadIn(answer);
      if (!download) throw failureIn(about(request, reference), answer);
      return download;
    },

    async download(call, id) {
      const path = `/api/v1/models/download/status/${encodeURIComponent(id)}`;
      const op = 'GET /api/v1/models/download/status';
      const request: HttpRequest = { method: 'GET', path, op, budgetMs: changeBudgetMs };
      let answer: HttpAnswer;
      try {
        answer = await http.document(call, request);
      } catch (error) {
        if (call.signal.aborted || !(error instanceof GatewayError)) throw error;
        return { lost: error };
      }
      const download = downloadIn(answer);
      if (download) return download;
      const failure = failureIn(about(request), answer);
      if (isAnswerOfItsOwn(answer)) throw failure;
      return { lost: failure };
    },
  };
}

/** Whether an answer can be what was asked for: the status of a success, and no error beside what else it has. */
const isDone = (answer: HttpAnswer) => isSuccess(answer.status) && complaintIn(documentIn(answer)) === undefined;

/** The state of a download. A failed one has its reason where other answers have their error. */
function downloadIn(answer: HttpAnswer): Download | undefined {
  const download = isSuccess(answer.status) ? readDownload(documentIn(answer)) : undefined;
  return download?.state === 'failed' || download?.error === undefined ? download : undefined;
}

/** Whether it is LM Studio that refuses, and not something in between that fails or wants to be asked later. */
function isAnswerOfItsOwn(answer: HttpAnswer): boolean {
  const { status } = answer;
  if (isSuccess(status)) return complaintIn(documentIn(answer)) !== undefined;
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}
