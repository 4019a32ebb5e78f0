import { type ExecutionResult, type GraphQLError, getVariableValues } from 'graphql';
import type { LiveEvent } from '../../live/events.ts';
import type { Watch } from '../../live/watch.ts';
import type { Context } from '../../resolvers/builder.ts';
import { type Engine, failureOf, type Prepared } from './engine.ts';

/** An event as it is sent: executed once and serialised once, for everybody who needs it in this form. */
interface Rendered {
  readonly result: ExecutionResult;
  /** The result as JSON. */
  readonly text: string;
  /** The result as a message of Server-Sent Events. */
  readonly frame: Buffer;
}

/** One subscriber of a group. */
export interface Member extends Watch<Rendered> {
  /** Ends it like `return`; graphql-ws only takes iterators that have it. */
  throw(error: unknown): Promise<IteratorResult<Rendered, undefined>>;
}

export interface Groups {
  /** Joins those who ask the same; a refusal of the resolver comes back as a result. */
  join(prepared: Prepared, context: Context, transport: Transport): Promise<Member | ExecutionResult>;
  /** Members at present. */
  readonly size: number;
  /** Ends every subscription after its newest event. */
  close(): void;
}

type Transport = 'sse' | 'websocket';

/** Why a subscription is over: its client left or may stay no longer, it came to its end, it broke, or we stop. */
export const closeReasons = ['left', 'ended', 'failed', 'stopped'] as const;
type CloseReason = (typeof closeReasons)[number];

export interface GroupHooks {
  onMember?(field: string, transport: Transport, change: 1 | -1): void;
  onClosed?(reason: CloseReason): void;
  onEvent?(): void;
  /** A member took the newest event after missing others. */
  onCoalesced?(): void;
}

interface Group {
  /** Nobody is in it any more, or what it shows has come to its end. */
  readonly ended: boolean;
  join(transport: Transport): Member;
  close(): void;
}

/**
 * Equal questions (operation, variables, what the caller may see) are one group: one subscription below, one execution and
 * one serialisation an event, however many ask. A member remembers the number of the event it saw last and nothing else:
 * the next one it is given as what changed, after a gap as the whole state. A member that does not read costs that number.
 */
export function createGroups(
  engine: Engine,
  contextFor: (context: Context) => Context,
  hooks: GroupHooks = {},
): Groups {
  const groups = new Map<string, Promise<Group | ExecutionResult>>();
  let size = 0;

  async function open(key: string, prepared: Prepared, context: Context): Promise<Group | ExecutionResult> {
    // The subscription outlives whoever asked first.
    const shared = contextFor(context);
    const events = await engine.subscribe(prepared, shared);
    if (!(Symbol.asyncIterator in events)) {
      groups.delete(key);
      return events;
    }
    const source = events as unknown as Watch<LiveEvent>;
    const field = prepared.operation.selectionSet.selections[0];
    const name = field?.kind === 'Field' ? field.name.value : 'other';
    return createGroup(source, payload => engine.executeEvent(prepared, shared, payload), {
      onEmpty: () => groups.delete(key),
      onMember: (transport, change) => {
        size += change;
        hooks.onMember?.(name, transport, change);
      },
      onClosed: hooks.onClosed,
      onEvent: hooks.onEvent,
      onCoalesced: hooks.onCoalesced,
      onError: error => failureOf(error, shared),
    });
  }

  return {
    get size() {
      return size;
    },
    async join(prepared, context, transport) {
      const { params, document, operation } = prepared;
      const question = document.loc?.source.body ?? '';
      // As the graph reads them: in its order, with its defaults, without what the operation does not know.
      const { coerced } = getVariableValues(engine.schema, operation.variableDefinitions ?? [], params.variables ?? {});
      if (!coerced) {
        engine.subscribed(prepared, context, 'failed');
        return engine.subscribe(prepared, context) as Promise<ExecutionResult>;
      }
      const key = JSON.stringify([question, operation.name?.value, coerced, context.call.caller.scope]);
      for (;;) {
        let group = groups.get(key);
        if (!group) {
          group = open(key, prepared, context);
          groups.set(key, group);
          group.catch(() => groups.delete(key));
        }
        const opened = await group;
        if (!('join' in opened)) {
          engine.subscribed(prepared, context, 'failed');
          return opened;
        }
        // Its last member may have left while we waited.
        if (opened.ended) continue;
        engine.subscribed(prepared, context, 'ok');
        return opened.join(transport);
      }
    },
    close() {
      for (const group of groups.values()) {
        group.then(opened => 'close' in opened && opened.close()).catch(() => {});
      }
    },
  };
}

type Execute = (payload: unknown) => Promise<ExecutionResult>;

interface GroupEvents {
  onEmpty(): void;
  onMember(transport: Transport, change: 1 | -1): void;
  onClosed?: ((reason: CloseReason) => void) | undefined;
  onEvent?: (() => void) | undefined;
  onCoalesced?: (() => void) | undefined;
  /** The source broke. Returns what its members are told. */
  onError(error: unknown): GraphQLError;
}

function createGroup(events: Watch<LiveEvent>, execute: Execute, on: GroupEvents): Group {
  const members = new Set<() => void>();
  let newest: { readonly number: number; readonly forms: Forms } | undefined;
  let ended = false;
  let stopped = false;
  let failure: GraphQLError | undefined;

  async function pump() {
    try {
      for (let number = 1; ; number++) {
        const event = await events.next();
        if (event.done) break;
        newest = { number, forms: createForms(event.value, execute) };
        on.onEvent?.();
        wakeAll();
      }
    } catch (error) {
      failure = on.onError(error);
    }
    end();
  }

  function wakeAll() {
    for (const wake of [...members]) wake();
  }

  function end() {
    if (ended) return;
    ended = true;
    on.onEmpty();
    wakeAll();
  }

  function stop() {
    stopped = true;
    close();
  }

  function close() {
    void events.return();
    end();
  }

  function join(transport: Transport): Member {
    let seen = 0;
    let left = false;
    let waiting: PromiseWithResolvers<void> | undefined;
    const wake = () => {
      waiting?.resolve();
      waiting = undefined;
    };
    members.add(wake);
    on.onMember(transport, 1);

    const leave = () => over('left');

    function over(reason: CloseReason): Promise<IteratorReturnResult<undefined>> {
      if (!left) {
        left = true;
        members.delete(wake);
        on.onMember(transport, -1);
        on.onClosed?.(reason);
        wake();
        if (members.size === 0) close();
      }
      return Promise.resolve({ done: true, value: undefined });
    }

    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      async next() {
        while (!left) {
          if (newest && newest.number > seen) {
            const inOrder = seen > 0 && newest.number === seen + 1;
            if (seen > 0 && !inOrder) on.onCoalesced?.();
            const { forms } = newest;
            seen = newest.number;
            return { done: false, value: await (inOrder ? forms.changes() : forms.snapshot()) };
          }
          if (ended) {
            const last = over(failure ? 'failed' : stopped ? 'stopped' : 'ended');
            // To its members that is no end: they would not come again.
            if (failure) throw failure;
            return last;
          }
          waiting ??= Promise.withResolvers();
          await waiting.promise;
        }
        return { done: true, value: undefined };
      },
      return: leave,
      throw: leave,
    };
  }

  void pump();
  return {
    get ended() {
      return ended;
    },
    join,
    close: stop,
  };
}

/** The two forms of an event, each rendered when the first member needs it. */
interface Forms {
  changes(): Promise<Rendered>;
  snapshot(): Promise<Rendered>;
}

function createForms(event: LiveEvent, execute: Execute): Forms {
  let changes: Promise<Rendered> | undefined;
  let snapshot: Promise<Rendered> | undefined;
  return {
    changes: () => {
      changes ??= execute(event.changes).then(toRendered);
      return changes;
    },
    snapshot: () => {
      snapshot ??= execute(event.snapshot).then(toRendered);
      return snapshot;
    },
  };
}

function toRendered(result: ExecutionResult): Rendered {
  let text: string | undefined;
  let frame: Buffer | undefined;
  return {
    result,
    get text() {
      text ??= JSON.stringify(result);
      return text;
    },
    get frame() {
      frame ??= sseFrame('next', this.text);
      return frame;
    },
  };
}

/** A message of the graphql-sse protocol, distinct connections mode. */
export function sseFrame(event: 'next' | 'complete', data = ''): Buffer {
  return Buffer.from(`event: ${event}\ndata: ${data}\n\n`);
}
