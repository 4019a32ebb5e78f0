import type { AgentAccess, WirableModel } from '../../domain.ts';
import { hostNameOf } from '../../drivers/address.ts';
import type { Known } from '../wiring.ts';
import type { Row } from './modelConfig.ts';
import { nameOf, nameOfObject, nameOnBackend } from './names.ts';

/** ModelConfigs by what they are looked for. */
export interface Index {
  readonly rows: readonly Row[];
  readonly named: ReadonlyMap<string, Row>;
  /** Ours, by the reference that their annotation names. */
  readonly ofReference: ReadonlyMap<string, readonly Row[]>;
  /** Somebody else's, by endpoint host and model. */
  readonly ofEndpoint: ReadonlyMap<string, Row>;
}

export function indexOf(rows: readonly Row[]): Index {
  // By name, so that of several the same one is meant every time.
  const sorted = rows.toSorted((a, b) => (a.ref.name < b.ref.name ? -1 : 1));
  const ofReference = Map.groupBy(
    sorted.filter(({ ref, annotated }) => ref.managed && annotated !== undefined),
    ({ annotated }) => annotated as string,
  );
  const ofEndpoint = new Map<string, Row>();
  for (const row of sorted) {
    const { ref, host } = row;
    if (ref.managed || !host || !ref.providerModel) continue;
    const key = endpointKey(host, ref.providerModel);
    if (!ofEndpoint.has(key)) ofEndpoint.set(key, row);
  }
  return { rows, named: new Map(sorted.map(row => [row.ref.name, row])), ofReference, ofEndpoint };
}

/** A host has no blank in it. */
const endpointKey = (host: string, model: string) => `${host} ${model}`;

/** The names that a ModelConfig of a model may have been given: the usual one, and that of a second backend. */
export function namesOf(
  { backend, reference, access }: Pick<WirableModel, 'backend' | 'reference'> & { readonly access?: AgentAccess },
  prefix: string,
): readonly [string, string] {
  const name = access?.object === undefined ? nameOf(reference, prefix) : nameOfObject(access.object, prefix);
  return [name, nameOnBackend(name, backend, access?.object ?? reference)];
}

/** Whether it is ours and names this backend. */
export const isOn = ({ ref }: Row, backend: string) => ref.managed && ref.backend === backend;

/** What one of ours is listed as: it always is something. */
export const referenceOf = ({ ref }: Row) => ref.model ?? ref.name;

/** Whether one of ours can be this backend's: one that names no backend can be anybody's. */
export const canBe = ({ ref }: Row, backend: string) =>
  ref.managed && (ref.backend === undefined || ref.backend === backend);

/**
 * Ours of a model, the one that counts first: those whose annotation names it, of which this backend's before those that
 * name none; then those of the model's names whose annotation names nothing.
 */
export function oursOf(
  index: Index,
  { backend, reference }: Pick<WirableModel, 'backend' | 'reference'>,
  names: readonly string[],
): readonly Row[] {
  const annotated = annotatedOf(index, backend, reference);
  const named = names.flatMap(name => {
    const row = index.named.get(name);
    return row && row.annotated === undefined && canBe(row, backend) ? [row] : [];
  });
  return [...annotated, ...named];
}

function annotatedOf(index: Index, backend: string, reference: string): readonly Row[] {
  const rows = (index.ofReference.get(reference) ?? []).filter(row => canBe(row, backend));
  return rows.toSorted((a, b) => Number(a.ref.backend === undefined) - Number(b.ref.backend === undefined));
}

/** Somebody else's that leads agents to the same model, where that counts. */
export function foreignOf(index: Index, { url, shared }: AgentAccess, models: readonly string[]): Row | undefined {
  if (!shared) return undefined;
  const host = hostNameOf(url).toLowerCase();
  for (const model of models) {
    const row = index.ofEndpoint.get(endpointKey(host, model));
    if (row) return row;
  }
  return undefined;
}

/** What agents know, for readers. */
export function knownOf(rows: readonly Row[], prefix: string): Known {
  const index = indexOf(rows);
  const unannotated = rows.some(({ ref, annotated }) => ref.managed && annotated === undefined);
  return {
    refs: rows.map(({ ref }) => ref),
    of(model) {
      const { access } = model;
      // Names take time to compute, and are needed only for what has lost its annotation.
      const [annotated] = annotatedOf(index, model.backend, model.reference);
      const ours = annotated ?? (unannotated ? oursOf(index, model, namesOf(model, prefix))[0] : undefined);
      return (ours ?? foreignOf(index, access, [access.model, access.object ?? access.model]))?.ref;
    },
  };
}
