import { atMost, type Call } from '../call.ts';
import type { Model } from '../domain.ts';
import { conflict, GatewayError, modelNotFound } from '../errors.ts';
import { notInTime } from './ask.ts';
import { type Backend, readValue, usualLookMs } from './backend.ts';
import { answersInTime } from './patience.ts';
import { namedOrOnly, type Registry } from './registry.ts';

/** A model and the backend that has it. */
export interface Found {
  readonly backend: Backend;
  readonly model: Model;
}

/** What one backend says of a reference. */
interface Answer {
  readonly backend: Backend;
  readonly model?: Model | undefined;
  readonly error?: GatewayError;
}

/** Who has all the time there is waits for a look all the same, not for what a look may begin. */
const soon = (call: Call): Call => (call.deadline - Date.now() <= usualLookMs ? call : atMost(call, usualLookMs));

/** The listed model of that name on one backend, or undefined. Throws when the backend cannot say. */
async function lookUp(call: Call, backend: Backend, reference: string): Promise<Model | undefined> {
  const { rows, errors } = await readValue(backend.models, soon(call));
  if (errors[0]) throw errors[0].error;
  return backend.driver.find(rows, reference);
}

/** The same, or the model that a preset of the backend would bring. */
const lookUpOrOffered = async (
  call: Call,
  backend: Backend,
  reference: string,
  preset?: string,
): Promise<Model | undefined> =>
  (await lookUp(call, backend, reference)) ?? backend.driver.offered?.(call, reference, preset);

/** The listed model of that name on the one backend that is asked. */
export const findOn = (call: Call, backend: Backend, reference: string): Promise<Found> =>
  foundOn(backend, reference, lookUp(call, backend, reference));

async function foundOn(backend: Backend, reference: string, looked: Promise<Model | undefined>): Promise<Found> {
  const model = await looked;
  if (model) return { backend, model };
  const where = backend.driver.offered ? 'neither cached, served nor a preset' : `not on ${backend.name}`;
  throw modelNotFound(`${reference} is ${where}`);
}

/**
 * The model a reference names. With one backend that one answers; with several, all are asked: the only one that has it
 * wins even when another fails, two that have it are a conflict, and nobody having it is `not_found` only when everybody
 * could say so. A backend that calls the reference invalid ends the matter at once. What a backend does not list may be
 * what one of its presets would bring: the named one, where one is named.
 */
export async function resolveModel(
  call: Call,
  registry: Registry,
  reference: string,
  name: string | null | undefined,
  preset?: string,
): Promise<Found> {
  const named = namedOrOnly(registry, name);
  if (named) return foundOn(named, reference, lookUpOrOffered(call, named, reference, preset));

  const asked = await answersInTime(
    registry.backends.map(async (backend): Promise<Answer> => {
      try {
        return { backend, model: await lookUpOrOffered(call, backend, reference, preset) };
      } catch (error) {
        if (error instanceof GatewayError && error.code !== 'invalid_request') return { backend, error };
        throw error;
      }
    }),
    index => {
      const backend = registry.backends[index] as Backend;
      return { backend, error: notInTime(backend) };
    },
  );
  const having = asked.filter((answer): answer is Found => answer.model !== undefined);
  const [only, second] = having;
  if (only && second) {
    throw conflict(`${reference} exists on ${having.map(({ backend }) => backend.name).join(', ')}; name the backend`);
  }
  if (only) return only;
  for (const { backend, error } of asked) {
    if (error) throw new GatewayError(error.code, `${backend.name}: ${error.message}`, { cause: error });
  }
  const all = registry.backends.map(backend => backend.name).join(', ');
  throw modelNotFound(`${reference} is on none of the backends (${all})`);
}
