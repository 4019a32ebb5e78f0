import { createElapsed } from '../../kubernetes/reflector/elapsed.ts';
import type { Lease } from '../../kubernetes/resource.ts';
import { leaseSeconds } from './lease.ts';

/** How long the holders of Leases have been silent, by what was seen of them here. */
export interface Absence {
  /** Takes in what is seen now: whoever has moved since the last time is alive. */
  look(leases: ReadonlyMap<string, Lease>): void;
  /** Nothing could be seen: silence from before says nothing about anybody. */
  forget(): void;
  /**
   * For how long nobody has worked under a name, in milliseconds; below 0 while somebody may. One whose Lease was given back
   * is alone at once, one without a Lease when none has been seen for as long as a Lease lasts.
   */
  alone(name: string, lease: Lease | undefined): number;
}

/**
 * Silence is counted here, from when a Lease was seen to change: never by comparing its times with a clock of another
 * machine.
 */
export function createAbsence(elapsed: () => number = createElapsed()): Absence {
  /** By name, the version seen last and since when. */
  const seen = new Map<string, { readonly version: string | undefined; readonly since: number }>();

  function since(name: string, version: string | undefined): number {
    const before = seen.get(name);
    if (before && before.version === version) return before.since;
    const now = elapsed();
    seen.set(name, { version, since: now });
    return now;
  }

  return {
    look(leases) {
      for (const [name, { metadata }] of leases) since(name, metadata.resourceVersion);
      for (const [name, { version }] of seen) if (version !== undefined && !leases.has(name)) seen.delete(name);
    },
    forget: () => seen.clear(),
    alone(name, lease) {
      const silent = elapsed() - since(name, lease?.metadata.resourceVersion);
      return lease?.spec?.holderIdentity === '' ? silent : silent - leaseSeconds * 1000;
    },
  };
}
