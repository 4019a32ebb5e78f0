import { isRecord, textOf } from './values.ts';

/** Whether kagent takes a ModelConfig as it is, and in whose words. */
export interface Readiness {
  readonly ready: boolean;
  readonly message?: string | undefined;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string | undefined;
  readonly message: string | undefined;
}

const notReconciled = 'not yet reconciled';

/**
 * Read from the conditions of a `status`, whatever that is. Those of an earlier `generation` of the object are about what
 * it no longer says.
 */
export function readinessOf(status: unknown, generation?: number): Readiness {
  const conditions = isOf(status, generation) ? conditionsOf(status) : [];
  const accepted = conditions.find(({ type }) => type === 'Accepted');
  if (!accepted) return { ready: false, message: notReconciled };
  if (accepted.status !== 'True') return { ready: false, message: wordsOf(accepted) };
  // Versions before 1.0 do not report whether references resolve.
  const resolved = conditions.find(({ type }) => type === 'ResolvedRefs');
  if (resolved && resolved.status !== 'True') return { ready: false, message: wordsOf(resolved) };
  return { ready: true, message: accepted.message };
}

function isOf(status: unknown, generation: number | undefined): boolean {
  const observed = isRecord(status) ? status.observedGeneration : undefined;
  return typeof observed !== 'number' || generation === undefined || observed >= generation;
}

function conditionsOf(status: unknown): Condition[] {
  const rows = isRecord(status) && Array.isArray(status.conditions) ? status.conditions : [];
  return rows.flatMap(row => {
    if (!isRecord(row) || typeof row.type !== 'string') return [];
    const { type, reason, message } = row;
    return [{ type, status: textOf(row.status) ?? 'Unknown', reason: textOf(reason), message: shortened(message) }];
  });
}

const wordsOf = ({ type, status, reason, message }: Condition) =>
  message ?? `${type} is ${status}${reason ? ` (${reason})` : ''}`;

/** Messages reach everybody who watches; what is longer than this is no message. */
const maxMessage = 4_096;

function shortened(message: unknown): string | undefined {
  const text = textOf(message);
  return text && text.length > maxMessage ? `${text.slice(0, maxMessage)}…` : text;
}
