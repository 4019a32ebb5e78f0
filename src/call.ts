import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';

/** Who is calling. */
export interface Caller {
  /** Email or subject; `service-account` where identity is off. For people: two may have the same. */
  readonly name: string;
  readonly anonymous: boolean;
  /** The one key of this person, whatever token they come with: issuer and subject. Absent where identity is off. */
  readonly subject?: string | undefined;
  /**
   * Separates what callers may see: answers are shared only within one scope. '' is what the gateway itself may see, and
   * so everybody whose work it does with its own identity.
   */
  readonly scope: string;
  /**
   * The token that this caller's work at a Kubernetes API server is done with; absent where the gateway's own identity does
   * it. A function, so that no log and no message can show it by accident.
   */
  readonly token?: (() => string) | undefined;
  /** Until when that token is good, in milliseconds since the epoch: what was opened with it ends by then. */
  readonly until?: (() => number) | undefined;
  /** The same person for what is no request of theirs, such as a watch: with the newest of their tokens. */
  readonly person?: Caller | undefined;
}

/** As whom to do what is no request of the caller's. */
export const personOf = (caller: Caller): Caller => caller.person ?? caller;

/** Who the gateway itself is, to those who read what it did. */
export const ownName = 'service-account';

const anonymous: Caller = { name: ownName, anonymous: true, scope: '' };

/** Something that is done for a request, as a part of its trace. Nobody is obliged to trace: off, there is none of these. */
export interface Span {
  /** Of its trace, 32 hexadecimal digits; undefined where a trace only begins with the next span. */
  readonly traceId: string | undefined;
  begin(part: Part): Span;
  /** `failure` is one of few words for what went wrong, never its text. */
  end(facts?: Facts, failure?: string): void;
}

/** What is known of a span when it begins. Names and facts are bounded: no user, model, prompt, token or text of an error. */
interface Part {
  readonly name: string;
  /** Asked of us, or by us of somebody else. */
  readonly kind: 'server' | 'client';
  readonly facts?: Facts;
  /** A `traceparent` that the asker gave with this part alone; taken for its parent where it is one. */
  readonly parent?: unknown;
  /** Milliseconds since the epoch; now when absent. */
  readonly startedAt?: number;
}

/** Attributes by their names in OpenTelemetry. */
type Facts = Readonly<Record<string, string | number>>;

/**
 * One request on its way through the house: who asks, until when, and how to hear that they left.
 * Everything that talks to the outside takes one.
 */
export interface Call {
  readonly caller: Caller;
  /** Where the request came from; undefined when it is our own. */
  readonly address?: string | undefined;
  readonly requestId: string;
  readonly log: Logger;
  /** What of its trace this is a part of; undefined where nothing is traced. */
  readonly span?: Span | undefined;
  /** Its log with the trace of another span in its lines, where that is known to be possible. */
  readonly logIn?: ((span: Span) => Logger) | undefined;
  /** Aborts when the client goes away or the deadline passes. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch; Infinity when nothing waits. */
  readonly deadline: number;
}

export interface CallOptions {
  readonly caller?: Caller;
  readonly address?: string | undefined;
  readonly requestId?: string;
  readonly log: Logger;
  readonly span?: Span | undefined;
  /** Aborts when the client goes away. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the answer is due. */
  readonly timeoutMs?: number;
}

/** Whom limits count: the caller, or the address while nobody has signed in. */
export const clientOf = ({ caller, address }: Call): string =>
  caller.anonymous ? `address ${address}` : `caller ${caller.subject}`;

export function createCall({
  caller = anonymous,
  address,
  requestId = randomUUID(),
  log,
  span,
  signal,
  timeoutMs,
}: CallOptions): Call {
  const logIn = (span?: Span) =>
    log.child({ requestId, ...(span?.traceId && { traceId: span.traceId }), caller: caller.name });
  return callWith({ caller, address, requestId, log: () => logIn(span), span, logIn, signal, timeoutMs });
}

interface CallParts {
  readonly caller: Caller;
  readonly address?: string | undefined;
  readonly requestId: string;
  readonly log: () => Logger;
  readonly span: Span | undefined;
  readonly logIn?: Call['logIn'];
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Most calls never wait for anything, so what only waiting needs is made when it is first asked for. */
function callWith({ caller, address, requestId, span, logIn, timeoutMs, ...given }: CallParts): Call {
  const began = Date.now();
  let log: Logger | undefined;
  let signal: AbortSignal | undefined;
  return {
    caller,
    address,
    requestId,
    span,
    logIn,
    deadline: timeoutMs === undefined ? Number.POSITIVE_INFINITY : began + timeoutMs,
    get log() {
      log ??= given.log();
      return log;
    },
    get signal() {
      signal ??= firstOf(given.signal, timeoutMs === undefined ? undefined : began + timeoutMs - Date.now());
      return signal;
    },
  };
}

const never = new AbortController().signal;

function firstOf(signal: AbortSignal | undefined, timeoutMs: number | undefined): AbortSignal {
  if (timeoutMs === undefined) return signal ?? never;
  const timeout = AbortSignal.timeout(Math.max(0, timeoutMs));
  return signal ? AbortSignal.any([signal, timeout]) : timeout;
}

/** Why a job's work is aborted: somebody wants it no more, or the process stops and what it left running may go on. */
export const cancelled = new Error('cancelled');
export const interrupted = new Error('interrupted: model-manager was stopped; ask again to resume');

/** The same caller's work when nobody waits for it any more: a job, a load that outlives its request. */
export function detached(call: Call, signal: AbortSignal, log: Logger = call.log): Call {
  const { caller, requestId, span } = call;
  return { caller, requestId, log, span, signal, deadline: Number.POSITIVE_INFINITY };
}

/** The same caller's work that goes on when they leave, for at most so many milliseconds. */
export const outliving = (call: Call, timeoutMs: number): Call =>
  callWith({ caller: call.caller, requestId: call.requestId, log: () => call.log, span: call.span, timeoutMs });

/** The same call with at most so many milliseconds left. */
export const atMost = (call: Call, timeoutMs: number): Call => {
  const { caller, requestId, span, signal } = call;
  return callWith({ caller, requestId, log: () => call.log, span, signal, timeoutMs });
};

/** The same call as a part of its trace, which says so in its log. */
export function within(call: Call, span: Span): Call {
  const { caller, address, requestId, deadline, logIn } = call;
  let log: Logger | undefined;
  return {
    caller,
    address,
    requestId,
    deadline,
    span,
    logIn,
    get log() {
      log ??= logIn?.(span) ?? call.log;
      return log;
    },
    get signal() {
      return call.signal;
    },
  };
}
