import { Refusal, type Reply, sse } from '../host/reply.ts';
import type { PullEvent } from './downloads/progress.ts';
import { jobsOf, pull, pullUnattended } from './downloads/pulls.ts';
import { type Handler, json } from './machine.ts';
import { evict, load } from './memory.ts';
import { findEntry, namespaceOf, remove } from './models.ts';
import { bodyOf, entryOf, nameOf } from './requests.ts';
import { systemDocument } from './system.ts';
import { healthDocument, jobRow, modelRow } from './wire.ts';

export const health: Handler = (_, machine) => {
  const { state, version, listsLoading } = machine;
  const coming = listsLoading ? state.coming : undefined;
  return json(healthDocument(machine, version, [...state.residents.values()], coming));
};

export const models: Handler = ({ query }, { state, features }) => {
  const all = query.get('show_all') === 'true';
  const listed = [...state.catalog.values()].filter(entry => all || entry.downloaded);
  return json({ object: 'list', data: listed.map(entry => modelRow(state, entry, features)) });
};

export const pullModel: Handler = async ({ raw }, machine, { life }) => {
  const fields = bodyOf(raw);
  const name = nameOf(fields.model ?? fields.model_name);
  const { state, features } = machine;
  if (machine.offline) {
    const code = features.storage ? { code: 'lemond_offline' } : {};
    throw new Refusal(400, { ...code, error: 'Lemond is in offline mode, models not downloaded' });
  }
  const entry = findEntry(state, name);
  const unknown = {
    ...(features.publicNames ? { code: 'unknown_model' } : {}),
    error: `When registering a new model, the model name must include the \`user\` namespace, for example \`user.Phi-4-Mini-GGUF\`. Received: ${name}`,
  };
  if (fields.stream === true && features.pullStream) {
    if (!entry) return eventStream(once({ event: 'error', data: unknown }));
    if (fields.subscribe === false) return json(jobRow(pullUnattended(machine, entry, life)));
    return eventStream(pull(machine, entry, life));
  }
  if (!entry) throw new Refusal(400, unknown);
  for await (const { event, data } of pull(machine, entry, life)) {
    if (event === 'error') throw new Refusal(500, data);
  }
  return json({ status: 'success', model_name: name });
};

async function* once(event: PullEvent): AsyncGenerator<PullEvent> {
  yield event;
}

const eventStream = (events: AsyncIterable<PullEvent>): Reply => sse(written(events), { 'x-accel-buffering': 'no' });

async function* written(events: AsyncIterable<PullEvent>) {
  for await (const { event, data } of events) yield { event, data: JSON.stringify(data) };
}

export const loadModel: Handler = async ({ raw }, machine, { life }) => {
  const fields = bodyOf(raw);
  const name = nameOf(fields.model_name ?? fields.model);
  const entry = entryOf(machine.state, name);
  // A pin that is no boolean is no pin, and no error.
  const pinned = typeof fields.pinned === 'boolean' && machine.features.residency ? fields.pinned : undefined;
  const contextLength = typeof fields.ctx_size === 'number' ? fields.ctx_size : undefined;
  await load(machine, entry, { pinned, contextLength }, life);
  const { checkpoint, recipe } = modelRow(machine.state, entry, machine.features);
  return json({ status: 'success', model_name: name, checkpoint, recipe });
};

export const unload: Handler = async ({ raw }, machine, { life }) => {
  const { state } = machine;
  const name = looseName(raw);
  if (name === '') {
    state.crashed.clear();
    for (const resident of [...state.residents.values()]) await evict(machine, resident, life);
    return json({ status: 'success', message: 'All models unloaded successfully' });
  }
  const id = findEntry(state, name)?.id ?? name;
  const resident = state.residents.get(id);
  if (!resident && !state.crashed.delete(id)) throw new Refusal(404, { error: `Model not loaded: ${name}` });
  if (resident) await evict(machine, resident, life);
  return json({ status: 'success', message: 'Model unloaded successfully', model_name: name });
};

/** What an unload means: anything that names no model means all of them, and no body is refused. */
function looseName(raw: string): string {
  try {
    const fields = JSON.parse(raw);
    return [fields.model_name, fields.model].find(name => typeof name === 'string') ?? '';
  } catch {
    return '';
  }
}

export const deleteModel: Handler = async ({ raw }, machine, { life }) => {
  const { state } = machine;
  const fields = bodyOf(raw);
  const name = nameOf(fields.model_name ?? fields.model);
  const entry = findEntry(state, name);
  if (!entry) throw new Refusal(422, { error: `Model not found: ${name}` });
  if (namespaceOf(entry.id) === 'extra.') {
    throw new Refusal(500, { error: `Cannot delete a model of the extra models folder: ${name}` });
  }
  const resident = state.residents.get(entry.id);
  if (resident) await evict(machine, resident, life);
  remove(state, entry);
  return json({ status: 'success', message: `Deleted model: ${name}` });
};

export const downloads: Handler = (_, machine) => json(jobsOf(machine).map(jobRow));

const stops: Record<string, 'paused' | 'cancelled'> = { pause: 'paused', cancel: 'cancelled' };

export const stopDownload: Handler = ({ raw }, machine) => {
  const { id, action } = bodyOf(raw);
  const job = jobsOf(machine).find(({ entry }) => `model:${entry.id}` === id);
  if (action === 'remove') {
    if (job?.running) throw new Refusal(409, { error: 'Download is still running' });
    if (job) machine.state.jobs.delete(job.entry.id);
    return json({ status: 'ok', ...(job ? {} : { missing: true }) });
  }
  const status = stops[String(action)];
  if (!status) throw new Refusal(400, { error: `Unknown action: ${action}` });
  if (!job) throw new Refusal(404, { error: `Download not found: ${id}` });
  if (job.running) job.status = status;
  return json(jobRow(job));
};

export const system: Handler = async (_, machine, { life }) => {
  const { state, clock, features, probeMs } = machine;
  if (!state.probed) await clock.sleep(probeMs, life);
  state.probed = true;
  return json({ ...systemDocument(state, features), ...machine.system });
};
