/** What we serve and agents do not know is made known to them when the loaded models are read. */
import { atMost, type Call } from '../call.ts';
import type { LoadedModel, WirableModel, WiringResult } from '../domain.ts';
import { unlessAborted } from '../live/source.ts';
import type { WiringTarget } from '../wiring/wiring.ts';
import type { Actions } from './actions.ts';
import { type Backend, loadedWirable } from './backend.ts';
import { wireNow } from './serving.ts';

/** What a read waits for its wirings, in milliseconds; they go on without it. */
const patienceMs = 2_000;
/** After a failure a model is not tried again for this long, in milliseconds: who reads meanwhile is told of that one. */
const quietMs = 60_000;

/** The entries as they are after that. Only those of one backend. */
export async function wiredOnRead(
  { wiring }: Pick<Actions, 'wiring'>,
  call: Call,
  backend: Backend,
  rows: readonly LoadedModel[],
): Promise<readonly LoadedModel[]> {
  if (!wiring?.info.autoWire || !backend.driver.planServe || rows.every(row => !isToBeWired(row))) return rows;
  const { signal } = atMost(call, patienceMs);
  return Promise.all(
    rows.map(async row => {
      const wirable = isToBeWired(row) ? loadedWirable(backend.driver, row) : undefined;
      if (!wirable) return row;
      const attempt = attemptOf(wiring, call, backend, wirable);
      const result = await unlessAborted(attempt, signal).catch(() => undefined);
      if (!result) return row;
      // What somebody else was faster with is no news of this read.
      if (result.reason === 'already wired') return { ...row, modelConfig: result.modelConfig };
      return { ...row, modelConfig: result.modelConfig, wiring: result };
    }),
  );
}

const isToBeWired = ({ managedBy, status, modelConfig }: LoadedModel) =>
  managedBy === 'model-manager' && status !== 'Terminating' && modelConfig === undefined;

/** The attempt that is under way or has just failed for this caller, else a new one. */
function attemptOf(wiring: WiringTarget, call: Call, backend: Backend, wirable: WirableModel): Promise<WiringResult> {
  const { access, reference } = wirable;
  const key = JSON.stringify([call.caller.scope, access.object ?? reference]);
  const now = Date.now();
  for (const [each, { until }] of backend.wirings) if (until <= now) backend.wirings.delete(each);
  const known = backend.wirings.get(key);
  if (known) return known.result;
  const result = wireNow(wiring, call, wirable, 'wired on read');
  const attempt = { result, until: Number.POSITIVE_INFINITY };
  backend.wirings.set(key, attempt);
  void result.then(({ wired }) => {
    if (wired) backend.wirings.delete(key);
    else attempt.until = Date.now() + quietMs;
  });
  return result;
}
