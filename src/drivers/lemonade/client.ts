import type { Call } from '../../call.ts';
import type { PullProgress } from '../../domain.ts';
import { backendError, GatewayError } from '../../errors.ts';
import { createHttp, documentIn, type HttpAnswer, type HttpRequest, isSuccess, type OnRequest } from '../http.ts';
import { linesOf, streamedLimit } from '../lines.ts';
import { isMissingPath, isObject, notLemonade, ollamaFound, type Question, refusal, refusedIn } from './errors.ts';
import { eventsOf } from './events.ts';
import { named } from './names.ts';
import { progressOf } from './pull.ts';
import { type Health, type ModelEntry, readHealth, readModels, readSystemInfo, type SystemInfo } from './wire.ts';

/**
 * Lemonade's API, one function per endpoint. Each throws a `GatewayError`, also for a 200 that is not Lemonade's. Those that
 * change something throw `invalid_request` for a blank name and send nothing.
 */
export interface LemonadeClient {
  health(call: Call): Promise<Health>;
  /** The models on disk, of servers that list no others unless asked; `all` adds the rest of the catalog. */
  models(call: Call, options?: { readonly all?: boolean; readonly budgetMs?: number }): Promise<ModelEntry[]>;
  systemInfo(call: Call): Promise<SystemInfo>;
  /** Downloads what is missing, silently, before it loads. Pinned models are not evicted to make room. */
  load(call: Call, model: string, options: { readonly pinned: boolean; readonly budgetMs: number }): Promise<void>;
  /** Resolves also for a model that is not loaded, or not there. */
  unload(call: Call, model: string, budgetMs: number): Promise<void>;
  /** Resolves also for a model of the catalog that is not there. */
  remove(call: Call, model: string, budgetMs: number): Promise<void>;
  pull(call: Call, model: string): AsyncGenerator<PullProgress>;
}

/** What Lemonade answers as the version of the Ollama that it also plays. */
const ollamaPlayed = '0.16.1';
const identifyBudgetMs = 2_000;

/** What a change needs besides the model. */
interface Change {
  readonly budgetMs: number;
  readonly pinned?: boolean;
}

export function createLemonadeClient(endpoint: string, onRequest?: OnRequest): LemonadeClient {
  const http = createHttp({ kind: 'lemonade', product: 'Lemonade', endpoint, onRequest });

  const about = ({ method, path }: HttpRequest, model?: string): Question => ({ method, path, endpoint, model });

  /** The failure of an answer that is no success. A path that is missing may be that of an Ollama; then say so. */
  async function refused(call: Call, question: Question, answer: HttpAnswer): Promise<GatewayError> {
    if (isMissingPath(answer.status) && refusedIn(documentIn(answer)) === undefined) {
      const version = await http
        .document(call, { method: 'GET', path: '/api/version', budgetMs: identifyBudgetMs })
        .then(versionIn, () => undefined);
      if (version !== undefined && version !== ollamaPlayed) return ollamaFound(question, version);
    }
    return refusal(question, answer);
  }

  async function read<T>(call: Call, request: HttpRequest, reader: (document: unknown) => T | undefined): Promise<T> {
    const answer = await http.document(call, request);
    if (!isSuccess(answer.status)) throw await refused(call, about(request), answer);
    const read = reader(documentIn(answer));
    if (read === undefined) throw notLemonade(about(request), answer);
    return read;
  }

  /** Has something done to a model. */
  async function change(call: Call, action: string, model: string, { budgetMs, ...more }: Change): Promise<void> {
    const body = { model_name: named(model), ...more };
    const request: HttpRequest = { method: 'POST', path: `/api/v1/${action}`, body, budgetMs };
    const answer = await http.document(call, request);
    if (!isSuccess(answer.status)) throw await refused(call, about(request, model), answer);
    if (!isDone(documentIn(answer))) throw notLemonade(about(request, model), answer);
  }

  return {
    health: call => read(call, { method: 'GET', path: '/api/v1/health' }, readHealth),
    models: (call, { all = false, ...budget } = {}) =>
      read(call, { method: 'GET', path: `/api/v1/models${all ? '?show_all=true' : ''}`, ...budget }, readModels),
    systemInfo: call => read(call, { method: 'GET', path: '/api/v1/system-info' }, readSystemInfo),

    // Left out, a pin that is there stays.
    load: (call, model, { pinned, budgetMs }) =>
      change(call, 'load', model, pinned ? { budgetMs, pinned } : { budgetMs }),
    unload: (call, model, budgetMs) =>
      change(call, 'unload', model, { budgetMs }).catch(error => {
        // Not in memory, or not there at all: the server does not tell them apart.
        if (!(error instanceof GatewayError) || error.code !== 'not_found') throw error;
      }),
    remove: (call, model, budgetMs) => change(call, 'delete', model, { budgetMs }),

    async *pull(call, model) {
      const body = { model_name: named(model), stream: true };
      const request: HttpRequest = { method: 'POST', path: '/api/v1/pull', body };
      const { answer, chunks } = await http.stream(call, request);
      if (!isSuccess(answer.status)) throw await refused(call, about(request, model), answer);
      if (!chunks) throw notLemonade(about(request, model), answer);
      const what = 'lemonade: POST /api/v1/pull';
      if (!isJson(answer.contentType)) return yield* progressOf(eventsOf(linesOf(chunks, what), what), model);
      // Servers that do not stream answer once, when all is there.
      const text = await textOf(chunks, what);
      if (!isDone(documentIn({ ...answer, text }))) throw notLemonade(about(request, model), { ...answer, text });
      yield { status: 'success', bytesCompleted: 0, bytesTotal: 0 };
    },
  };
}

/** Whether a document says that what was asked for is done. */
const isDone = (document: unknown) =>
  isObject(document) &&
  refusedIn(document) === undefined &&
  typeof document.status === 'string' &&
  ['success', 'ok'].includes(document.status.toLowerCase());

const isJson = (contentType: string) => /^application\/(?:.+\+)?json$/.test(contentType);

function versionIn(answer: HttpAnswer): string | undefined {
  const document = isSuccess(answer.status) ? documentIn(answer) : undefined;
  return isObject(document) && typeof document.version === 'string' ? document.version : undefined;
}

async function textOf(chunks: AsyncIterable<Uint8Array>, what: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > streamedLimit) throw backendError(`${what}: an answer of more than ${streamedLimit} characters`);
  }
  return text + decoder.decode();
}
