/**
 * An emulated Karpenter over an emulated cluster, its cloud included. A pod with GPUs that finds no node gets a NodeClaim of the
 * first pool that it fits; the claim asks the cloud for a machine in one zone. The cloud refuses as its script says, and then
 * the next claim asks in the next zone; or there is an instance, which becomes a node stage by stage until its GPUs can
 * be had. A node without pods, but for those of DaemonSets, goes away again. Who puts pods on nodes is somebody else.
 *
 * Pools and classes of nodes are objects of the cluster: see `nodePool` and `nodeClass`. A class that is not ready refuses
 * every claim. NodeClaims of others are left alone.
 */

import { timestamp } from './cluster/store/object.ts';
import type { Change, ClusterObjects, KubernetesObject } from './cluster.ts';
import { type Clock, realClock } from './host/clock.ts';
import {
  claimFor,
  isTrue,
  launchedLabels,
  type NodeClaim,
  noCapacity,
  type Refused,
  unready,
  withCondition,
} from './karpenter/claims.ts';
import { eventAbout, nomination, warning } from './karpenter/events.ts';
import {
  type Condition,
  gpusOf,
  isWaiting,
  type NodeClass,
  type NodePool,
  type Offer,
  offerFor,
  type Shape,
  type WaitingPod,
  zonesOf,
} from './karpenter/fitting.ts';
import { claimName, nodeName, providerId } from './karpenter/names.ts';
import { type Instance, initialize, joined, makeReady, type Node, register } from './karpenter/nodes.ts';

export { karpenterDefinitions, nodeClass, nodePool } from './karpenter/definitions.ts';
export type { Shape } from './karpenter/fitting.ts';

/** In milliseconds, each from the one before; 0 when absent. */
export interface KarpenterPace {
  /** From a pod without a node to the NodeClaim for it. */
  readonly batchMs?: number;
  /** From a claim to its refusal. */
  readonly refusalMs?: number;
  /** So long a refused claim is still to be seen. */
  readonly terminationMs?: number;
  /** From its end to the next claim. */
  readonly retryMs?: number;
  /** From a claim to its instance. */
  readonly launchMs?: number;
  /** From the instance to its node, then until it is registered, then until it is ready, then until it has its GPUs. */
  readonly joinMs?: number;
  readonly registerMs?: number;
  readonly readyMs?: number;
  readonly gpuMs?: number;
  /** So long a node without pods stays. */
  readonly consolidateMs?: number;
}

export interface KarpenterOptions {
  readonly clock?: Clock;
  readonly pace?: KarpenterPace;
  /** What the cloud has, the smallest first. */
  readonly machines: readonly Shape[];
  /** How many claims for a pod are refused in a zone before there is a machine; `Infinity`: there never is one. */
  readonly refusals?: readonly { readonly zone: string; readonly times: number }[];
}

type Cluster = Pick<ClusterObjects, 'get' | 'list' | 'put' | 'update' | 'remove' | 'watch'>;

/** What becomes of a claim. */
interface Machine {
  readonly claim: string;
  readonly offer: Offer;
  readonly zone: string;
  /** What it will be: the smallest of what was asked for. */
  readonly shape: Shape;
  readonly life: AbortController;
  /** It takes no more pods. */
  ending?: boolean;
  node?: string;
  /** Its GPUs can be had. */
  initialized?: boolean;
  /** Ends the wait for its end as soon as it has a pod again. */
  idle?: AbortController | undefined;
}

const claims = 'nodeclaims.karpenter.sh';
const pools = 'nodepools.karpenter.sh';
const classes = 'ec2nodeclasses.karpenter.k8s.aws';

export function startKarpenter(cluster: Cluster, { clock = realClock, pace = {}, ...options }: KarpenterOptions) {
  const life = new AbortController();
  /** Those under way, by claim. */
  const machines = new Map<string, Machine>();
  /** For each pod that waits, by uid: where it should go. */
  const promised = new Map<string, Machine>();
  /** For each pod that waits, by uid: in which zones it was refused. */
  const refused = new Map<string, readonly string[]>();
  let batching = false;
  let places = 0;

  const now = () => timestamp(clock.now());

  function after(ms: number, signal: AbortSignal, act: () => void) {
    // It is stopped meanwhile, or not needed any more: that is all a sleep rejects for.
    void clock.sleep(ms, signal).then(act, () => {});
  }

  async function pause(ms: number | undefined, signal: AbortSignal) {
    await clock.sleep(ms ?? 0, signal);
    // What ended while it woke up is over, too.
    signal.throwIfAborted();
  }

  function noticed({ type, resource, object }: Change) {
    const { name, uid = '', deletionTimestamp } = object.metadata;
    if (resource === 'pods') noticedPod(object as WaitingPod, uid, type === 'DELETED');
    const isGoing = type === 'DELETED' || deletionTimestamp !== undefined;
    if (resource === claims && isGoing) end(machines.get(name));
    if ((resource === pools || resource === classes) && waiting().length > 0) batch();
    if (resource === 'nodes' && isGoing) end([...machines.values()].find(({ node }) => node === name));
  }

  function noticedPod(pod: WaitingPod, uid: string, isGone: boolean) {
    if (isGone || pod.spec.nodeName !== undefined) {
      promised.delete(uid);
      refused.delete(uid);
    } else if (isWaiting(pod) && !promised.has(uid)) batch();
    for (const machine of machines.values()) lookAt(machine);
  }

  function batch() {
    if (batching) return;
    batching = true;
    after(pace.batchMs ?? 0, life.signal, () => {
      batching = false;
      provision();
    });
  }

  const waiting = () => cluster.list<WaitingPod>('pods').filter(isWaiting);

  function provision() {
    for (const pod of waiting()) {
      if (promised.has(uidOf(pod))) continue;
      const offer = bestOffer(pod);
      if (!offer) continue;
      const machine = [...machines.values()].find(each => hasRoom(each, pod, offer)) ?? create(pod, offer);
      promised.set(uidOf(pod), machine);
      nominate(pod, machine);
      machine.idle?.abort();
      machine.idle = undefined;
    }
  }

  function bestOffer(pod: WaitingPod): Offer | undefined {
    for (const pool of cluster.list<NodePool>(pools)) {
      const nodeClass = cluster.get<NodeClass>(classes, pool.spec.template.spec.nodeClassRef.name);
      const offer = nodeClass && offerFor(pod, pool, nodeClass, options.machines);
      if (offer) return offer;
    }
    return undefined;
  }

  function hasRoom(machine: Machine, pod: WaitingPod, { pool, shapes, zones }: Offer): boolean {
    const isSuch = machine.offer.pool.metadata.name === pool.metadata.name && zones.includes(machine.zone);
    if (machine.ending || !isSuch || !shapes.includes(machine.shape)) return false;
    const others = cluster
      .list<WaitingPod>('pods')
      .filter(each => (isOn(machine, each) && isAlive(each)) || promised.get(uidOf(each)) === machine);
    const taken = others.map(gpusOf).reduce((sum, gpus) => sum + gpus, 0);
    return taken + gpusOf(pod) <= machine.shape.gpus;
  }

  function create(pod: WaitingPod, offer: Offer): Machine {
    const before = refused.get(uidOf(pod)) ?? [];
    const times = (zone: string) => before.filter(each => each === zone).length;
    const has = (zone: string) => times(zone) >= (options.refusals?.find(each => each.zone === zone)?.times ?? 0);
    // Where it was refused least, so that one zone after the other has its turn.
    const zone = offer.zones.toSorted((a, b) => times(a) - times(b))[0] as string;
    const others = zonesOf(offer.nodeClass).filter(each => each !== zone && has(each));
    const types = offer.shapes.map(({ type }) => type);
    const refusal = unready(offer.nodeClass) ?? (has(zone) ? undefined : noCapacity(types, zone, others));
    const claim = claimName(offer.pool.metadata.name, places++);
    const machine = { claim, offer, zone, shape: offer.shapes[0] as Shape, life: new AbortController() };
    machines.set(claim, machine);
    cluster.put(claimFor(pod, offer, zone, claim, now()));
    const under = AbortSignal.any([life.signal, machine.life.signal]);
    const done = refusal ? refuse(machine, refusal, under) : launch(machine, places, under);
    done.catch(error => {
      // It is gone, or everything is stopped: then it is over.
      if (!isAborted(error)) throw error;
    });
    return machine;
  }

  function nominate(pod: WaitingPod, { claim, node }: Machine) {
    cluster.put(eventAbout(pod, nomination(claim, node), clock.now(), places++));
  }

  async function refuse(machine: Machine, { reason, text }: Refused, signal: AbortSignal) {
    const { claim, zone } = machine;
    await pause(pace.refusalMs, signal);
    machine.ending = true;
    for (const uid of promisedTo(machine)) refused.set(uid, [...(refused.get(uid) ?? []), zone]);
    const object = say(claim, { type: 'Launched', status: 'False', reason, message: text, lastTransitionTime: now() });
    cluster.put(eventAbout(object, warning(claim, reason, text), clock.now(), places++));
    cluster.remove(claims, claim);
    await pause(pace.terminationMs, signal);
    forget(machine);
    await pause(pace.retryMs, signal);
    for (const uid of promisedTo(machine)) promised.delete(uid);
    provision();
  }

  async function launch(machine: Machine, place: number, signal: AbortSignal) {
    const { claim, zone, shape, offer } = machine;
    const providerID = providerId(zone, place);
    const instance: Instance = { pool: offer.pool, shape, zone, name: nodeName(zone, place), providerID };
    const { name } = instance;
    const change = (alter: (node: Node) => void) => cluster.update<Node>('nodes', name, undefined, alter);
    await pause(pace.launchMs, signal);
    say(claim, isTrue('Launched', now()), { providerID }, launchedLabels(shape.type, zone));
    await pause(pace.joinMs, signal);
    machine.node = name;
    cluster.put(joined(instance, now()));
    await pause(pace.registerMs, signal);
    change(register);
    say(claim, isTrue('Registered', now()), { nodeName: name });
    const pods = new Set(promisedTo(machine));
    for (const pod of waiting()) if (pods.has(uidOf(pod))) nominate(pod, machine);
    await pause(pace.readyMs, signal);
    change(node => makeReady(node, shape, now()));
    await pause(pace.gpuMs, signal);
    change(node => initialize(node, shape));
    say(claim, isTrue('Initialized', now()));
    say(claim, isTrue('Ready', now()));
    machine.initialized = true;
    lookAt(machine);
  }

  function say(claim: string, condition: Condition, status = {}, labels = {}) {
    return cluster.update<NodeClaim & { metadata: object }>(claims, claim, undefined, object => {
      const conditions = withCondition(object.status?.conditions, condition);
      object.status = { ...object.status, ...status, conditions };
      object.metadata = { ...object.metadata, labels: { ...object.metadata.labels, ...labels } };
    });
  }

  const promisedTo = (machine: Machine) => [...promised].filter(([, each]) => each === machine).map(([uid]) => uid);
  const podsOn = (machine: Machine) => cluster.list<WaitingPod>('pods').filter(each => isOn(machine, each));

  /** Whether a node has to stay. */
  function lookAt(machine: Machine) {
    if (!machine.initialized || machine.ending) return;
    if (promisedTo(machine).length > 0 || podsOn(machine).some(isKeeping)) {
      machine.idle?.abort();
      machine.idle = undefined;
    } else if (!machine.idle) {
      machine.idle = new AbortController();
      const signal = AbortSignal.any([life.signal, machine.life.signal, machine.idle.signal]);
      after(pace.consolidateMs ?? 0, signal, () => end(machine));
    }
  }

  /** Takes a node away with all that is on it; who waited for it gets another one. */
  function end(machine: Machine | undefined) {
    if (!machine || machine.ending) return;
    machine.ending = true;
    machine.life.abort();
    if (machine.node !== undefined) cluster.remove('nodes', machine.node);
    for (const { metadata } of podsOn(machine)) cluster.remove('pods', metadata.name, metadata.namespace);
    forget(machine);
    for (const uid of promisedTo(machine)) promised.delete(uid);
    if (waiting().length > 0) batch();
  }

  /** The claim is over; somebody else may have been faster. */
  function forget({ claim }: Machine) {
    machines.delete(claim);
    cluster.remove(claims, claim);
    if (!cluster.get(claims, claim)) return;
    cluster.update<{ metadata: KubernetesObject['metadata'] }>(claims, claim, undefined, object => {
      object.metadata = { ...object.metadata, finalizers: [] };
    });
  }

  const unwatch = cluster.watch(noticed);
  if (waiting().length > 0) batch();

  return {
    stop() {
      unwatch();
      life.abort();
    },
  };
}

const isAborted = (error: unknown) => error instanceof Error && error.name === 'AbortError';
const uidOf = ({ metadata }: KubernetesObject) => metadata.uid ?? '';
const isAlive = ({ status }: WaitingPod) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
/** Those of DaemonSets go with their node. */
const isKeeping = (pod: WaitingPod) =>
  isAlive(pod) && !pod.metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet');
const isOn = ({ node }: Machine, { spec }: WaitingPod) => node !== undefined && spec.nodeName === node;
