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

export const wiringReasons = ['wired on load', 'wired on read', 'already wired', 'wiring failed'] as const;
type WiringReason = (typeof wiringReasons)[number];

/** How wiring a model went that was wired on the way of something else. */
export interface WiringResult {
  readonly wired: boolean;
  readonly reason?: WiringReason | undefined;
  readonly modelConfig?: ModelConfigRef | undefined;
  readonly error?: string | undefined;
}

/** Where ModelConfigs are written, and whether that happens by itself. */
export interface WiringInfo {
  readonly namespace: string;
  readonly apiVersion?: string | undefined;
  readonly autoWire: boolean;
}
