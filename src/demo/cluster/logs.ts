import { text } from '../host/reply.ts';
import type { ApiRequest, Route } from './routes.ts';
import { badRequest, notFound, StatusError } from './status.ts';
import { recordOf } from './store/object.ts';
import { keyOf, type Store } from './store/store.ts';

/** What a container has written: in its run now, and in the one before. */
interface ContainerLog {
  readonly current?: string;
  readonly previous?: string;
}

/** The logs of all containers. */
export interface Logs {
  /** All that a container has written, as of now. */
  set(namespace: string, pod: string, container: string, log: ContainerLog): void;
  /** What a container writes now, whole lines; who follows hears of it. */
  append(namespace: string, pod: string, container: string, lines: string): void;
  /** `pods/log` */
  readonly route: Route;
}

interface Line {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** With its line break, if it has one. */
  readonly text: string;
}

interface Written {
  readonly current: readonly Line[];
  readonly previous: readonly Line[] | undefined;
}

/** `now` in milliseconds since the epoch. */
export function createLogs(now: () => number): Logs {
  const logs = new Map<string, Written>();
  const followers = new Map<string, Set<(lines: readonly Line[]) => void>>();
  const keyIn = (namespace: string, pod: string, container: string) => `${namespace}/${pod}/${container}`;
  const linesOf = (written: string): readonly Line[] =>
    (written.match(/[^\n]*\n|[^\n]+$/g) ?? []).map(line => ({ at: now(), text: line }));

  function follow(key: string, hear: (lines: readonly Line[]) => void) {
    const known = followers.get(key) ?? new Set();
    followers.set(key, known.add(hear));
    return () => void known.delete(hear);
  }

  return {
    set(namespace, pod, container, { current = '', previous }) {
      logs.set(keyIn(namespace, pod, container), {
        current: linesOf(current),
        previous: previous === undefined ? undefined : linesOf(previous),
      });
    },

    append(namespace, pod, container, lines) {
      const key = keyIn(namespace, pod, container);
      const { current, previous } = logs.get(key) ?? { current: [], previous: undefined };
      const added = linesOf(lines);
      logs.set(key, { current: [...current, ...added], previous });
      for (const hear of followers.get(key) ?? []) hear(added);
    },

    route(request, { store, catalogue }) {
      const options = optionsIn(request.query);
      const { namespace, name } = request;
      const pod = store.get('pods', keyOf(name, namespace));
      if (!pod) throw notFound(catalogue.named('pods'), name);
      const container = containerIn(pod, request.query.get('container') ?? '');
      const key = keyIn(namespace, name, container);
      const written = logs.get(key);
      if (options.previous && !written?.previous) {
        throw badRequest(`previous terminated container "${container}" in pod "${name}" not found`);
      }
      const waiting = waitingReason(pod, container);
      if (!options.previous && !written && waiting) {
        throw badRequest(`container "${container}" in pod "${name}" is waiting to start: ${waiting}`);
      }
      const lines = options.previous ? written?.previous : written?.current;
      const past = selected(lines ?? [], options, now());
      if (!options.follow || options.previous) return text(cut(past, options.limitBytes));
      const isOver = () => hasEnded(store, namespace, name, pod.metadata.uid);
      const coming = { past, options, isOver, store, follow: (hear: Hear) => follow(key, hear), gone: request.gone };
      return { status: 200, headers: { 'content-type': 'text/plain' }, body: followed(coming) };
    },
  };
}

type Hear = (lines: readonly Line[]) => void;

interface Options {
  readonly previous: boolean;
  readonly follow: boolean;
  readonly timestamps: boolean;
  readonly tailLines: number | undefined;
  /** Milliseconds since the epoch, or before now. */
  readonly since: { readonly time: number } | { readonly ago: number } | undefined;
  readonly limitBytes: number | undefined;
}

function optionsIn(query: URLSearchParams): Options {
  const isSet = (name: string) => ['1', 'true'].includes(query.get(name) ?? '');
  const seconds = numberIn(query, 'sinceSeconds', 1);
  const time = query.get('sinceTime');
  if (seconds !== undefined && time !== null) {
    throw invalidOptions('Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified');
  }
  const moment = time === null ? undefined : Date.parse(time);
  if (Number.isNaN(moment)) throw badRequest(`parsing time "${time}" as "2006-01-02T15:04:05Z07:00": cannot parse`);
  return {
    previous: isSet('previous'),
    follow: isSet('follow'),
    timestamps: isSet('timestamps'),
    tailLines: numberIn(query, 'tailLines', 0),
    since: seconds !== undefined ? { ago: seconds * 1_000 } : moment !== undefined ? { time: moment } : undefined,
    limitBytes: numberIn(query, 'limitBytes', 1),
  };
}

function numberIn(query: URLSearchParams, name: string, least: number): number | undefined {
  const said = query.get(name);
  if (said === null) return undefined;
  if (!/^-?\d+$/.test(said)) throw badRequest(`strconv.ParseInt: parsing "${said}": invalid syntax`);
  const value = Number(said);
  if (value >= least) return value;
  const bound = least === 0 ? 'must be greater than or equal to 0' : 'must be greater than 0';
  throw invalidOptions(`${name}: Invalid value: ${value}: ${bound}`);
}

const invalidOptions = (what: string) => new StatusError(422, 'Invalid', `PodLogOptions "" is invalid: ${what}`);

/** The container that is meant: the only one, where none is named. */
function containerIn(
  pod: { readonly metadata: { readonly name: string }; readonly spec?: unknown },
  named: string,
): string {
  const { name } = pod.metadata;
  const of = (field: string) => namesIn(recordOf(pod.spec)[field]);
  const containers = of('containers');
  const inits = of('initContainers');
  if (named !== '') {
    if ([...containers, ...inits, ...of('ephemeralContainers')].includes(named)) return named;
    throw badRequest(`container ${named} is not valid for pod ${name}`);
  }
  const [only, ...others] = containers;
  if (only !== undefined && others.length === 0 && inits.length === 0) return only;
  const also = inits.length > 0 ? ` or one of the init containers: [${inits.join(' ')}]` : '';
  throw badRequest(
    `a container name must be specified for pod ${name}, choose one of: [${containers.join(' ')}]${also}`,
  );
}

const namesIn = (containers: unknown): readonly string[] =>
  Array.isArray(containers) ? containers.map(container => String(recordOf(container).name)) : [];

/** Why a container has not started; undefined when it has, and when nothing is known of it. */
function waitingReason({ status }: { readonly status?: unknown }, container: string): string | undefined {
  const { containerStatuses, initContainerStatuses } = recordOf(status);
  const all = [containerStatuses, initContainerStatuses]
    .flatMap(list => (Array.isArray(list) ? list : []))
    .map(recordOf);
  const { waiting } = recordOf(all.find(({ name }) => name === container)?.state);
  const { reason } = recordOf(waiting);
  return typeof reason === 'string' ? reason : undefined;
}

function selected(lines: readonly Line[], { since, tailLines, timestamps }: Options, now: number): readonly string[] {
  const from = since === undefined ? Number.NEGATIVE_INFINITY : 'time' in since ? since.time : now - since.ago;
  const late = lines.filter(({ at }) => at >= from);
  const last = tailLines === undefined ? late : late.slice(Math.max(0, late.length - tailLines));
  return last.map(line => (timestamps ? stamped(line) : line.text));
}

const stamped = (line: Line) => `${new Date(line.at).toISOString()} ${line.text}`;

/** The first bytes of a text. */
const cut = (lines: readonly string[], limit = Number.POSITIVE_INFINITY) =>
  new TextDecoder().decode(Buffer.from(lines.join('')).subarray(0, limit), { stream: true });

/** A pod that is gone, or has ended, writes no more. */
function hasEnded(store: Store, namespace: string, name: string, uid: string | undefined): boolean {
  const pod = store.get('pods', keyOf(name, namespace));
  return pod?.metadata.uid !== uid || ['Succeeded', 'Failed'].includes(String(recordOf(pod?.status).phase));
}

interface Following {
  readonly past: readonly string[];
  readonly options: Options;
  isOver(): boolean;
  readonly store: Store;
  follow(hear: Hear): () => void;
  readonly gone: ApiRequest['gone'];
}

async function* followed({ past, options, isOver, store, follow, gone }: Following): AsyncGenerator<string> {
  const waiting = [...past];
  let news = Promise.withResolvers<void>();
  const wake = () => {
    news.resolve();
    news = Promise.withResolvers();
  };
  const deaf = follow(lines => {
    waiting.push(...lines.map(line => (options.timestamps ? stamped(line) : line.text)));
    wake();
  });
  const blind = store.listen(({ resource }) => {
    if (resource === 'pods') wake();
  });
  gone.addEventListener('abort', wake, { once: true });
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  try {
    while (left > 0 && !gone.aborted) {
      const next = waiting.shift();
      if (next !== undefined) {
        yield cut([next], left);
        left -= Buffer.byteLength(next);
      } else if (isOver()) return;
      else await news.promise;
    }
  } finally {
    deaf();
    blind();
    gone.removeEventListener('abort', wake);
  }
}
