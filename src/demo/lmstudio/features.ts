import { isAtLeast } from '../host/versions.ts';

/** What a release of LM Studio has that an earlier one has not. */
export interface Features {
  /** The management API under `/api/v1`, and tokens. */
  readonly v1: boolean;
  /** Models can be loaded by the name of one of their variants. */
  readonly variantKeys: boolean;
  /** `variants`, `selected_variant`, and `reasoning` among the capabilities. */
  readonly variants: boolean;
}

export function featuresOf(version: string): Features {
  const has = (since: string) => isAtLeast(version, since);
  return { v1: has('0.4.0'), variantKeys: has('0.4.2'), variants: has('0.4.10') };
}
