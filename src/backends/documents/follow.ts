import type { Logger } from 'pino';
import { messageOf } from '../../errors.ts';
import type { ConfigMap } from '../../kubernetes/resource.ts';
import type { Source } from '../../live/source.ts';
import type { Backend } from '../backend.ts';
import type { OpenRegistry } from '../registry.ts';
import { type Filed, readFiled, textIn } from './configMap.ts';
import type { BackendDocument } from './document.ts';

export interface FollowOptions {
  readonly registry: OpenRegistry;
  /** The ConfigMaps that hold documents. */
  readonly configMaps: Source<readonly ConfigMap[]>;
  /** Makes a backend of a document. Throws when that cannot be done. */
  build(document: BackendDocument): Backend;
  readonly log: Logger;
}

/** A document and what became of it. */
interface Entry extends Filed {
  readonly backend?: Backend | undefined;
}

/**
 * Keeps the registry at what the documents say, from now until the returned function is called. A document that did not
 * change keeps its backend; one that did is another backend of the same name, and what runs on the old one runs on.
 */
export function followDocuments({ registry, configMaps, build, log }: FollowOptions): () => void {
  let entries = new Map<string, Entry>();
  let seen: readonly ConfigMap[] | undefined;

  function entryOf(configMap: ConfigMap): Entry {
    const before = entries.get(configMap.metadata.name);
    if (before && before.text === textIn(configMap)) return before;
    const filed = readFiled(configMap);
    if (!filed.document) return filed;
    const { kind } = filed.document.spec;
    if (registry.isStatic(kind)) {
      return { ...filed, error: `conflict: backend ${kind} is configured statically by the chart values (--backends)` };
    }
    try {
      return { ...filed, backend: build(filed.document) };
    } catch (error) {
      return { ...filed, error: `build ${kind} backend: ${messageOf(error)}` };
    }
  }

  function apply() {
    const listed = configMaps.current?.value;
    if (!listed || listed === seen) return;
    seen = listed;
    const next = new Map(listed.map(entryOf).map(entry => [entry.configMap, entry]));
    tell(entries, next, log);
    entries = next;
    const sorted = [...next.values()].sort((a, b) => (a.configMap < b.configMap ? -1 : 1));
    registry.register(
      sorted.flatMap(({ backend }) => backend ?? []),
      sorted.map(({ configMap, text, error }) => ({ configMap, text, error })),
    );
  }

  const stop = configMaps.subscribe(apply);
  apply();
  return stop;
}

/** One line for each document that came, changed or went. */
function tell(before: ReadonlyMap<string, Entry>, after: ReadonlyMap<string, Entry>, log: Logger) {
  for (const [configMap, entry] of after) {
    const old = before.get(configMap);
    if (entry === old) continue;
    const facts = { configMap, backend: entry.backend?.name, source: entry.backend?.origin };
    if (entry.error !== undefined) log.warn({ ...facts, error: entry.error }, 'backend document refused');
    else log.info(facts, old?.backend ? 'backend replaced' : 'backend registered');
  }
  for (const [configMap, { backend }] of before) {
    if (backend && !after.get(configMap)?.backend) log.info({ configMap, backend: backend.name }, 'backend removed');
  }
}
