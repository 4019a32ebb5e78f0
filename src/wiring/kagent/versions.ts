import type { Call } from '../../call.ts';
import type { KubernetesClient } from '../../kubernetes/client.ts';
import type { Locator } from '../../kubernetes/reflector.ts';
import { type Resource, resourceName } from '../../kubernetes/resource.ts';
import { unlessAborted } from '../../live/source.ts';
import { kagentGroup, type ModelConfig, modelConfigsOf } from './modelConfig.ts';

/** Used as long as the API server has not said what it serves. */
const usualVersion = 'v1alpha3';
/** Milliseconds after which whoever needs the version asks again. */
const freshMs = 60_000;

/** Which version of ModelConfigs is spoken. */
export interface Versions extends Locator<ModelConfig> {
  /** The resource in the version known so far. */
  readonly current: Resource<ModelConfig>;
  /** The resource as it was served less than a minute ago. Rejects only when the call is aborted. */
  find(call: Call): Promise<Resource<ModelConfig>>;
  /** It was not there: whoever needs it next asks. */
  outdated(): void;
}

type Discovery = Pick<KubernetesClient, 'versions' | 'resources'>;

/** `given` is a version, or `auto`: what the API server prefers of those that it serves. */
export function createVersions(client: Discovery, given: string): Versions {
  let current = modelConfigsOf(given === 'auto' ? usualVersion : given);
  let askedAt: number | undefined;
  let asking: Promise<void> | undefined;

  const isFresh = () => given !== 'auto' || (askedAt !== undefined && Math.abs(Date.now() - askedAt) < freshMs);

  /** Never rejects: who cannot ask goes on with the version known so far, and meets the failure where it matters. */
  async function ask(call: Call) {
    try {
      const version = await servedVersion(client, call);
      if (version !== undefined && version !== current.version) {
        call.log.info({ version }, 'ModelConfigs are spoken in another version');
        current = modelConfigsOf(version);
      }
    } catch (error) {
      // Somebody else's leaving is no answer to those who wait.
      if (call.signal.aborted) return;
      call.log.warn({ err: error, version: current.version }, 'the version of ModelConfigs cannot be asked for');
    }
    askedAt = Date.now();
  }

  async function find(call: Call) {
    while (!isFresh()) {
      asking ??= ask(call).finally(() => {
        asking = undefined;
      });
      await unlessAborted(asking, call.signal);
    }
    return current;
  }

  function outdated() {
    askedAt = undefined;
  }

  return {
    name: resourceName(current),
    get current() {
      return current;
    },
    find,
    outdated,
    locate(call) {
      outdated();
      return find(call);
    },
  };
}

/** The preferred version that has ModelConfigs, or the first other that has; undefined when none has. */
async function servedVersion(client: Discovery, call: Call): Promise<string | undefined> {
  const group = await client.versions(call, kagentGroup);
  for (const version of group?.versions ?? []) {
    const plurals = await client.resources(call, kagentGroup, version);
    if (plurals.includes('modelconfigs')) return version;
  }
  return undefined;
}
