import type { Call } from '../call.ts';
import type { ServeSettings } from '../config/settings.ts';
import type { BackendKind } from '../domain.ts';
import type { Driver } from '../drivers/driver.ts';
import { createDriver, hostKinds, type Surroundings } from './drivers.ts';

/** What was found where a server of that kind usually is. */
export interface Finding {
  readonly kind: BackendKind;
  readonly driver: Driver;
  readonly found: boolean;
  /** A sentence that says what is there, or that nothing is. */
  readonly message: string;
}

/** Looks for a server of every kind at its endpoint: the usual port of this machine unless configured otherwise. */
export function discover(call: Call, settings: ServeSettings, surroundings: Surroundings): Promise<Finding[]> {
  return Promise.all(
    hostKinds.map(async kind => {
      const driver = createDriver(kind, settings, surroundings);
      const { healthy, version, message } = await driver.describe(call);
      const what = version ? `${kind} ${version}` : kind;
      return {
        kind,
        driver,
        found: healthy,
        message: healthy ? `found ${what} at ${driver.endpoint}` : `no ${kind} at ${driver.endpoint}: ${message}`,
      };
    }),
  );
}
