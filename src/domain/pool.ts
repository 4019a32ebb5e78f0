/** Another cluster than the gateway's own; a row without one is on this cluster, or on a host. */
export interface Target {
  readonly cluster: string;
  readonly organization?: string | undefined;
}

/** The nodes that models are scheduled on. */
export interface GpuPool {
  readonly taint?: Taint | undefined;
  readonly nodeSelector?: Readonly<Record<string, string>> | undefined;
  /** The machines it can grow by, in the order they are tried. */
  readonly instances?: readonly InstanceShape[] | undefined;
}

export const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'] as const;
type TaintEffect = (typeof taintEffects)[number];

/** A taint that models tolerate: without a value every value, without an effect every effect. */
export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect?: TaintEffect | undefined;
}

/** A type of machine, as its cloud sells it, and what Kubernetes leaves of it for models. */
export interface InstanceShape {
  readonly instanceType: string;
  /** What tells it from its siblings: `2xlarge` of `g6.2xlarge`. */
  readonly size?: string | undefined;
  readonly vcpu: number;
  readonly memoryGiB: number;
  readonly gpus: number;
  /** Of one GPU. */
  readonly gpuMemoryGiB: number;
  readonly usableVcpu: number;
  readonly usableMemoryGiB: number;
}
