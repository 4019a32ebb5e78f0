import type { GatewayError } from '../../errors.ts';
import { derive } from '../../live/derive.ts';
import { keepRows, keepValue } from '../../live/rows.ts';
import type { Observation, Source } from '../../live/source.ts';
import type { Known, WiringState } from '../wiring.ts';
import { knownOf } from './match.ts';
import { type ModelConfig, type Row, rowOf } from './modelConfig.ts';
import type { Versions } from './versions.ts';

interface Options {
  readonly versions: Versions;
  readonly namespace: string;
  readonly prefix: string;
}

/** What was made of the objects: computed once per change, and the same as before where nothing changed that agents see. */
interface Shown {
  readonly rows: readonly Row[];
  readonly known: Known | undefined;
  readonly error: GatewayError | undefined;
}

const keep = keepRows<Row>(({ ref }) => ref.name);

/** What agents know, from all ModelConfigs of the namespace. */
export function watchKnown(objects: Source<readonly ModelConfig[]>, options: Options): Source<Known> {
  const { versions, namespace, prefix } = options;
  const shown = derive<[readonly ModelConfig[]], Shown>([objects], ([{ value, error }], before) => {
    const read = value?.map(object => rowOf(object, versions.current, namespace));
    const rows = read ? keep(before?.rows, read) : [];
    const known = before?.known && rows === before.rows ? before.known : read && knownOf(rows, prefix);
    return before && known === before.known && error === before.error ? before : { rows, known, error };
  });
  return {
    get current() {
      return shown.current && inside(shown.current);
    },
    read: async call => inside(await shown.read(call)),
    subscribe: shown.subscribe,
  };
}

function inside({ value, ...observation }: Observation<Shown>): Observation<Known> {
  return { ...observation, value: value?.known, error: value?.error };
}

/**
 * Whether models can be wired: not where there is no kagent, or where it is forbidden to see what it has. What is only out
 * of reach at the moment may be back before the next request.
 */
export function watchState(objects: Source<readonly ModelConfig[]>): Source<WiringState> {
  return derive<[readonly ModelConfig[]], WiringState>([objects], ([{ error }], before) =>
    keepValue(before, {
      available: error?.code !== 'not_found' && error?.code !== 'forbidden',
      ...(error && { reason: error.message }),
    }),
  );
}
