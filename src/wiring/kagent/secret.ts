import type { Call } from '../../call.ts';
import { unavailable, unlessMissing } from '../../errors.ts';
import { type Secret, secrets } from '../../kubernetes/resource.ts';
import { codeOf, type Place } from './look.ts';
import { isOurs, type Row } from './modelConfig.ts';
import { placeholderNameOf } from './names.ts';
import { placeholderSecret } from './shapes.ts';

/** The Secret that a ModelConfig reads, if it is the one that we make for it. */
export const placeholderRead = ({ ref }: Row): string | undefined =>
  ref.apiKeySecret === placeholderNameOf(ref.name) ? ref.apiKeySecret : undefined;

/** The Secret to make; undefined when one of that name is there, whoever made it. */
export async function missingSecret(place: Place, call: Call, name: string): Promise<Secret | undefined> {
  const { namespace } = place;
  const there = await findSecret(place, call, name);
  if (there?.metadata.deletionTimestamp)
    throw unavailable(`Secret ${namespace}/${name} is being deleted; try again when it is gone`);
  return there ? undefined : placeholderSecret(name, namespace);
}

/** Makes the Secret that is missing; answers it when it was made now. */
export async function ensureSecret(place: Place, call: Call, name: string): Promise<Secret | undefined> {
  const missing = await missingSecret(place, call, name);
  if (!missing) return undefined;
  try {
    return await place.client.create(call, secrets, missing);
  } catch (error) {
    // It came in between.
    if (codeOf(error) === 'conflict') return undefined;
    throw error;
  }
}

/** The Secret of that name, if we made it. */
export async function ourSecret(place: Place, call: Call, name: string): Promise<Secret | undefined> {
  const secret = await findSecret(place, call, name);
  return secret && isOurs(secret) ? secret : undefined;
}

/** Removes this very Secret; one of the same name that came after it stays. */
export async function removeSecret({ client }: Place, call: Call, { metadata }: Secret): Promise<void> {
  const { name, namespace, uid } = metadata;
  try {
    await client.remove(call, secrets, name, namespace, { uid });
  } catch (error) {
    if (codeOf(error) !== 'conflict') throw error;
  }
}

const findSecret = ({ client, namespace }: Place, call: Call, name: string) =>
  unlessMissing(client.get(call, secrets, name, namespace));
