import { Refusal, type Reply } from '../host/reply.ts';
import { decoded, type Incoming, type Signals } from '../host/server.ts';
import { settle } from './downloads.ts';
import { chat, embeddings, oldModel, oldModels, openaiModels } from './inference.ts';
import { type Handler, json, type Machine, refusal } from './machine.ts';
import { download, downloadStatus, loadModel, models, unload } from './manage.ts';

/** The answer to a request, which may be a refusal; of what it does not know the app says so with 200. */
export async function answerTo(incoming: Incoming, machine: Machine, signals: Signals): Promise<Reply> {
  settle(machine);
  try {
    admit(incoming, machine);
    const { method, path } = incoming;
    const handler = routesOf(machine)[`${method} ${path}`] ?? handlerOfOne(incoming, machine);
    if (!handler) return json({ error: `Unexpected endpoint or method. (${method} ${path})` });
    return await handler(incoming, machine, signals);
  } catch (error) {
    if (error instanceof Refusal) return json(error.body, error.status);
    throw error;
  }
}

function admit({ headers }: Incoming, { tokens, features }: Machine): void {
  if (tokens.length === 0 || !features.v1) return;
  const [, token] = /^Bearer (.+)$/i.exec(headers.authorization ?? '') ?? [];
  if (token !== undefined && tokens.includes(token)) return;
  const words =
    token === undefined
      ? 'An LM Studio API token is required to make requests to this server'
      : 'Malformed LM Studio API token provided. Ensure you are using a valid token.';
  throw refusal(401, 'invalid_request', words, { code: 'invalid_api_key' });
}

const routesOf = ({ features }: Machine): Readonly<Record<string, Handler>> => ({
  ...(features.v1
    ? {
        'GET /api/v1/models': models,
        'POST /api/v1/models/load': loadModel,
        'POST /api/v1/models/unload': unload,
        'POST /api/v1/models/download': download,
      }
    : {}),
  'GET /api/v0/models': oldModels,
  'POST /api/v0/chat/completions': chat,
  'POST /api/v0/embeddings': embeddings,
  'GET /v1/models': openaiModels,
  'POST /v1/chat/completions': chat,
  'POST /v1/embeddings': embeddings,
});

/** The routes that have a name in their path. */
function handlerOfOne({ method, path }: Incoming, { features }: Machine): Handler | undefined {
  if (method !== 'GET') return undefined;
  const [, job] = /^\/api\/v1\/models\/download\/status\/([^/]+)$/.exec(path) ?? [];
  if (job !== undefined && features.v1) return downloadStatus(decoded(job));
  const [, model] = /^\/api\/v0\/models\/([^/].*)$/.exec(path) ?? [];
  return model === undefined ? undefined : oldModel(model);
}
