/** The index of the cache: a ConfigMap that keeps what was served from which directory. */
import { type Call, outliving } from '../../../call.ts';
import { GatewayError, unlessMissing } from '../../../errors.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import type { Reflector } from '../../../kubernetes/reflector.ts';
import { type ConfigMap, configMaps } from '../../../kubernetes/resource.ts';
import { located, type Watches } from '../../../kubernetes/watches.ts';
import { derive } from '../../../live/derive.ts';
import { follow } from '../../../live/follow.ts';
import { optional } from '../../../live/optional.ts';
import type { Source } from '../../../live/source.ts';
import { ownLabels } from '../labels.ts';
import type { KserveSettings } from '../settings.ts';
import { type CacheRecord, type CacheRecords, recordsIn } from './records.ts';

export interface CacheIndex {
  /** What is on record; while that cannot be read, nothing. */
  readonly records: Source<CacheRecords>;
  /**
   * Writes what `news` makes of what is on record, each in the place of what its directory had. Never rejects: a failure is
   * logged now and then.
   */
  write(call: Call, settings: KserveSettings, news: (known: CacheRecords) => readonly CacheRecord[]): Promise<void>;
  /** Forgets a directory that `gone` finds in what is on record, in the same way. */
  forget(call: Call, settings: KserveSettings, gone: (known: CacheRecords) => string | undefined): Promise<void>;
}

export interface IndexOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'create' | 'replace' | 'remove'>;
  readonly watches: Watches;
  readonly settings: Source<KserveSettings>;
  /** The gateway's own. */
  readonly call: Call;
}

/** Somebody else may write at the same time. */
const attempts = 3;
/** Between two warnings that it cannot be written, in milliseconds. */
const warnMs = 5 * 60_000;
const writeMs = 30_000;
/** Nobody waits longer for what is only on record, in milliseconds. */
const patienceMs = 2_000;

/** The content after a change; undefined when it stays as it is. */
type Change = (index: ConfigMap | undefined) => Readonly<Record<string, string>> | undefined;

export function createCacheIndex({ client, watches, settings, call: own }: IndexOptions): CacheIndex {
  let warnedAt = Number.NEGATIVE_INFINITY;
  /** One after the other, so that this process is in nobody's way but others'. */
  let last: Promise<void> = Promise.resolve();

  const watched = ({ namespace, cache }: KserveSettings) =>
    watches.of(own, located(configMaps), { namespace, fieldSelector: `metadata.name=${cache.indexConfigMap}` });
  const objects = follow<KserveSettings, readonly ConfigMap[]>(settings, watched);
  const records = derive<[readonly ConfigMap[]], CacheRecords>([optional(objects, patienceMs)], ([{ value }]) =>
    recordsIn(value?.[0]),
  );

  /** Begins with what is watched; where that is behind, goes on with what is there. */
  async function change(call: Call, settings: KserveSettings, changed: Change): Promise<void> {
    const { namespace, cache } = settings;
    const name = cache.indexConfigMap;
    const reflector = watched(settings);
    const { value } = await reflector.read(call);
    let known = value ? value[0] : await unlessMissing(client.get(call, configMaps, name, namespace));
    for (let attempt = 1; ; attempt++) {
      try {
        return await put(call, { name, namespace }, known, changed, reflector);
      } catch (error) {
        const isRace = error instanceof GatewayError && ['conflict', 'not_found'].includes(error.code);
        if (!isRace || attempt === attempts) throw error;
        known = await unlessMissing(client.get(call, configMaps, name, namespace));
      }
    }
  }

  /** Writes a change, and waits until it shows: the next one begins with it. */
  async function put(
    call: Call,
    { name, namespace }: { readonly name: string; readonly namespace: string },
    known: ConfigMap | undefined,
    changed: Change,
    reflector: Reflector<ConfigMap>,
  ): Promise<void> {
    const data = changed(known);
    if (data === undefined) return;
    if (known && Object.keys(data).length === 0) {
      const { uid, resourceVersion } = known.metadata;
      await client.remove(call, configMaps, name, namespace, { uid, resourceVersion });
      return reflector.gone(known, call.signal);
    }
    const metadata = { name, namespace, labels: ownLabels('cache-index') };
    const index: ConfigMap = { metadata, ...known, apiVersion: 'v1', kind: 'ConfigMap', data };
    const written = await (known ? client.replace(call, configMaps, index) : client.create(call, configMaps, index));
    await reflector.seen(written, call.signal);
  }

  /** As the caller, whether they wait or not. */
  function tried(asking: Call, settings: KserveSettings, changed: Change): Promise<void> {
    last = last.then(async () => {
      const call = outliving(asking, writeMs);
      try {
        await change(call, settings, changed);
      } catch (error) {
        if (Date.now() - warnedAt < warnMs) return;
        warnedAt = Date.now();
        asking.log.warn({ err: error }, 'the index of the cache cannot be written');
      }
    });
    return last;
  }

  return {
    records,
    write: (call, settings, news) =>
      tried(call, settings, index => {
        const texts = news(recordsIn(index)).map(record => [record.dir, JSON.stringify(record)]);
        return texts.length > 0 ? { ...index?.data, ...Object.fromEntries(texts) } : undefined;
      }),
    forget: (call, settings, gone) =>
      tried(call, settings, index => {
        const directory = gone(recordsIn(index));
        if (directory === undefined) return undefined;
        return Object.fromEntries(Object.entries(index?.data ?? {}).filter(([key]) => key !== directory));
      }),
  };
}
