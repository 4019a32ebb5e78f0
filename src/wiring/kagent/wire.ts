import { type Call, detached } from '../../call.ts';
import type { WirableModel } from '../../domain.ts';
import { conflict, messageOf, unavailable, unsupported } from '../../errors.ts';
import { apiVersionOf, type Resource } from '../../kubernetes/resource.ts';
import type { ApiKey } from '../wiring.ts';
import { codeOf, look, type Place, type Seen } from './look.ts';
import { type ModelConfig, type Row, rowOf } from './modelConfig.ts';
import { changesOf, type Plan, planOf } from './plan.ts';
import { ensureSecret, ourSecret, removeSecret } from './secret.ts';
import { checkKey, type Spec } from './shapes.ts';

/** How often to begin again when somebody else wrote in between. */
const maxAttempts = 3;
/** Milliseconds that taking back may take; nobody waits for it. */
const undoMs = 5_000;

/** How to take back what was done. */
interface Undo {
  readonly what: string;
  /** The Secret that was made. */
  readonly secret?: string;
  run(call: Call): Promise<unknown>;
}

type Write = Exclude<Plan, { readonly answer: Row }>;

/** What makes the model known by now, and the object itself where it was written. */
export interface Wired {
  readonly row: Row;
  readonly written?: ModelConfig;
}

/**
 * Writes the ModelConfig of a model. The Secret it reads comes before it, and what it no longer needs goes after it. What
 * fails half way is taken back.
 */
export async function wire(place: Place, call: Call, model: WirableModel, apiKey?: ApiKey): Promise<Wired> {
  checkKey(model, apiKey);
  const undo: Undo[] = [];
  try {
    for (let attempt = 1; ; attempt++) {
      const seen = await look(place, call);
      if (!seen) throw notInstalled(place);
      const plan = planOf(seen.index, model, place.prefix);
      if ('answer' in plan) {
        await takeBack(call, undo);
        return { row: plan.answer };
      }
      try {
        return await write(place, call, seen, plan, model, apiKey, undo);
      } catch (error) {
        if (!isRace(error)) throw error;
        if (attempt === maxAttempts)
          throw conflict(
            `ModelConfig ${place.namespace}/${plan.name} is being changed by others at the same time; try again`,
            { cause: error },
          );
      }
    }
  } catch (error) {
    await takeBack(call, undo);
    throw error;
  }
}

export const notInstalled = ({ versions }: Place) =>
  unsupported(
    `kagent's ModelConfig CRD is not installed in the cluster (looked for ${apiVersionOf(versions.current)}); ` +
      'install kagent, or look at the API version that is configured',
  );

/** Somebody else was faster: the name is taken by now, or the object is another, or gone. */
const isRace = (error: unknown) => ['conflict', 'not_found'].includes(codeOf(error) ?? '');

async function write(
  place: Place,
  call: Call,
  seen: Seen,
  plan: Write,
  model: WirableModel,
  apiKey: ApiKey | undefined,
  undo: Undo[],
): Promise<Wired> {
  const { namespace } = place;
  const { resource } = seen;
  const { spec, object, old, isSame, ...rest } = changesOf(namespace, seen, plan, model, apiKey);
  if (rest.secret !== undefined) await makeSecret(place, call, rest.secret, undo);
  for (const each of rest.superseded) await supersede(place, call, resource, each, undo);
  const put = () =>
    old
      ? place.client.replace(call, resource, object)
      : inNamespace(place, place.client.create(call, resource, object));
  const written = old && isSame ? old : await put();
  const lost = lostFields(spec, written.spec);
  if (lost.length > 0) {
    undo.push({
      what: `ModelConfig ${namespace}/${plan.name}`,
      run: later => unwrite(place, later, resource, written, old),
    });
    throw unsupported(
      `${apiVersionOf(resource)} of this cluster has no ${lost.join(', ')} in ModelConfigs, so agents could not reach ` +
        `${model.reference}; upgrade kagent`,
    );
  }
  for (const each of rest.unread) await dropSecret(place, call, each);
  // An attempt before this one may have made one for another name.
  await takeBack(
    call,
    undo.filter(({ secret }) => secret !== undefined && secret !== spec.apiKeySecret),
  );
  return { row: rowOf(written, resource, namespace), written };
}

async function makeSecret(place: Place, call: Call, name: string, undo: Undo[]) {
  const made = await inNamespace(place, ensureSecret(place, call, name));
  if (!made) return;
  const run = async (later: Call) => {
    const seen = await look(place, later);
    // Somebody else's work may rely on it by now.
    if (!seen?.index.rows.some(({ ref }) => ref.apiKeySecret === name)) await removeSecret(place, later, made);
  };
  undo.push({ what: `Secret ${place.namespace}/${name}`, secret: name, run });
}

/** Removed before the new one is written: a pair would last if we ended in between, and one that is missing is written again. */
async function supersede(
  { client, namespace }: Place,
  call: Call,
  resource: Resource<ModelConfig>,
  object: ModelConfig,
  undo: Undo[],
) {
  const { name, uid, labels, annotations } = object.metadata;
  if (!(await client.remove(call, resource, name, namespace, { uid }))) return;
  const again = { ...object, metadata: { name, namespace, labels, annotations } };
  undo.push({ what: `ModelConfig ${namespace}/${name}`, run: later => client.create(later, resource, again) });
}

/** Creating says that something is not there: that can only be the namespace. */
async function inNamespace<T>({ namespace }: Place, creation: Promise<T>): Promise<T> {
  try {
    return await creation;
  } catch (error) {
    if (codeOf(error) !== 'not_found') throw error;
    throw unavailable(`the namespace ${namespace} of ModelConfigs does not exist; create it, or configure another`, {
      cause: error,
    });
  }
}

/**
 * Fields that the API server did not keep: it drops what is not in its schema. Some clusters have `apiKeyPassthrough` in
 * v1alpha2 and some have not, so that only the answer tells; without it agents would come with no token, and be refused.
 */
const lostFields = (spec: Spec, kept: unknown) =>
  Object.keys(spec).filter(field => (kept as Record<string, unknown> | undefined)?.[field] === undefined);

function unwrite(
  { client, namespace }: Place,
  call: Call,
  resource: Resource<ModelConfig>,
  { metadata: { name, uid, resourceVersion } }: ModelConfig,
  old: ModelConfig | undefined,
): Promise<unknown> {
  if (!old) return client.remove(call, resource, name, namespace, { uid });
  return client.replace(call, resource, { ...old, metadata: { ...old.metadata, resourceVersion } });
}

/** The model is wired whatever comes of this. */
async function dropSecret(place: Place, call: Call, name: string) {
  try {
    const secret = await ourSecret(place, call, name);
    if (secret) await removeSecret(place, call, secret);
  } catch (error) {
    call.log.warn(
      { err: error, secret: `${place.namespace}/${name}` },
      'a placeholder Secret that nothing reads is left',
    );
  }
}

async function takeBack(call: Call, undo: Undo[]) {
  const later = detached(call, AbortSignal.timeout(undoMs));
  for (const { what, run } of undo.toReversed()) {
    try {
      await run(later);
    } catch (error) {
      call.log.warn({ err: error }, `half of a wiring is left: ${what}: ${messageOf(error)}`);
    }
  }
}
