import { empty, type Reply, text } from '../host/reply.ts';
import type { Incoming } from '../host/server.ts';
import { embedding, wordsOf } from '../host/words.ts';
import { isAllowedHost, isAllowedOrigin } from './admission.ts';
import { completion, completionLines, type Generation } from './completions.ts';
import { readKeepAlive } from './keepAlive.ts';
import { capabilitiesOf, findModel, newestFirst, remove, type StoredModel, spelledAsStored } from './models.ts';
import { display, type Name, parseName, splitSource, stubName } from './names.ts';
import { type Puller, type PullLine, pull } from './pulls.ts';
import { ApiError, json, ndjson, refusal } from './reply.ts';
import { bind, type Fields } from './requests.ts';
import { acquire, expire, type Memory, type Runner, release, runnersOf, type Use } from './runners.ts';
import { fullName, goTime, psRow, showDocument, tagsRow } from './wire.ts';

/** One server as its handlers see it. */
export interface Machine extends Memory, Puller {
  readonly version: string;
  /** Of the server's zone, such as `+02:00`. */
  readonly utcOffset: string;
  /** What it says to requests for cloud models; none is ever answered. */
  readonly cloud: 'signed-out' | 'disabled';
  /** Between two words of a completion. */
  readonly tokenMs: number;
  readonly complete: (model: string, prompt: string) => string;
  /** Browser pages allowed besides the local ones. */
  readonly origins: readonly string[];
  /** Whether it is bound to loopback only, and so refuses foreign `Host`s. */
  readonly checkHost: boolean;
}

type Handler = (raw: string, machine: Machine, signal: AbortSignal) => Reply | Promise<Reply>;

/** The answer to a request, which may be a refusal. */
export async function answerTo(incoming: Incoming, machine: Machine, signal: AbortSignal): Promise<Reply> {
  const { origin, host } = incoming.headers;
  if (origin !== undefined && !isAllowedOrigin(origin, host, machine.origins)) return empty(403);
  if (machine.checkHost && machine.features.hostCheck && !isAllowedHost(host)) return empty(403);
  const cors: Record<string, string> =
    origin === undefined ? {} : { 'access-control-allow-origin': origin, vary: 'Origin' };
  if (incoming.method === 'OPTIONS') return empty(204, cors);
  try {
    const reply = await route(incoming, machine, signal);
    return { ...reply, headers: { ...reply.headers, ...cors } };
  } catch (error) {
    if (error instanceof ApiError) return refusal(error, cors);
    throw error;
  }
}

function route({ method, path, raw }: Incoming, machine: Machine, signal: AbortSignal) {
  const methods = routesOf(machine)[path];
  const handler = methods?.[method];
  if (handler) return handler(raw, machine, signal);
  if (methods && machine.features.methodNotAllowed) {
    return text('405 method not allowed', 405, { allow: Object.keys(methods).join(', ') });
  }
  return text('404 page not found', 404);
}

const routesOf = ({ features }: Machine): Record<string, Record<string, Handler>> => ({
  '/': { GET: running, HEAD: running },
  '/api/version': { GET: version, HEAD: version },
  '/api/tags': { GET: tags, HEAD: tags },
  ...(features.ps ? { '/api/ps': { GET: ps } } : {}),
  '/api/show': { POST: show },
  '/api/pull': { POST: pullModel },
  '/api/delete': { DELETE: deleteModel },
  '/api/generate': { POST: generate },
  '/api/chat': { POST: chat },
  ...(features.embed ? { '/api/embed': { POST: embed } } : {}),
});

const running: Handler = () => text('Ollama is running', 200, { 'content-type': 'text/plain; charset=utf-8' });

const version: Handler = (_, machine) => json({ version: machine.version });

const tags: Handler = (_, { state, features, utcOffset }) => {
  const models = newestFirst(state.models.values()).map(model => tagsRow(model, features, utcOffset));
  // An empty list came with /api/ps; before it was Go's nil.
  return json({ models: models.length > 0 || features.ps ? models : null });
};

const ps: Handler = (_, machine) => {
  const { clock, features, utcOffset } = machine;
  return json({ models: runnersOf(machine).map(runner => psRow(runner, features, utcOffset, clock.now())) });
};

const show: Handler = (raw, machine) => {
  const fields = bind(raw, 'ShowRequest');
  const reference = fields.model || fields.name || '';
  if (reference === '') throw new ApiError(400, 'model is required');
  const { base, source } = locate(reference);
  if (source === 'cloud') throw cloudRefusal(machine, 'remote model details are unavailable');
  const model = find(machine, base, reference);
  return json(showDocument(model, machine.features, machine.utcOffset));
};

const pullModel: Handler = async (raw, machine, signal) => {
  const fields = bind(raw, 'PullRequest');
  const name = spelledAsStored(machine.state, pullName(fields.model || fields.name || '', 'invalid model name'));
  const lines = pull(machine, name, signal);
  return fields.stream === false ? await lastLine(lines) : ndjson(lines);
};

async function lastLine(lines: AsyncIterable<PullLine>): Promise<Reply> {
  let last: PullLine = { status: '' };
  for await (const line of lines) last = line;
  return json(last, 'error' in last ? 500 : 200, 'application/json');
}

const deleteModel: Handler = (raw, { state }) => {
  const fields = bind(raw, 'DeleteRequest');
  const reference = fields.model || fields.name || '';
  const name = spelledAsStored(state, pullName(reference, `name ${JSON.stringify(reference)} is invalid`));
  if (!remove(state, display(name))) throw notFound(reference);
  return empty();
};

const generate: Handler = async (raw, machine, signal) => {
  const fields = bind(raw, 'GenerateRequest');
  const prompt = fields.prompt ?? '';
  return await use(machine, fields, signal, {
    verb: 'generate',
    prompt,
    nameless: notFound(''),
    needsTools: false,
    render: word => ({ response: word }),
  });
};

const chat: Handler = async (raw, machine, signal) => {
  const fields = bind(raw, 'ChatRequest');
  const messages = fields.messages ?? [];
  return await use(machine, fields, signal, {
    verb: 'chat',
    // A message without a word is a message all the same.
    prompt: messages.length > 0 ? messages.map(message => message.content || ' ').join('\n') : '',
    nameless: new ApiError(400, 'model is required'),
    needsTools: (fields.tools ?? []).length > 0,
    render: word => ({ message: { role: 'assistant', content: word } }),
  });
};

interface Inference {
  readonly verb: 'generate' | 'chat';
  /** Empty to load, or to unload. */
  readonly prompt: string;
  /** The refusal of a request without a model. */
  readonly nameless: ApiError;
  readonly needsTools: boolean;
  readonly render: (word: string) => object;
}

async function use(machine: Machine, fields: Fields, signal: AbortSignal, inference: Inference): Promise<Reply> {
  const { clock, features } = machine;
  const startedAt = clock.now();
  const keepAliveMs = readKeepAlive(fields.keep_alive);
  const model = findLocal(machine, fields, inference.nameless);
  const requested = fields.model ?? '';
  const done = (reason: string) =>
    json({
      model: requested,
      created_at: goTime(clock.now()),
      ...inference.render(''),
      done: true,
      done_reason: reason,
    });

  if (inference.prompt === '' && keepAliveMs === 0 && features.unload) {
    expire(machine, model);
    return done('unload');
  }
  requireCapabilities(model, requested, fields, inference);
  const runner = await acquire(machine, model, usage(fields, keepAliveMs), signal);
  if (inference.prompt === '') {
    release(machine, runner);
    return done('load');
  }
  const generation = {
    clock,
    model: requested,
    words: wordsOf(machine.complete(model.shown, inference.prompt)),
    promptWords: wordsOf(inference.prompt).length,
    tokenMs: machine.tokenMs,
    startedAt,
    loadedAt: clock.now(),
    render: inference.render,
  };
  if (fields.stream !== false) return ndjson(holding(machine, runner, generation, signal));
  try {
    return json(await completion(generation, signal));
  } finally {
    release(machine, runner);
  }
}

/** The lines of a generation, which keep the model busy until the last one. */
async function* holding(machine: Machine, runner: Runner, generation: Generation, signal: AbortSignal) {
  try {
    yield* completionLines(generation, signal);
  } finally {
    release(machine, runner);
  }
}

const embed: Handler = async (raw, machine, signal) => {
  const fields = bind(raw, 'EmbedRequest');
  const { clock, features } = machine;
  const startedAt = clock.now();
  const keepAliveMs = readKeepAlive(fields.keep_alive);
  const inputs = inputsOf(fields.input, features.embedLoads);
  const nothing = json({ model: fields.model, embeddings: [] });
  if (inputs.length === 0 && !features.embedLoads) return nothing;
  const model = findLocal(machine, fields, notFound(''));
  const runner = await acquire(machine, model, usage(fields, keepAliveMs), signal);
  release(machine, runner);
  if (inputs.length === 0) return nothing;
  const length = fields.dimensions || model.facts.embeddingLength || 8;
  return json({
    model: fields.model,
    embeddings: inputs.map(input => embedding(input, length)),
    total_duration: Math.max(1, Math.round((clock.now() - startedAt) * 1e6)),
    load_duration: Math.max(1, Math.round((clock.now() - startedAt) * 1e6)),
    prompt_eval_count: inputs.reduce((sum, input) => sum + wordsOf(input).length, 0),
  });
};

function inputsOf(input: unknown, optional: boolean): string[] {
  if (input === '' || ((input === undefined || input === null) && optional)) return [];
  const inputs = Array.isArray(input) ? input : [input];
  if (!inputs.every(each => typeof each === 'string')) throw new ApiError(400, 'invalid input type');
  return inputs;
}

const usage = ({ options }: Fields, keepAliveMs: number | undefined): Use => ({
  keepAliveMs,
  contextLength: options?.num_ctx,
  onCpu: options?.num_gpu === 0,
});

/** The model that a request wants to run here; a cloud model is none. */
function findLocal(machine: Machine, fields: Fields, nameless: ApiError): StoredModel {
  const reference = fields.model ?? '';
  if (reference.trim() === '') throw nameless;
  const { base, source } = locate(reference);
  if (source === 'cloud') throw cloudRefusal(machine, 'remote model is unavailable');
  const model = find(machine, base, reference);
  if (model.facts.remote)
    throw source === 'local' ? notFound(reference) : cloudRefusal(machine, 'remote model is unavailable');
  return model;
}

function find({ state }: Machine, base: string, reference: string): StoredModel {
  const name = parseName(base);
  if (!name) throw new ApiError(400, 'invalid model name');
  const model = findModel(state, name);
  if (!model) throw notFound(reference);
  return model;
}

function locate(reference: string) {
  const found = splitSource(reference.trim());
  if (found.conflict) {
    throw new ApiError(400, `use either :local or :cloud, not both: ${JSON.stringify(reference)}`);
  }
  return found;
}

/** The name that pull and delete mean: that of the stub, for a cloud model. */
function pullName(reference: string, invalid: string): Name {
  const { base, source } = locate(reference);
  const name = parseName(source === 'cloud' ? stubName(base) : base);
  if (!name) throw new ApiError(400, invalid);
  return name;
}

function requireCapabilities(model: StoredModel, requested: string, fields: Fields, inference: Inference): void {
  const capabilities = capabilitiesOf(model);
  const refuse = (what: string) => new ApiError(400, what);
  if (capabilities.includes('image')) throw refuse('image generation models are not currently supported');
  if (fields.think && !capabilities.includes('thinking')) {
    throw refuse(`${JSON.stringify(requested)} does not support thinking`);
  }
  if (!capabilities.includes('completion')) {
    throw refuse(`${JSON.stringify(requested)} does not support ${inference.verb}`);
  }
  if (inference.needsTools && !capabilities.includes('tools')) {
    throw refuse(`${fullName(model)} does not support tools`);
  }
}

const notFound = (reference: string) => new ApiError(404, `model '${reference}' not found`);

function cloudRefusal({ cloud }: Machine, operation: string): ApiError {
  if (cloud === 'disabled') return new ApiError(403, `ollama cloud is disabled: ${operation}`);
  return new ApiError(401, 'unauthorized', { signin_url: 'https://ollama.com/connect?name=emulated&key=none' });
}
