import { holding } from '../host/latch.ts';
import { chatChunks, chatCompletion, embeddingList, promptOf } from '../host/openai.ts';
import { Refusal, sse } from '../host/reply.ts';
import { decoded } from '../host/server.ts';
import { embedding, wordsOf } from '../host/words.ts';
import { findInstance, instancesOf, LoadError, loadOnDemand, occupy } from './instances.ts';
import { bodyOf, type Handler, json, type Machine } from './machine.ts';
import { findModel } from './models.ts';
import { oldModelEntry } from './wire.ts';

export const openaiModels: Handler = (_, { state }) =>
  json({
    data: [...state.library.keys()].map(id => ({ id, object: 'model', owned_by: 'organization_owner' })),
    object: 'list',
  });

export const oldModels: Handler = (_, machine) => {
  const instances = instancesOf(machine);
  const { library } = machine.state;
  return json({ object: 'list', data: [...library.values()].map(model => oldModelEntry(model, instances)) });
};

export const oldModel = (part: string): Handler => {
  return (_, machine) => {
    const model = machine.state.library.get(decoded(part));
    if (!model) throw openaiRefusal(404, `Model "${decoded(part)}" not found.`);
    return json(oldModelEntry(model, instancesOf(machine)));
  };
};

export const chat: Handler = async ({ raw }, machine, { gone, life }) => {
  const fields = bodyOf(raw);
  const prompt = promptOf(fields.messages);
  const { id, release } = await use(machine, fields, life);
  const completion = {
    clock: machine.clock,
    model: id,
    words: wordsOf(machine.complete(id, prompt)),
    promptWords: wordsOf(prompt).length,
    tokenMs: machine.tokenMs,
  };
  if (fields.stream === true) return sse(holding(release, chatChunks(completion, gone)));
  try {
    return json(await chatCompletion(completion, gone));
  } finally {
    release();
  }
};

export const embeddings: Handler = async ({ raw }, machine, { life }) => {
  const fields = bodyOf(raw);
  const { id, release } = await use(machine, fields, life);
  release();
  const inputs = [fields.input].flat().map(String);
  const vectors = inputs.map(input => embedding(input, 8));
  return json(embeddingList(id, vectors, inputs.flatMap(wordsOf).length));
};

/** Brings the model that a request names into memory, if it must be, and keeps it busy. */
async function use(machine: Machine, fields: Readonly<Record<string, unknown>>, life: AbortSignal) {
  const { state, features, onDemand } = machine;
  const name = String(fields.model ?? '');
  const model = findModel(state, name, features.variantKeys);
  const current = findInstance(machine, name, model);
  if (!current && !model) {
    const examples = [...state.library.keys()].slice(0, 3).join(', ');
    const advice = `Please specify a valid downloaded model (e.g., ${examples}).`;
    throw openaiRefusal(400, `Invalid model identifier "${name}". ${advice}`, 'model_not_found');
  }
  if (!current && !onDemand) {
    const advice = "Please load a model in the developer page or use the 'lms load' command.";
    throw openaiRefusal(400, `No models loaded. ${advice}`);
  }
  const ttlMs = typeof fields.ttl === 'number' ? fields.ttl * 1000 : undefined;
  try {
    const instance = current ?? (await loadOnDemand(machine, model as NonNullable<typeof model>, ttlMs, life));
    return { id: instance.id, release: occupy(machine, instance) };
  } catch (error) {
    if (error instanceof LoadError) throw openaiRefusal(400, `Failed to load model "${name}". ${error.message}`);
    throw error;
  }
}

const openaiRefusal = (status: number, message: string, code: string | null = null) =>
  new Refusal(status, { error: { message, type: 'invalid_request_error', param: 'model', code } });
