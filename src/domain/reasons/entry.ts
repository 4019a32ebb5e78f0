/** What an entry of the catalogue of reasons is. */
import { stepNames } from '../step.ts';

/** Where a reason shows: at a step of a served model, in its status, or in another answer. */
export const reasonPlaces = [...stepNames, 'status', 'wiring', 'inventory', 'fit'] as const;
export type ReasonPlace = (typeof reasonPlaces)[number];

export interface ReasonEntry {
  readonly where: readonly ReasonPlace[];
  /** What it says, with `{placeholders}`: whole messages, or the parts that one is made of. */
  readonly texts?: Readonly<Record<string, string>>;
  /** What would take an obstacle away, for each of its texts. */
  readonly changes?: Readonly<Record<string, string>>;
  /** A sentence or two. */
  readonly meaning: string;
  /** What to do; absent where the one change of an obstacle says it. */
  readonly remedy?: string;
  /** The word of another program, passed on as it came. */
  readonly from?: 'Kubernetes' | 'Karpenter' | 'KServe';
}
