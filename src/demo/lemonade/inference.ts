import { holding } from '../host/latch.ts';
import { chatChunks, chatCompletion, embeddingList, promptOf } from '../host/openai.ts';
import { sse } from '../host/reply.ts';
import { embedding, wordsOf } from '../host/words.ts';
import { type Handler, json, type Machine } from './machine.ts';
import { load, type Resident } from './memory.ts';
import type { Entry } from './models.ts';
import { bodyOf, entryOf, nameOf } from './requests.ts';

export const chat: Handler = async ({ raw }, machine, { gone, life }) => {
  const fields = bodyOf(raw);
  const name = nameOf(fields.model);
  const entry = entryOf(machine.state, name);
  const prompt = promptOf(fields.messages);
  const streams = fields.stream === true;
  const release = await use(machine, entry, life, streams);
  const completion = {
    clock: machine.clock,
    model: name,
    words: wordsOf(machine.complete(name, prompt)),
    promptWords: wordsOf(prompt).length,
    tokenMs: machine.tokenMs,
  };
  if (streams) return sse(holding(release, chatChunks(completion, gone)));
  try {
    return json(await chatCompletion(completion, gone));
  } finally {
    release();
  }
};

export const embeddings: Handler = async ({ raw }, machine, { life }) => {
  const fields = bodyOf(raw);
  const name = nameOf(fields.model);
  const release = await use(machine, entryOf(machine.state, name), life);
  release();
  const inputs = [fields.input].flat().map(String);
  const vectors = inputs.map(input => embedding(input, 8));
  return json(embeddingList(name, vectors, inputs.flatMap(wordsOf).length));
};

/** Brings a model into memory and keeps it busy until the returned function is called. */
export async function use(machine: Machine, entry: Entry, life: AbortSignal, streams = false): Promise<() => void> {
  const resident: Resident = await load(machine, entry, {}, life);
  const release = resident.uses.hold();
  if (streams) resident.streams++;
  return () => {
    release();
    if (streams) resident.streams--;
    resident.lastUse = machine.clock.now();
  };
}
