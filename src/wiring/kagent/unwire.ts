import type { Call } from '../../call.ts';
import type { WirableModel } from '../../domain.ts';
import { conflict, GatewayError, messageOf } from '../../errors.ts';
import type { Secret } from '../../kubernetes/resource.ts';
import { codeOf, look, type Place, type Seen } from './look.ts';
import { isOn, namesOf, oursOf, referenceOf } from './match.ts';
import type { ModelConfig, Row } from './modelConfig.ts';
import { placeholderNameOf } from './names.ts';
import { ourSecret, placeholderRead, removeSecret } from './secret.ts';

/** How often to begin again when what was to be removed is another object by now. */
const maxAttempts = 3;

/** Removes what is ours of a model, and the Secrets that only that read. Answers what was removed. */
export async function unwire(
  place: Place,
  call: Call,
  backend: string,
  reference: string,
): Promise<readonly ModelConfig[]> {
  for (let attempt = 1; ; attempt++) {
    const seen = await look(place, call);
    if (!seen) return [];
    const rows = toRemove(seen, place.prefix, backend, reference);
    try {
      const names = rows.length > 0 ? rows.map(placeholderRead) : leftOf({ backend, reference }, place.prefix);
      return await remove(place, call, seen, rows, names);
    } catch (error) {
      if (codeOf(error) !== 'conflict') throw error;
      if (attempt === maxAttempts)
        throw conflict(`the ModelConfig of ${reference} is being changed by others at the same time; try again`, {
          cause: error,
        });
    }
  }
}

/** Secrets that are there where nothing else is: a removal may have ended half way. */
const leftOf = (model: Pick<WirableModel, 'backend' | 'reference'>, prefix: string) =>
  namesOf(model, prefix).map(placeholderNameOf);

/**
 * Those that name the backend; one that names none is taken for its own only when there is no better. What has lost its
 * annotation goes by what it is listed as, too.
 */
function toRemove({ index }: Seen, prefix: string, backend: string, reference: string): readonly Row[] {
  const model = { backend, reference };
  const ours = oursOf(index, model, namesOf(model, prefix));
  const listed = index.rows.filter(
    row => row.annotated === undefined && isOn(row, backend) && referenceOf(row) === reference,
  );
  const labelled = new Set([...ours.filter(row => isOn(row, backend)), ...listed]);
  return labelled.size > 0 ? [...labelled] : ours;
}

async function remove(
  place: Place,
  call: Call,
  { resource, index, objects }: Seen,
  rows: readonly Row[],
  candidates: readonly (string | undefined)[],
) {
  const stillRead = new Set(index.rows.filter(row => !rows.includes(row)).map(({ ref }) => ref.apiKeySecret));
  const names = candidates.filter(name => name !== undefined && !stillRead.has(name));
  // Looked for before anything is removed, so that whoever may not see Secrets removes nothing by half.
  const secrets: Secret[] = [];
  for (const name of names) {
    const secret = await ourSecret(place, call, name as string);
    if (secret) secrets.push(secret);
  }
  const removed: ModelConfig[] = [];
  for (const { ref } of rows) {
    const object = objects.get(ref.name) as ModelConfig;
    // A name that somebody has taken since is not ours any more.
    if (await place.client.remove(call, resource, ref.name, place.namespace, { uid: object.metadata.uid }))
      removed.push(object);
  }
  for (const secret of secrets) await removeLast(place, call, secret);
  return removed;
}

async function removeLast(place: Place, call: Call, secret: Secret) {
  try {
    await removeSecret(place, call, secret);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const name = `${place.namespace}/${secret.metadata.name}`;
    throw new GatewayError(
      error.code,
      `the ModelConfig is removed, but its Secret ${name} is not: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}
