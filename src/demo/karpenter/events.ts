/** What Karpenter writes of pods and of its claims. */
import { type KubernetesObject, timestamp } from '../cluster/store/object.ts';

interface Said {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

/** About an object; where it has no namespace, in `default`. @param place counts events: no two have the same name */
export function eventAbout({ apiVersion, kind, metadata }: KubernetesObject, said: Said, now: number, place: number) {
  const { name, namespace, uid } = metadata;
  const at = timestamp(now);
  const nanoseconds = (BigInt(Math.trunc(now)) * 1_000_000n + BigInt(place)).toString(16);
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${nanoseconds}`, namespace: namespace ?? 'default' },
    involvedObject: { apiVersion, kind, name, ...(namespace !== undefined && { namespace }), uid },
    ...said,
    source: { component: 'karpenter' },
    reportingComponent: 'karpenter',
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  };
}

const longest = 300;

/** A warning about a claim; of long texts only the beginning is written. */
export const warning = (claim: string, reason: string, text: string): Said => ({
  type: 'Warning',
  reason,
  message: `NodeClaim ${claim} event: ${text.length > longest ? `${text.slice(0, longest)}...` : text}`,
});

export const nomination = (claim: string, node: string | undefined): Said => ({
  type: 'Normal',
  reason: 'Nominated',
  message: `Pod should schedule on: nodeclaim/${claim}${node === undefined ? '' : `, node/${node}`}`,
});
