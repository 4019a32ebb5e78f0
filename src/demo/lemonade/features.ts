import { isAtLeast } from '../host/versions.ts';

/** What a release of Lemonade has that an earlier one has not. */
export interface Features {
  /** Pulls that report while they run. */
  readonly pullStream: boolean;
  /** `all_models_loaded` in the health answer. */
  readonly allModelsLoaded: boolean;
  /** `downloaded` and `labels` in the list. */
  readonly downloadedFlag: boolean;
  readonly apiKey: boolean;
  /** `npu` and the two kinds of AMD GPUs in the machine's devices; they went in this order. */
  readonly npuIsAmd: boolean;
  readonly oneAmdGpuList: boolean;
  /** `total_download_size` in progress events. */
  readonly totalDownloadSize: boolean;
  /** `user.X` is called `X`; and an unknown name has a code of its own. */
  readonly publicNames: boolean;
  readonly maxContextWindow: boolean;
  /** A pulled model is listed with its size on disk, in GiB. */
  readonly measuresPulled: boolean;
  readonly downloads: boolean;
  /** States, health and pins of loaded models. */
  readonly residency: boolean;
  /** `update_available`, the code of offline mode, and the drive in the machine's description. */
  readonly storage: boolean;
  /** Every downloaded model is listed with its size on disk; and its files have a route. */
  readonly measuresAll: boolean;
  readonly registrySource: boolean;
  readonly originCheck: boolean;
  readonly contextLength: boolean;
}

export function featuresOf(version: string): Features {
  const has = (since: string) => isAtLeast(version, since);
  return {
    pullStream: has('9.0.5'),
    allModelsLoaded: has('9.0.6'),
    downloadedFlag: has('9.1.0'),
    apiKey: has('9.1.2'),
    npuIsAmd: has('9.4.0'),
    totalDownloadSize: has('10.0.1'),
    publicNames: has('10.3.0'),
    oneAmdGpuList: has('10.3.0'),
    maxContextWindow: has('10.4.0'),
    measuresPulled: has('10.6.0'),
    downloads: has('10.6.0'),
    residency: has('10.8.0'),
    storage: has('10.9.0'),
    measuresAll: has('10.10.0'),
    registrySource: has('11.0.0'),
    originCheck: has('11.5.0'),
    contextLength: has('11.8.0'),
  };
}
