/** Which rights wiring and unwiring take, by what is known already. */
import type { ModelConfigRef, WirableModel } from '../../domain.ts';
import type { Use } from '../../kubernetes/permissions.ts';
import { placeholderNameOf } from './names.ts';

/** Somebody else's that leads to the model is answered as it is: nothing is written then. */
export function usesOfWire({ access }: WirableModel, known: ModelConfigRef | undefined): readonly Use[] {
  if (known && !known.managed) return ['look'];
  const hasKey = access.key === 'placeholder';
  if (known) return hasKey ? ['rewire', 'seekKey'] : ['rewire'];
  return hasKey ? ['wire', 'makeKey'] : ['wire'];
}

/** Where nothing is known, a Secret may be left of what was: it is looked for. */
export function usesOfUnwire(known: readonly ModelConfigRef[]): readonly Use[] {
  const ours = known.filter(({ managed }) => managed);
  if (ours.length === 0) return ['look', 'seekKey'];
  const haveKey = ours.some(({ name, apiKeySecret }) => apiKeySecret === placeholderNameOf(name));
  return haveKey ? ['unwire', 'dropKey'] : ['unwire'];
}
