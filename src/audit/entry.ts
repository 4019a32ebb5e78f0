/** The audit trail: one entry for everything that is changed, or was to be, whoever wanted it and whatever came of it. */
import { type Call, ownName } from '../call.ts';
import { asGatewayError, type ErrorCode, type GatewayError, messageOf } from '../errors.ts';

/** By which of its faces the gateway was asked. */
export type Face = 'rest' | 'graphql' | 'mcp';

/**
 * Why the gateway does what nobody asked for in so many words: a mutation brings it along, somebody reads what is served, or
 * what agents know is compared with what is served.
 */
export type Occasion =
  | 'pullModel'
  | 'loadModel'
  | 'unloadModel'
  | 'deleteModel'
  | 'removeBackend'
  | 'read'
  | 'reconcile';

/** What it is done to, as far as one can tell. */
export interface Target {
  readonly backend?: string | undefined;
  /** The reference as asked for. */
  readonly model?: string | undefined;
  /** Name of the Kubernetes object; of several, with commas between. */
  readonly object?: string | undefined;
  /** Id of the job. */
  readonly job?: string | undefined;
}

/** What is done, and on which account. */
interface Deed {
  /** Name of the mutation. */
  readonly action: string;
  /** Absent where nobody asks. */
  readonly face?: Face | undefined;
  /** Absent where somebody asks. */
  readonly occasion?: Occasion | undefined;
}

export interface AuditEntry extends Deed, Target {
  readonly caller: string;
  /** Issuer and subject of a person: names may be the same. Absent where nobody signed in. */
  readonly subject?: string | undefined;
  /** `refused`: for a reason that the caller can see to. `failed`: for another. */
  readonly outcome: 'ok' | 'refused' | 'failed';
  /** Of a refusal or failure: its code, and its words. */
  readonly code?: ErrorCode | undefined;
  readonly reason?: string | undefined;
  readonly requestId: string;
  readonly durationMs: number;
}

/** Entries are known by who made them: nothing else that is logged can pass for one. */
const entries = new WeakSet<object>();

export const isAuditEntry = (value: unknown): value is AuditEntry =>
  typeof value === 'object' && value !== null && entries.has(value);

/** Failures that have left their entry. */
const told = new WeakSet<Error>();

export const hasEntry = (failure: Error): boolean => told.has(failure);

/** Does it, and leaves the entry that says what came of it. `targetOf` is told the answer, once there is one. */
export async function audited<T>(
  call: Call,
  deed: Deed,
  targetOf: (answer?: T) => Target,
  work: () => T | Promise<T>,
): Promise<T> {
  const began = performance.now();
  try {
    const answer = await work();
    leave(call, deed, { ...targetOf(answer), outcome: 'ok' }, began);
    return answer;
  } catch (error) {
    const { code, status } = asGatewayError(error, call.requestId);
    const outcome = status < 500 ? 'refused' : 'failed';
    leave(call, deed, { ...targetOf(), outcome, code, reason: cut(messageOf(error)) }, began);
    if (error instanceof Error) told.add(error);
    throw error;
  }
}

/** Leaves the entry of what was refused before anybody began with it. */
export function leaveRefusal(call: Call, deed: Deed, target: Target, error: GatewayError): void {
  const { code, message } = error;
  leave(call, deed, { ...target, outcome: 'refused', code, reason: cut(message) }, performance.now());
}

/** What was refused for what it is may be in the words, at any length. */
const cut = (words: string) => (words.length > 1_024 ? `${words.slice(0, 1_024)}…` : words);

type Outcome = Target & Pick<AuditEntry, 'outcome' | 'code' | 'reason'>;

function leave({ caller, requestId, log }: Call, deed: Deed, outcome: Outcome, began: number): void {
  const { action, face, occasion } = deed;
  // What the gateway does by itself it does as itself, unless it has nothing but the caller's token to do it with.
  const isOwn = (occasion === 'read' || occasion === 'reconcile') && caller.token === undefined;
  const entry: AuditEntry = {
    caller: isOwn ? ownName : caller.name,
    subject: isOwn ? undefined : caller.subject,
    face,
    occasion,
    action,
    ...outcome,
    requestId,
    durationMs: Math.round(performance.now() - began),
  };
  entries.add(entry);
  if (outcome.outcome === 'failed') log.warn(entry, `${action} failed`);
  else log.info(entry, `${action} ${outcome.outcome}`);
}
