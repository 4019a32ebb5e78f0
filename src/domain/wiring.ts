import { wiringTable } from './reasons/wiring.ts';

/** A ModelConfig: the object by which agents know a model. */
export interface ModelConfigRef {
  readonly name: string;
  readonly namespace: string;
  /** With its group, such as `kagent.dev/v1alpha3`. */
  readonly apiVersion?: string | undefined;
  readonly provider?: string | undefined;
  /** The backend's reference of the model. */
  readonly model?: string | undefined;
  readonly ready: boolean;
  /** Of the condition that decided `ready`. */
  readonly message?: string | undefined;
  /** False: somebody else made it. */
  readonly managed: boolean;
  /** The model as agents ask the backend for it. */
  readonly providerModel?: string | undefined;
  readonly endpoint?: string | undefined;
  /** Agents pass the token of their own caller on. */
  readonly apiKeyPassthrough?: boolean | undefined;
  /** Name of the Secret that holds the key. */
  readonly apiKeySecret?: string | undefined;
  readonly backend?: string | undefined;
}

type WiringReason = keyof typeof wiringTable;
export const wiringReasons = Object.keys(wiringTable) as readonly WiringReason[];

/** How wiring a model went that was wired on the way of something else. */
export interface WiringResult {
  readonly wired: boolean;
  readonly reason?: WiringReason | undefined;
  readonly modelConfig?: ModelConfigRef | undefined;
  readonly error?: string | undefined;
}

/** How agents reach one model of a backend. */
export interface AgentAccess {
  /** What they speak to it. */
  readonly protocol: 'ollama' | 'openai';
  /** Base URL as agents dial it, with the path their protocol wants: `http://10.0.0.5:13305/api/v1`. */
  readonly url: string;
  /** The model as they ask for it. */
  readonly model: string;
  /** How they show who they are: not at all, by any key, or by the token of their own caller. */
  readonly key: 'none' | 'placeholder' | 'passthrough';
  /** Name of the object that serves the model, where it has one of its own: what agents know it by takes that name. */
  readonly object?: string | undefined;
  /**
   * Whether what somebody else made for the same endpoint host and model counts as this one's. Its model may be `model` or
   * `object`.
   */
  readonly shared?: boolean | undefined;
}

/** A model that agents are to know. */
export interface WirableModel {
  /** Name of its backend. */
  readonly backend: string;
  /** The backend's own spelling. */
  readonly reference: string;
  readonly access: AgentAccess;
}

/** Where ModelConfigs are written, and whether that happens by itself. */
export interface WiringInfo {
  readonly namespace: string;
  readonly apiVersion?: string | undefined;
  readonly autoWire: boolean;
}
