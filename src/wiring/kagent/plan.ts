import { isDeepStrictEqual } from 'node:util';
import type { WirableModel } from '../../domain.ts';
import { conflict } from '../../errors.ts';
import type { ApiKey } from '../wiring.ts';
import type { Seen } from './look.ts';
import { canBe, foreignOf, type Index, namesOf, oursOf } from './match.ts';
import type { ModelConfig, Row } from './modelConfig.ts';
import { placeholderRead } from './secret.ts';
import { modelConfigOf, type Spec, specOf } from './shapes.ts';

/** What wiring a model comes to, of what is there. */
export type Plan =
  /** Somebody else's makes the model known already. */
  { readonly answer: Row } | Write;

interface Write {
  readonly name: string;
  /** Ours of that name, to be refreshed. */
  readonly before: Row | undefined;
  /** Ours of the model under names that are not its any more. */
  readonly superseded: readonly Row[];
}

/** What is written, and what goes. */
interface Changes {
  readonly spec: Spec;
  readonly object: ModelConfig;
  /** What it replaces. */
  readonly old: ModelConfig | undefined;
  /** That says the same already. */
  readonly isSame: boolean;
  /** Name of the placeholder Secret that it reads, which has to be there before it. */
  readonly secret: string | undefined;
  readonly superseded: readonly ModelConfig[];
  /** Names of placeholder Secrets that nothing reads any more. */
  readonly unread: readonly string[];
}

export function changesOf(
  namespace: string,
  { resource, index, objects }: Seen,
  { name, before, superseded }: Write,
  model: WirableModel,
  apiKey?: ApiKey,
): Changes {
  const spec = specOf(name, model, apiKey);
  const old = before && objects.get(name);
  const object = modelConfigOf({ resource, namespace }, name, model, spec, old);
  const gone = new Set([...superseded, ...(before ? [before] : [])]);
  const stillRead = new Set(index.rows.filter(row => !gone.has(row)).map(({ ref }) => ref.apiKeySecret));
  const candidates = [...gone].flatMap(row => placeholderRead(row) ?? []);
  return {
    spec,
    object,
    old,
    isSame: old !== undefined && isDeepStrictEqual(saidBy(old), saidBy(object)),
    secret: apiKey?.secret ? undefined : spec.apiKeySecret,
    superseded: superseded.flatMap(({ ref }) => objects.get(ref.name) ?? []),
    unread: candidates.filter(each => each !== spec.apiKeySecret && !stillRead.has(each)),
  };
}

const saidBy = ({ spec, metadata: { labels, annotations } }: ModelConfig) => ({ spec, labels, annotations });

/** Throws `conflict` when the name is somebody else's, or another model's. */
export function planOf(index: Index, model: WirableModel, prefix: string): Plan {
  const { access } = model;
  const names = namesOf(model, prefix);
  const ours = oursOf(index, model, names);
  // On reads one that names the object counts too; but whoever asks for the model by that name may not be answered.
  const foreign = ours.length === 0 ? foreignOf(index, access, [access.model]) : undefined;
  if (foreign) return { answer: foreign };
  const before = access.object === undefined ? ours[0] : ours.find(({ ref }) => names.includes(ref.name));
  if (before?.leaving) throw conflict(`${titleOf(before)} is being deleted; try again when it is gone`);
  return {
    name: before?.ref.name ?? freeName(index, model, names),
    before,
    superseded: access.object === undefined ? [] : ours.filter(row => row !== before),
  };
}

const titleOf = ({ ref }: Row) => `ModelConfig ${ref.namespace}/${ref.name}`;

function freeName(index: Index, { backend, reference }: WirableModel, names: readonly string[]): string {
  for (const name of names) {
    const row = index.named.get(name);
    if (!row) return name;
    if (!row.ref.managed) throw conflict(`${titleOf(row)} exists but is not managed by model-manager`);
    // Two references may come to one name; neither takes it from the other.
    if (canBe(row, backend))
      throw conflict(
        `${titleOf(row)}, the name for ${reference}, is that of ${row.ref.model ?? 'another model'} on ${backend}; ` +
          'unwire that model first',
      );
  }
  const [, last = ''] = names;
  throw conflict(
    `both names for ${reference} are taken by models of other backends, ${last} too; unwire one of them first`,
  );
}
