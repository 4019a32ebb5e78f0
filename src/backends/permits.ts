/**
 * What callers may do, as far as it is known before they try. The refusals are those of the actions themselves, made by the
 * same rules; what only trying can tell, such as whether a model fits or a server answers, is not looked at.
 */
import { atMost, type Call } from '../call.ts';
import { type Model, type Permit, permitted, together } from '../domain.ts';
import type { ActedOn, ModelAction } from '../drivers/driver.ts';
import { GatewayError } from '../errors.ts';
import type { WiringState, WiringTarget } from '../wiring/wiring.ts';
import type { Actions } from './actions.ts';
import { type Backend, readSource } from './backend.ts';
import { configMapName } from './documents/configMap.ts';
import { requireRemovable } from './documents/registration.ts';
import { patienceMs } from './patience.ts';
import { requireCapability } from './registry.ts';
import { requireWirable, requireWiring } from './wiring.ts';

/** What `then` says of what the check answers, or the refusal that it throws. */
async function checked<T>(check: () => T, then: (found: T) => Permit | Promise<Permit>): Promise<Permit> {
  let found: T;
  try {
    found = check();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { allowed: false, reason: error.message };
  }
  return then(found);
}

/** Whether the caller may do something to a model, or to any of the backend's. */
export function mayAct(
  { defaultKeepAlive: keepAlive }: Actions,
  call: Call,
  backend: Backend,
  action: ModelAction,
  model?: ActedOn,
): Promise<Permit> {
  const { driver, name } = backend;
  const check = () => {
    requireCapability(backend, action);
    if (action === 'load' && model)
      driver.checkLoad?.({ model: model.name, keepAlive, listed: { ...model, backend: name } });
  };
  return checked(check, async () => (await driver.permit?.(call, action, model)) ?? permitted);
}

/** Whether the caller may delete a model, and first what makes it known to agents. */
export async function mayDelete(actions: Actions, call: Call, backend: Backend, model: Model): Promise<Permit> {
  const own = await mayAct(actions, call, backend, 'delete', model);
  if (own.allowed === false || !actions.wiring) return own;
  return together([own, await actions.wiring.mayUnwire(call, knownBy(model))]);
}

const knownBy = ({ modelConfig }: Model) => (modelConfig ? [modelConfig] : []);

/** Whether the caller may make a model known to agents. `state`: whether anybody may. */
export const mayWire = (
  actions: Actions,
  call: Call,
  { driver }: Backend,
  model: Model,
  state: WiringState,
): Promise<Permit> =>
  wirings(actions, state, wiring =>
    checked(
      () => requireWirable(driver, model),
      wirable => wiring.mayWire(call, wirable, model.modelConfig),
    ),
  );

/** Whether the caller may take that back. */
export const mayUnwire = (actions: Actions, call: Call, model: Model, state: WiringState): Promise<Permit> =>
  wirings(actions, state, wiring => wiring.mayUnwire(call, knownBy(model)));

const wirings = (
  actions: Actions,
  { available, reason }: WiringState,
  then: (wiring: WiringTarget) => Promise<Permit>,
): Promise<Permit> =>
  checked(
    () => requireWiring(actions),
    wiring => (available ? then(wiring) : { allowed: false, reason }),
  );

/** Whether the caller may remove a backend, and first what makes its models known to agents. */
export const mayRemove = (actions: Actions, call: Call, { name, driver: { kind } }: Backend): Promise<Permit> =>
  checked(
    () => requireRemovable(actions, kind),
    async ({ reviews, namespace }) => {
      const own = await reviews.permit(call, [{ use: 'unregister', namespace, name: configMapName(kind) }]);
      const { wiring } = actions;
      if (own.allowed === false || !wiring) return own;
      const { value } = await readSource(wiring.known, atMost(call, patienceMs));
      const known = (value?.refs ?? []).filter(({ managed, backend }) => managed && backend === name);
      return known.length === 0 ? own : together([own, await wiring.mayUnwire(call, known)]);
    },
  );
