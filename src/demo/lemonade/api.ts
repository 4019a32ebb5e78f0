import { Refusal, type Reply } from '../host/reply.ts';
import { decoded, type Incoming, type Signals } from '../host/server.ts';
import { chat, embeddings } from './inference.ts';
import { type Handler, json, type Machine, type Routes } from './machine.ts';
import {
  deleteModel,
  downloads,
  health,
  loadModel,
  models,
  pullModel,
  stopDownload,
  system,
  unload,
} from './manage.ts';
import { ollamaRoutes } from './ollama.ts';
import { entryOf } from './requests.ts';
import { fileList, modelRow } from './wire.ts';

/** The answer to a request, which may be a refusal. */
export async function answerTo(incoming: Incoming, machine: Machine, signals: Signals): Promise<Reply> {
  await machine.state.door.free(signals.gone);
  try {
    admit(incoming, machine);
    return await route(incoming, machine, signals);
  } catch (error) {
    if (error instanceof Refusal) return json(error.body, error.status);
    throw error;
  }
}

function admit({ path, headers }: Incoming, { apiKey, features, origins }: Machine): void {
  const { origin } = headers;
  if (features.originCheck && origin !== undefined && !isAllowedOrigin(origin, headers.host, origins)) {
    throw new Refusal(403, { error: 'Origin not allowed' });
  }
  const guarded = features.apiKey && apiKey !== undefined && /^\/(api|v0|v1)\//.test(path);
  if (guarded && headers.authorization !== `Bearer ${apiKey}`) {
    throw new Refusal(401, { error: 'Invalid or missing API key' });
  }
}

const localOrigin = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/;

const isAllowedOrigin = (origin: string, host: string | undefined, more: readonly string[]) =>
  localOrigin.test(origin) || origin === `http://${host}` || origin === `https://${host}` || more.includes(origin);

function route(incoming: Incoming, machine: Machine, signals: Signals): Reply | Promise<Reply> {
  const { method, path } = incoming;
  const below = /^(?:\/api)?\/v[01](\/.*)$/s.exec(path)?.[1];
  const methods = below === undefined ? ollamaRoutes[path] : (routesOf(machine)[below] ?? modelRoute(below, machine));
  const handler = methods?.[method];
  if (handler) return handler(incoming, machine, signals);
  if (methods?.POST && method === 'GET') {
    throw new Refusal(405, { error: 'Method Not Allowed. Use POST for this endpoint' });
  }
  throw new Refusal(404, { error: { message: 'The requested endpoint does not exist', path, type: 'not_found' } });
}

/** Every one of them stands under each of the four prefixes. */
const routesOf = ({ features }: Machine): Routes => ({
  '/health': { GET: health },
  '/models': { GET: models },
  '/pull': { POST: pullModel },
  '/load': { POST: loadModel },
  '/unload': { POST: unload },
  '/delete': { POST: deleteModel },
  ...(features.downloads ? { '/downloads': { GET: downloads }, '/downloads/control': { POST: stopDownload } } : {}),
  '/system-info': { GET: system },
  '/chat/completions': { POST: chat },
  '/embeddings': { POST: embeddings },
});

/** The routes of one model, whose name is part of the path. */
function modelRoute(below: string, { features }: Machine): Record<string, Handler> | undefined {
  const [, name, files] = /^\/models\/([^/]+)(\/files)?$/.exec(below) ?? [];
  if (name === undefined || (files && !features.measuresAll)) return undefined;
  return {
    GET: (_, { state }) => {
      const entry = entryOf(state, decoded(name));
      return json(files ? fileList(state, entry) : modelRow(state, entry, features));
    },
  };
}
