/** What the backend goes by: flags, the discovery document, and what the backend's own document says. */
import type { KserveFlags } from '../../config/kserve.ts';
import { ConfigError } from '../../config/settings.ts';
import { quote } from '../../config/values.ts';
import type { GpuPool } from '../../domain.ts';
import type { DiscoveryDocument, DiscoveryRef } from './discovery.ts';
import { trimmed } from './settings/pool.ts';
import { bytesOfGib } from './units.ts';

export interface KserveSettings {
  /** Where models are served. */
  readonly namespace: string;
  readonly gpuResource: string;
  readonly cache: {
    readonly enabled: boolean;
    readonly claim: string;
    readonly mountPath: string;
    /** Every served model mounts the claim. */
    readonly redirectPolicy: boolean;
    /** The only ones that can mount the claim, by the operator's word; empty when the volume is to say. */
    readonly nodes: readonly string[];
    readonly indexConfigMap: string;
  };
  readonly runtimeClass: string | undefined;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly gpuPool: GpuPool | undefined;
  /** Whether models that do not say get a scheduler in front. */
  readonly scheduler: boolean;
  readonly presets: { readonly namespace: string; readonly selector: string };
  /** Origin of the models Gateway. */
  readonly gatewayEndpoint: string | undefined;
  readonly hub: {
    readonly endpoint: string;
    /** In the serving namespace. */
    readonly tokenSecret: { readonly name: string; readonly key: string } | undefined;
    /** Milliseconds, as every time here. */
    readonly timeout: number;
  };
  readonly downloads: {
    readonly image: string;
    readonly toolImage: string;
    readonly ignorePatterns: readonly string[];
    readonly stallTimeout: number;
    readonly jobTtl: number;
  };
  readonly inventory: {
    readonly mode: InventoryMode;
    readonly ttl: number;
    readonly timeout: number;
    readonly agentSelector: string;
    readonly agentPort: number;
  };
  readonly budgetSource: BudgetSource;
  readonly defaultOverheadBytes: number;
  readonly readyTimeout: number;
  readonly pollInterval: number;
  /** 0: for ever. */
  readonly scaleUpTimeout: number;
}

const inventoryModes = ['pod', 'daemonset'] as const;
type InventoryMode = (typeof inventoryModes)[number];
const budgetSources = ['auto', 'gpu-labels', 'allocatable'] as const;
type BudgetSource = (typeof budgetSources)[number];

/** Flags whose words are all known. */
export interface CheckedFlags extends KserveFlags {
  readonly inventoryMode: InventoryMode;
  readonly budgetSource: BudgetSource;
}

/** Throws a `ConfigError` with everything that is wrong. */
export function checkFlags(flags: KserveFlags): CheckedFlags {
  const inventoryMode = inventoryModes.find(mode => mode === flags.inventoryMode.trim());
  const budgetSource = budgetSources.find(source => source === flags.budgetSource.trim());
  if (inventoryMode && budgetSource) return { ...flags, inventoryMode, budgetSource };
  throw new ConfigError([
    ...(inventoryMode ? [] : [`kserve inventory mode ${quote(flags.inventoryMode)}: want pod or daemonset`]),
    ...(budgetSource
      ? []
      : [`kserve budget source ${quote(flags.budgetSource)}: want auto, gpu-labels or allocatable`]),
  ]);
}

/** What the document that registered the backend says, if one did. */
export interface RegisteredKserve {
  readonly target: { readonly servingNamespace: string };
  readonly discovery: DiscoveryRef;
  readonly gpuPool?: GpuPool | undefined;
  readonly router?: { readonly scheduler?: boolean | undefined } | undefined;
}

const defaultNamespace = 'model-serving';

/** Where the discovery document is: as registered, else by flag, else in the process's own namespace. */
export function discoveryRefOf(
  flags: KserveFlags,
  registered: RegisteredKserve | undefined,
  processNamespace: string | undefined,
): DiscoveryRef {
  if (registered) return registered.discovery;
  return {
    namespace:
      trimmed(flags.discoveryNamespace) ?? trimmed(processNamespace) ?? trimmed(flags.namespace) ?? defaultNamespace,
    name: flags.discoveryConfigmap,
  };
}

export interface SettingSources {
  readonly flags: CheckedFlags;
  readonly registered?: RegisteredKserve | undefined;
  /** Where the discovery document is looked for. */
  readonly discovery: DiscoveryRef;
  /** Absent while it is missing or unreadable: flags and defaults count. */
  readonly document?: DiscoveryDocument | undefined;
}

/** Registered goes before flags, flags before discovery, discovery before defaults. */
export function settingsOf({ flags, registered, discovery, document }: SettingSources): KserveSettings {
  const claim = trimmed(flags.cacheClaim);
  const tokenSecret = trimmed(flags.hfTokenSecret);
  return {
    namespace:
      registered?.target.servingNamespace ?? trimmed(flags.namespace) ?? document?.namespace ?? defaultNamespace,
    gpuResource: trimmed(flags.gpuResource) ?? document?.gpuResource ?? 'nvidia.com/gpu',
    cache: {
      enabled: claim !== undefined || (document?.cache.enabled ?? true),
      claim: claim ?? document?.cache.claim ?? 'hf-cache',
      mountPath: trimmed(flags.cacheMountPath) ?? document?.cache.mountPath ?? '/mnt/models',
      redirectPolicy: document?.cache.redirectPolicy ?? false,
      nodes: [...new Set(flags.cacheNodes)].toSorted(),
      indexConfigMap: flags.cacheIndexConfigmap,
    },
    runtimeClass: document?.runtimeClass,
    nodeSelector: document?.nodeSelector ?? {},
    gpuPool: mergedPool(registered?.gpuPool, document?.gpuPool),
    scheduler: registered?.router?.scheduler ?? false,
    presets: {
      namespace: trimmed(flags.presetNamespace) ?? document?.presets.namespace ?? discovery.namespace,
      selector:
        trimmed(flags.presetSelector) ??
        document?.presets.selector ??
        'agent-platform.giantswarm.io/serving-preset=true',
    },
    gatewayEndpoint: document?.gatewayEndpoint,
    hub: {
      endpoint: flags.hfEndpoint.replace(/\/+$/, ''),
      tokenSecret: tokenSecret ? { name: tokenSecret, key: flags.hfTokenSecretKey } : undefined,
      timeout: flags.hfTimeout,
    },
    downloads: {
      image: flags.downloadImage,
      toolImage: flags.initImage,
      ignorePatterns: flags.downloadIgnorePatterns,
      stallTimeout: flags.downloadStallTimeout,
      jobTtl: flags.jobTtl,
    },
    inventory: {
      mode: flags.inventoryMode,
      ttl: flags.inventoryTtl,
      timeout: flags.inventoryTimeout,
      agentSelector: flags.inventoryAgentSelector,
      agentPort: flags.inventoryAgentPort,
    },
    budgetSource: flags.budgetSource,
    defaultOverheadBytes: bytesOfGib(flags.defaultOverheadGib),
    readyTimeout: flags.readyTimeout,
    pollInterval: flags.pollInterval,
    scaleUpTimeout: flags.scaleUpTimeout,
  };
}

/** Taint, selector and sizes each count for themselves; a selector that selects by nothing is none, as is a pool of nothing. */
function mergedPool(registered: GpuPool | undefined, discovered: GpuPool | undefined): GpuPool | undefined {
  const taint = registered?.taint ?? discovered?.taint;
  const nodeSelector = registered?.nodeSelector ?? discovered?.nodeSelector;
  const instances = registered?.instances ?? discovered?.instances;
  const selects = nodeSelector !== undefined && Object.keys(nodeSelector).length > 0;
  if (!taint && !selects && !instances?.length) return undefined;
  return {
    taint,
    nodeSelector: selects ? nodeSelector : undefined,
    instances: instances?.length ? instances : undefined,
  };
}

/** What counts for a model that needs no GPU: it knows no pool and no runtime class, and memory is what its node has. */
export const withoutGpus = (settings: KserveSettings): KserveSettings => ({
  ...settings,
  gpuPool: undefined,
  runtimeClass: undefined,
  budgetSource: 'allocatable',
});
