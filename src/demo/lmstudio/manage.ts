import { settle, start } from './downloads.ts';
import { instancesOf, LoadError, load } from './instances.ts';
import { bodyOf, type Handler, json, type Machine, refusal } from './machine.ts';
import { findModel } from './models.ts';
import { jobDocument, modelEntry, startedDocument } from './wire.ts';

export const models: Handler = (_, machine) => {
  const instances = instancesOf(machine);
  const { library } = machine.state;
  return json({ models: [...library.values()].map(model => modelEntry(model, instances, machine.features)) });
};

const configFields = [
  'context_length',
  'eval_batch_size',
  'flash_attention',
  'num_experts',
  'offload_kv_cache_to_gpu',
] as const;

/** Loads one more instance, whatever is in memory. */
export const loadModel: Handler = async ({ raw }, machine, { life }) => {
  const { state, features, clock } = machine;
  const fields = bodyOf(raw);
  const key = required(fields, 'model');
  const unknown = Object.keys(fields).find(field => !['model', 'echo_load_config', ...configFields].includes(field));
  if (unknown !== undefined) {
    const more = { code: 'unrecognized_keys', param: unknown };
    throw refusal(400, 'invalid_request', `Unrecognized key: ${unknown}`, more);
  }
  const model = findModel(state, key, features.variantKeys);
  if (!model) throw refusal(404, 'model_not_found', `Model ${key} not found in downloaded models`);
  const startedAt = clock.now();
  const config = Object.fromEntries(configFields.filter(field => field in fields).map(field => [field, fields[field]]));
  try {
    const instance = await load(machine, model, { config }, life);
    const { type } = modelEntry(model, [], features);
    return json({
      type,
      instance_id: instance.id,
      load_time_seconds: (clock.now() - startedAt) / 1000,
      status: 'loaded',
      ...(fields.echo_load_config === true ? { load_config: instance.config } : {}),
    });
  } catch (error) {
    if (error instanceof LoadError) throw refusal(500, 'unknown', error.message);
    throw error;
  }
};

export const unload: Handler = async ({ raw }, machine, { life }) => {
  const id = required(bodyOf(raw), 'instance_id');
  if (!instancesOf(machine).some(instance => instance.id === id)) {
    throw refusal(404, 'model_not_found', `Model with instance identifier '${id}' is not loaded.`);
  }
  await machine.clock.sleep(machine.unloadMs, life);
  machine.state.instances.delete(id);
  return json({ instance_id: id });
};

export const download: Handler = ({ raw }, machine) => {
  const { state } = machine;
  const fields = bodyOf(raw);
  const reference = required(fields, 'model');
  const isLink = /^https?:\/\//.test(reference);
  if (fields.quantization !== undefined && !isLink) {
    const message = 'quantization is only supported for Hugging Face links';
    throw refusal(400, 'not_implemented', message, { param: 'quantization' });
  }
  const published = findPublished(machine, reference, fields.quantization);
  if (!published && !state.library.has(reference)) {
    throw refusal(404, 'model_not_found', `Model ${reference} not found`);
  }
  if (!published || published.model.mistakenForDownloaded || state.library.has(published.model.name)) {
    return json({ status: 'already_downloaded' });
  }
  const started = state.jobsStarted;
  const job = start(machine, published);
  return json(state.jobsStarted > started ? startedDocument(job) : jobDocument(machine, job));
};

function findPublished({ state }: Machine, reference: string, quantization: unknown) {
  return [...state.catalog.values()].find(
    ({ model }) =>
      (model.reference ?? model.name) === reference &&
      (quantization === undefined || String(quantization).toLowerCase() === model.quantization?.toLowerCase()),
  );
}

export const downloadStatus = (id: string): Handler => {
  return (_, machine) => {
    const job = machine.state.jobs.get(id);
    if (!job) throw refusal(404, 'job_not_found', 'Download job not found');
    settle(machine);
    return json(jobDocument(machine, job));
  };
};

function required(fields: Readonly<Record<string, unknown>>, param: string): string {
  const value = fields[param];
  if (typeof value === 'string' && value !== '') return value;
  const code = value === undefined ? 'missing_required_parameter' : 'invalid_type';
  throw refusal(400, 'invalid_request', `'${param}' must be a text that is not empty`, { code, param });
}
