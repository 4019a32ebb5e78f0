import type { Call } from '../../call.ts';
import type { PullProgress } from '../../domain.ts';
import { createHttp, documentIn, type HttpAnswer, type HttpRequest, isSuccess, type OnRequest } from '../http.ts';
import { linesOf } from '../lines.ts';
import { errorTextIn, notOllama, type Question, refusal } from './errors.ts';
import { progressOf } from './pull.ts';
import { type Entry, readEntries, readVersion } from './wire.ts';

/** Ollama's API, one function per endpoint. Each throws a `GatewayError`, also for a 200 that is not Ollama's. */
export interface OllamaClient {
  version(call: Call): Promise<string>;
  /** The models on disk. */
  tags(call: Call): Promise<Entry[]>;
  /** The models in memory. */
  ps(call: Call): Promise<Entry[]>;
  /** Sets a keep-alive (seconds or a Go duration), which loads the model or, at 0, lets go of it. False = it only embeds. */
  generate(call: Call, model: string, keepAlive: number | string, budgetMs: number): Promise<boolean>;
  /** The same for a model that only embeds. Servers before 0.3.6 answer without doing it. */
  embed(call: Call, model: string, keepAlive: number | string, budgetMs: number): Promise<void>;
  remove(call: Call, model: string, budgetMs: number): Promise<void>;
  pull(call: Call, model: string): AsyncGenerator<PullProgress>;
}

export function createOllamaClient(endpoint: string, onRequest?: OnRequest): OllamaClient {
  const http = createHttp({ kind: 'ollama', product: 'Ollama', endpoint, onRequest });

  const about = ({ method, path }: HttpRequest, model?: string): Question => ({ method, path, endpoint, model });

  async function ask(call: Call, request: HttpRequest, model?: string): Promise<HttpAnswer> {
    const answer = await http.document(call, request);
    if (!isSuccess(answer.status)) throw refusal(about(request, model), answer);
    return answer;
  }

  /** A document of a list, by the reader that knows it. */
  async function read<T>(call: Call, path: string, reader: (document: unknown) => T | undefined): Promise<T> {
    const request: HttpRequest = { method: 'GET', path };
    const answer = await ask(call, request);
    const read = reader(documentIn(answer));
    if (read === undefined) throw notOllama(about(request), answer);
    return read;
  }

  return {
    version: call => read(call, '/api/version', readVersion),
    tags: call => read(call, '/api/tags', readEntries),
    ps: call => read(call, '/api/ps', readEntries),

    async generate(call, model, keepAlive, budgetMs) {
      const body = { model, keep_alive: keepAlive };
      const request: HttpRequest = { method: 'POST', path: '/api/generate', body, budgetMs };
      const answer = await http.document(call, request);
      if (answer.status === 400 && /does not support (?:generate|completion)/.test(errorTextIn(answer) ?? ''))
        return false;
      if (!isSuccess(answer.status)) throw refusal(about(request, model), answer);
      if ((documentIn(answer) as { done?: unknown } | null | undefined)?.done !== true)
        throw notOllama(about(request, model), answer);
      return true;
    },

    async embed(call, model, keepAlive, budgetMs) {
      const body = { model, input: '', keep_alive: keepAlive };
      const request: HttpRequest = { method: 'POST', path: '/api/embed', body, budgetMs };
      const answer = await ask(call, request, model);
      const document = documentIn(answer) as { embeddings?: unknown } | null | undefined;
      if (!Array.isArray(document?.embeddings)) throw notOllama(about(request, model), answer);
    },

    async remove(call, model, budgetMs) {
      // The answer is a 200 with nothing in it.
      const request: HttpRequest = { method: 'DELETE', path: '/api/delete', body: { model }, budgetMs };
      const answer = await ask(call, request, model);
      if (answer.text.trim() !== '' && errorTextIn(answer) !== undefined)
        throw notOllama(about(request, model), answer);
    },

    async *pull(call, model) {
      const request: HttpRequest = { method: 'POST', path: '/api/pull', body: { model, stream: true } };
      const { answer, chunks } = await http.stream(call, request);
      if (chunks) return yield* progressOf(linesOf(chunks, 'ollama: POST /api/pull'));
      throw (isSuccess(answer.status) ? notOllama : refusal)(about(request, model), answer);
    },
  };
}
