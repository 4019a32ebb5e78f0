/** How a pod comes to a node, and the node to its GPU. */
import { phrase, type ReasonCode, say } from '../../../domain.ts';
import { fieldsOf, textOf } from '../jobs/fields.ts';
import { amountOf } from '../quantity.ts';
import { formatDuration } from '../units.ts';
import { type EventView, latestOf } from './events.ts';
import type { ServeFacts } from './facts.ts';
import { conditionOf, dateOf, namedIn, statusOf } from './fields.ts';
import { type PodView, podWords, type Reason, saysNothing } from './pod.ts';
import { capacityStage } from './scheduling/capacity.ts';
import { nominatedClaim } from './scheduling/nomination.ts';
import { refusalsOf } from './scheduling/refusals.ts';
import { done, failed, inProgress, type Stage } from './steps.ts';

interface Placing {
  readonly scheduling: Stage;
  readonly nodeStarting?: Stage | undefined;
}

/** Both steps of a pod; the second is absent while the first is not done. */
export function placing(pod: PodView, events: readonly EventView[], facts: ServeFacts, now: number): Placing {
  const nomination = latestOf(events, 'Nominated');
  if (pod.scheduled?.status === 'True') return bound(pod, nomination, facts, pod.scheduled.at);
  const coming = (end: number, words: Reason): Placing => ({
    scheduling: done(pod.createdAt, end),
    nodeStarting: inProgress(end, words),
  });
  if (pod.nominatedNode) {
    return coming(firstOf(nomination) ?? now, say('NodeStarting', 'nominated', { node: pod.nominatedNode }));
  }
  const claim = nominatedClaim(nomination?.message);
  if (claim === undefined) return { scheduling: inProgress(pod.createdAt, waitingWords(pod, events, nomination)) };
  const found = 'value' in facts.nodeClaims ? namedIn(facts.nodeClaims.value, claim) : undefined;
  const launched = conditionOf(statusOf(found), 'Launched');
  if (launched?.status === 'True') {
    const node = textOf(statusOf(found).nodeName);
    const words = node
      ? say('NodeStarting', 'launched', { claim, node })
      : say('NodeStarting', 'registering', { claim });
    return coming(launched.at ?? now, words);
  }
  return { scheduling: launching(claim, pod, facts, now) };
}

const firstOf = (event: EventView | undefined) => (event && Number.isFinite(event.first) ? event.first : undefined);

/** What a pod that no NodeClaim is known for waits for. */
function waitingWords(pod: PodView, events: readonly EventView[], nomination: EventView | undefined): Reason {
  if (nomination) return { reason: 'NodeLaunching' satisfies ReasonCode, message: nomination.message };
  const words = podWords(pod);
  if (!saysNothing(words)) return words;
  const refused = latestOf(events, 'FailedScheduling');
  return refused ? { reason: refused.reason, message: refused.message } : {};
}

function launching(claim: string, pod: PodView, facts: ServeFacts, now: number): Stage {
  const { nodeClaims, settings } = facts;
  const { refusals, unread } = refusalsOf(claim, facts);
  const { createdAt } = pod;
  if (refusals.length === 0) {
    const gone = 'value' in nodeClaims && !namedIn(nodeClaims.value, claim);
    const { reason, message } = say('NodeLaunching', gone ? 'gone' : 'nominated', { claim });
    return inProgress(createdAt, { reason, message: [message, ...unread].join('; ') });
  }
  const { reason, message, unread: unreadMore, ...answer } = capacityStage(claim, refusals, facts);
  const { scaleUpTimeout } = settings;
  const spent = scaleUpTimeout > 0 && createdAt !== undefined && now - createdAt > scaleUpTimeout;
  const duration = formatDuration(scaleUpTimeout);
  const ending = spent ? [phrase('CapacityUnavailable', 'overBudget', { duration })] : [];
  const words = { reason, message: [message, ...unread, ...unreadMore, ...ending].join('; ') };
  return { ...(spent ? failed(createdAt, words) : inProgress(createdAt, words)), ...answer };
}

function bound(pod: PodView, nomination: EventView | undefined, facts: ServeFacts, at: number | undefined): Placing {
  const nominated = firstOf(nomination);
  const end = nominated !== undefined && at !== undefined && nominated < at ? nominated : at;
  const scheduling = done(pod.createdAt, end);
  const { gpuResource } = facts.settings;
  const { nodes } = facts;
  const node = 'value' in nodes ? namedIn(nodes.value, pod.node) : undefined;
  if (node && pod.requests(gpuResource) && allocatable(fieldsOf(statusOf(node).allocatable)[gpuResource]) === 0) {
    const words = say('NodeStarting', 'withoutGpu', { node: node.metadata.name, resource: gpuResource });
    return { scheduling, nodeStarting: inProgress(end, words) };
  }
  return { scheduling, nodeStarting: { ...done(end, at), since: dateOf(end) } };
}

const allocatable = (quantity: unknown) => amountOf(String(quantity ?? '0')) ?? 0;
