import type { Call } from '../../call.ts';
import type { WirableModel } from '../../domain.ts';
import { conflict, GatewayError, messageOf } from '../../errors.ts';
import type { Resource, Secret } from '../../kubernetes/resource.ts';
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
    const gone = await toRemove(place, call, backend, reference);
    if (!gone) return [];
    try {
      return await remove(place, call, gone);
    } catch (error) {
      if (codeOf(error) !== 'conflict') throw error;
      if (attempt === maxAttempts)
        throw conflict(`the ModelConfig of ${reference} is being changed by others at the same time; try again`, {
          cause: error,
        });
    }
  }
}

interface Removal {
  readonly resource: Resource<ModelConfig>;
  readonly objects: readonly ModelConfig[];
  readonly secrets: readonly Secret[];
}

/** What is ours of a model, and the Secrets that only that reads. Undefined where ModelConfigs are not installed. */
export async function toRemove(
  place: Place,
  call: Call,
  backend: string,
  reference: string,
): Promise<Removal | undefined> {
  const seen = await look(place, call);
  if (!seen) return undefined;
  const { resource, index, objects } = seen;
  const rows = rowsToRemove(seen, place.prefix, backend, reference);
  const candidates = rows.length > 0 ? rows.map(placeholderRead) : leftOf({ backend, reference }, place.prefix);
  const stillRead = new Set(index.rows.filter(row => !rows.includes(row)).map(({ ref }) => ref.apiKeySecret));
  // Looked for before anything is removed, so that whoever may not see Secrets removes nothing by half.
  const secrets: Secret[] = [];
  for (const name of candidates) {
    const secret = name !== undefined && !stillRead.has(name) ? await ourSecret(place, call, name) : undefined;
    if (secret) secrets.push(secret);
  }
  return { resource, objects: rows.map(({ ref }) => objects.get(ref.name) as ModelConfig), secrets };
}

/** Secrets that are there where nothing else is: a removal may have ended half way. */
const leftOf = (model: Pick<WirableModel, 'backend' | 'reference'>, prefix: string) =>
  namesOf(model, prefix).map(placeholderNameOf);

/**
 * Those that name the backend; one that names none is taken for its own only when there is no better. What has lost its
 * annotation goes by what it is listed as, too.
 */
function rowsToRemove({ index }: Seen, prefix: string, backend: string, reference: string): readonly Row[] {
  const model = { backend, reference };
  const ours = oursOf(index, model, namesOf(model, prefix));
  const listed = index.rows.filter(
    row => row.annotated === undefined && isOn(row, backend) && referenceOf(row) === reference,
  );
  const labelled = new Set([...ours.filter(row => isOn(row, backend)), ...listed]);
  return labelled.size > 0 ? [...labelled] : ours;
}

async function remove(place: Place, call: Call, { resource, objects, secrets }: Removal) {
  const removed: ModelConfig[] = [];
  for (const object of objects) {
    const { name, uid } = object.metadata;
    // A name that somebody has taken since is not ours any more.
    if (await place.client.remove(call, resource, name, place.namespace, { uid })) removed.push(object);
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
