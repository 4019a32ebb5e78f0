/** Which machines were asked for, and where: by a NodeClaim, or by the pool it was made for. */
import { phrase } from '../../../../domain.ts';
import type { KubernetesObject } from '../../../../kubernetes/resource.ts';
import { type Fields, fieldsOf, listOf, textOf } from '../../jobs/fields.ts';
import type { ServeFacts } from '../facts.ts';
import { distinct, namedIn, specOf, statusOf } from '../fields.ts';
import { poolOfClaim } from './nomination.ts';

export interface Asked {
  readonly types: readonly string[];
  readonly zones: readonly string[];
  /** The pool names no zone. */
  readonly unpinned: boolean;
  /** The pool itself names the zones. */
  readonly byPool: boolean;
  readonly unread: readonly string[];
}

export function askedFor(claim: string, { nodeClaims, nodePools, nodeClasses }: ServeFacts): Asked {
  const unread: string[] = [];
  const name = poolOfClaim(claim);
  if (name !== undefined && 'problem' in nodePools) {
    unread.push(phrase('CapacityUnavailable', 'poolUnread', { pool: name, problem: nodePools.problem }));
  }
  const pool = 'value' in nodePools ? namedIn(nodePools.value, name) : undefined;
  const template = fieldsOf(fieldsOf(specOf(pool).template).spec);
  const ofPool = listOf(template.requirements).map(fieldsOf);
  const ofClaim = requirementsOf('value' in nodeClaims ? namedIn(nodeClaims.value, claim) : undefined);
  const types = typesOf(ofClaim.length > 0 ? ofClaim : ofPool);
  const poolZones = zonesOf(ofPool);
  const claimZones = zonesOf(ofClaim);
  if (!pool || poolZones.length > 0) {
    const zones = pool ? poolZones : claimZones;
    return { types, zones, unpinned: false, byPool: pool !== undefined, unread };
  }
  if (claimZones.length > 0) return { types, zones: claimZones, unpinned: true, byPool: false, unread };
  if ('problem' in nodeClasses) {
    unread.push(phrase('CapacityUnavailable', 'zonesUnread', { problem: nodeClasses.problem }));
  }
  const nodeClass = textOf(fieldsOf(template.nodeClassRef).name);
  const zones = 'value' in nodeClasses ? subnetZones(namedIn(nodeClasses.value, nodeClass)) : [];
  return { types, zones, unpinned: true, byPool: false, unread };
}

const requirementsOf = (claim: KubernetesObject | undefined) => listOf(specOf(claim).requirements).map(fieldsOf);

const zonesOf = (requirements: readonly Fields[]) => allowed(requirements, 'topology.kubernetes.io/zone');

function typesOf(requirements: readonly Fields[]): readonly string[] {
  const named = allowed(requirements, 'node.kubernetes.io/instance-type');
  if (named.length > 0) return named;
  const sizes = allowed(requirements, 'karpenter.k8s.aws/instance-size');
  return allowed(requirements, 'karpenter.k8s.aws/instance-family').flatMap(family =>
    sizes.map(size => `${family}.${size}`),
  );
}

const allowed = (requirements: readonly Fields[], key: string): readonly string[] =>
  requirements
    .filter(each => each.key === key && each.operator === 'In')
    .flatMap(({ values }) => listOf(values).filter(value => typeof value === 'string'));

const subnetZones = (nodeClass: KubernetesObject | undefined) =>
  distinct(listOf(statusOf(nodeClass).subnets).flatMap(each => textOf(fieldsOf(each).zone) ?? [])).toSorted();
