/** How often the cloud had no machine for a pool, and what it said. */
import { oneOf, phrase, type ReasonCode } from '../../../../domain.ts';
import { eventView } from '../events.ts';
import type { ServeFacts } from '../facts.ts';
import { conditionOf, createdAt, namedIn, statusOf } from '../fields.ts';
import { poolOfClaim } from './nomination.ts';

export interface Refusal {
  readonly claim: string;
  readonly at: number;
  readonly reason: string;
  /** Whole when the NodeClaim has it; events hold the first 300 characters. */
  readonly text: string;
}

const isRefusal = oneOf('InsufficientCapacityError', 'NodeClassNotReady');

/** Those that stand against a NodeClaim that has not launched, by time, and what could not be read to know them. */
export function refusalsOf(
  claim: string,
  { nodeClaims, karpenterEvents }: ServeFacts,
): { readonly refusals: readonly Refusal[]; readonly unread: readonly string[] } {
  const unread: string[] = [];
  if ('problem' in nodeClaims) {
    unread.push(phrase('NodeLaunching', 'claimUnread', { claim, problem: nodeClaims.problem }));
  }
  const standing = 'value' in nodeClaims ? namedIn(nodeClaims.value, claim) : undefined;
  const after = (standing && createdAt(standing)) ?? Number.NEGATIVE_INFINITY;
  const pool = poolOfClaim(claim);
  const refusals: Refusal[] = [];
  if (pool !== undefined && 'problem' in karpenterEvents) {
    unread.push(phrase('NodeLaunching', 'eventsUnread', { problem: karpenterEvents.problem }));
  }
  if (pool !== undefined && 'value' in karpenterEvents) {
    for (const { kind, type, name = '', reason = '', message, last } of karpenterEvents.value.map(eventView)) {
      if (kind !== 'NodeClaim' || type !== 'Warning' || !isRefusal(reason)) continue;
      if (poolOfClaim(name) !== pool || last <= after) continue;
      refusals.push({ claim: name, at: last, reason, text: cleaned(message, name) });
    }
  }
  const launched = conditionOf(statusOf(standing), 'Launched');
  if (launched?.status === 'False') {
    const { reason = 'LaunchFailed' satisfies ReasonCode, message = '', at = after } = launched;
    refusals.push({ claim, at, reason, text: cleaned(message, claim) });
  }
  return { refusals: refusals.toSorted((a, b) => a.at - b.at), unread };
}

function cleaned(message: string, claim: string): string {
  const text = message.replace(/\s+/g, ' ').trim();
  const prefix = `NodeClaim ${claim} event: `;
  return text.startsWith(prefix) ? text.slice(prefix.length) : text;
}
