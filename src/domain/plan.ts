import type { FitResult, Manifest } from '../domain.ts';
import type { WiringResult } from './wiring.ts';

/** What would go: an object of Kubernetes, or files. */
export interface Deletion {
  /** Kind of the object; `Model` or `Directory` for files, `Record` for an entry of an object that stays. */
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Where that is, when it is no object: the server, the claim and its node, or the object that it is an entry of. */
  readonly where?: string | undefined;
}

/** What an action comes to. Nothing of it is done yet. */
export interface Plan {
  readonly backend: string;
  /** As the answer of the action would name it. */
  readonly model: string;
  /** Whether its files are there; absent where that is not known. */
  readonly present?: boolean | undefined;
  /** Whether it is in memory. */
  readonly loaded?: boolean | undefined;
  /** The one that a load would ask for. */
  readonly keepAlive?: string | undefined;
  /** What the action is allowed by, on backends that check that. */
  readonly fit?: FitResult | undefined;
  /** Something serves it: nothing would be created for that. */
  readonly alreadyServing?: true | undefined;
  /** What downloads the same already and would be joined: a job's id, or the name of a Job in the cluster. */
  readonly joins?: string | undefined;
  /** Objects that would be created or changed, in their order. */
  readonly manifests: readonly Manifest[];
  /** How it would be made known to agents. */
  readonly wiring?: WiringResult | undefined;
  readonly deletes?: readonly Deletion[] | undefined;
}
