import { isAtLeast } from '../host/versions.ts';

/** What a release of Ollama has that an earlier one has not. */
export interface Features {
  /** Requests with a foreign `Host` are refused on a loopback listener. */
  readonly hostCheck: boolean;
  /** `/api/ps`; and an empty library is `[]`, no longer `null`. */
  readonly ps: boolean;
  /** A request without keep-alive leaves the loaded model's own as it is. */
  readonly keepAliveSticks: boolean;
  readonly embed: boolean;
  /** `/api/embed` loads the model for an empty input too. */
  readonly embedLoads: boolean;
  /** Unloading does not load first. */
  readonly unload: boolean;
  /** The wording `removing unused layers`. */
  readonly shortPruneStatus: boolean;
  /** `capabilities` in `/api/show`. */
  readonly showCapabilities: boolean;
  /** 405 for a known path with another method. */
  readonly methodNotAllowed: boolean;
  /** `context_length` in `/api/ps`. */
  readonly psContextLength: boolean;
  /** Stubs of cloud models. */
  readonly cloud: boolean;
  /** A model of tensor layers is pulled as one. */
  readonly tensorPull: boolean;
  /** `capabilities`, `context_length` and `embedding_length` in `/api/tags`. */
  readonly tagsCapabilities: boolean;
}

export function featuresOf(version: string): Features {
  // A development build calls itself 0.0.0, and has everything.
  const has = (since: string) => version.startsWith('0.0.0') || isAtLeast(version, since);
  return {
    hostCheck: has('0.1.29'),
    ps: has('0.1.38'),
    keepAliveSticks: has('0.2.0'),
    embed: has('0.2.6'),
    embedLoads: has('0.3.6'),
    unload: has('0.3.11'),
    shortPruneStatus: has('0.4.0'),
    showCapabilities: has('0.6.4'),
    methodNotAllowed: has('0.6.9'),
    psContextLength: has('0.10.0'),
    cloud: has('0.12.0'),
    tensorPull: has('0.14.0'),
    tagsCapabilities: has('0.30.0'),
  };
}
