import { backendError, type GatewayError, invalidRequest, modelNotFound, timedOut } from '../../../errors.ts';
import type { Weights } from './weights.ts';
import type { Repository } from './wire.ts';

/** Why the Hub did not tell what it was asked for. */
export interface Miss {
  /** No such repository or revision; no access to it; no answer in time; anything else. */
  readonly why: 'missing' | 'refused' | 'timeout' | 'failed';
  /** One sentence without its end: `acme/x is not on the hub`. */
  readonly words: string;
  /** Of the answer, where there was one. */
  readonly status?: number | undefined;
  /** Milliseconds that were allowed, when they were too few. */
  readonly withinMs?: number | undefined;
}

/** What was asked for, or why it is not here. That the Hub fails is an answer: a preset may know better. */
export type Found<T> =
  | { readonly value: T; readonly miss?: undefined }
  | { readonly miss: Miss; readonly value?: undefined };

/** All that a fit needs of the Hub. */
export interface HubFacts {
  /** Absent when the Hub did not tell. */
  readonly repository?: Repository | undefined;
  /** Absent when nothing in the repository weighs anything, when sizes are unknown, and when there is a miss. */
  readonly weights?: Weights | undefined;
  /** Of all files that are fetched. Absent like the weights. */
  readonly downloadBytes?: number | undefined;
  /** Why the repository or its files are unknown. */
  readonly miss?: Miss | undefined;
}

/** The failure a miss is where nothing can stand in for the Hub. */
export function hubError({ why, words }: Miss): GatewayError {
  if (why === 'missing') return modelNotFound(words);
  if (why === 'refused') return invalidRequest(words);
  return why === 'timeout' ? timedOut(words) : backendError(`the Hugging Face Hub lookup failed (${words})`);
}
