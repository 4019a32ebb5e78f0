import type { Logger } from 'pino';
import { type Call, type Caller, createCall, personOf } from '../call.ts';
import type { KubernetesClient, Selection } from './client.ts';
import { createReflector, type Locator, type Reflector, type ReflectorState, type RestartReason } from './reflector.ts';
import { type KubernetesObject, type Resource, resourceName } from './resource.ts';

export interface WatchesOptions {
  readonly client: Pick<KubernetesClient, 'list' | 'watch'>;
  readonly log: Logger;
  readonly onRestart?: ((resource: string, reason: RestartReason) => void) | undefined;
}

/** A watch that runs, for those who measure. */
interface WatchState extends ReflectorState {
  /** Whose it is; empty for the gateway's own. */
  readonly scope: string;
  readonly resource: string;
  readonly selection: Selection;
}

/** The watches of a process: one of each, however many want it, and each seen by callers of one scope only. */
export interface Watches {
  /**
   * Objects as this caller may see them. It watches while somebody listens or reads; what it asks the API server for, it
   * asks for as the caller of its scope who came last, since theirs is the newest token.
   */
  of<T extends KubernetesObject>(call: Call, resource: Locator<T>, selection?: Selection): Reflector<T>;
  states(): readonly WatchState[];
}

/** A resource whose version is known. */
export const located = <T extends KubernetesObject>(resource: Resource<T>): Locator<T> => ({
  name: resourceName(resource),
  locate: async () => resource,
});

interface Shared<T extends KubernetesObject = KubernetesObject> {
  readonly scope: string;
  readonly resource: string;
  readonly selection: Selection;
  readonly reflector: Reflector<T>;
  /** Who came last. */
  caller: Caller;
}

export function createWatches({ client, log, onRestart }: WatchesOptions): Watches {
  const shared = new Map<string, Shared>();

  function find<T extends KubernetesObject>(caller: Caller, resource: Locator<T>, selection: Selection): Shared<T> {
    const { namespace, labelSelector, fieldSelector } = selection;
    const key = JSON.stringify([caller.scope, resource.name, namespace, labelSelector, fieldSelector]);
    // What is under a key is of the type of its resource.
    const known = shared.get(key) as Shared<T> | undefined;
    if (known) return known;
    for (const [each, { reflector }] of shared) if (reflector.idle) shared.delete(each);
    const reflector = createReflector({
      client,
      resource,
      selection,
      callFor: signal => createCall({ caller: entry.caller, log, signal }),
      personal: caller.token !== undefined,
      log,
      onRestart: onRestart && (reason => onRestart(resource.name, reason)),
    });
    const entry: Shared<T> = { scope: caller.scope, resource: resource.name, selection, reflector, caller };
    shared.set(key, entry as unknown as Shared);
    return entry;
  }

  return {
    of(call, resource, selection = {}) {
      const caller = personOf(call.caller);
      // Looked up each time, so that two who hold one of these for long never have a watch each.
      const entry = () => find(caller, resource, selection);
      entry().caller = caller;
      const reflector = () => entry().reflector;
      return {
        get current() {
          return reflector().current;
        },
        get state() {
          return reflector().state;
        },
        get idle() {
          return reflector().idle;
        },
        read: call => reflector().read(call),
        subscribe: listener => reflector().subscribe(listener),
        seen: (written, signal) => reflector().seen(written, signal),
        gone: (removed, signal) => reflector().gone(removed, signal),
      };
    },
    states: () =>
      [...shared.values()]
        .filter(({ reflector }) => !reflector.idle)
        .map(({ scope, resource, selection, reflector }) => ({ scope, resource, selection, ...reflector.state })),
  };
}
