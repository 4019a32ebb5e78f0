/**
 * What everybody shares, as one person sees it: backends in clusters are worked with as them, hosts are the same for all. What
 * is seen for one person is never shown to another.
 */
import { type Caller, personOf } from '../call.ts';
import { unauthenticated } from '../errors.ts';
import { jobsSeenIn } from '../jobs/seen.ts';
import { derive } from '../live/derive.ts';
import type { WiringTarget } from '../wiring/wiring.ts';
import type { Actions } from './actions.ts';
import type { Backend } from './backend.ts';
import type { Registered, Registry } from './registry.ts';

/** Whose work is done as somebody, before there is anybody: whatever is tried for them fails, and as the gateway nothing is. */
export const nobody: Caller = {
  name: 'nobody',
  anonymous: true,
  scope: 'nobody',
  token() {
    throw unauthenticated('work here is done as the caller, and there is none; sign in');
  },
};

/** What each caller works on. A person has one view for as long as they are remembered, whatever token they come with. */
export function personalViews<A extends Actions>(
  everybodys: A,
  wiringAs: (caller: Caller) => WiringTarget | undefined,
): (caller: Caller) => A {
  const views = new WeakMap<Caller, A>();
  return caller => {
    const person = personOf(caller);
    let view = views.get(person);
    if (!view) {
      view = viewOf(everybodys, person, wiringAs(person));
      views.set(person, view);
    }
    return view;
  };
}

function viewOf<A extends Actions>(everybodys: A, caller: Caller, wiring: WiringTarget | undefined): A {
  const known = new WeakMap<Backend, Backend>();
  function seen(backend: Backend): Backend {
    const own = known.get(backend) ?? backend.as(caller, wiring?.known);
    known.set(backend, own);
    return own;
  }
  return {
    ...everybodys,
    registry: registrySeenBy(seen, everybodys.registry),
    jobs: jobsSeenIn(caller.scope, everybodys.jobs),
    wiring,
  };
}

function registrySeenBy(seen: (backend: Backend) => Backend, registry: Registry): Registry {
  return {
    get backends() {
      return registry.backends.map(seen);
    },
    registered: derive<[Registered], Registered>([registry.registered], ([{ value }]) => ({
      ...value,
      backends: (value?.backends ?? []).map(seen),
    })),
    isStatic: registry.isStatic,
  };
}
