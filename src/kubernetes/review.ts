/** SelfSubjectAccessReviews: the API server says whether who asks may do something. */
import type { GatewayError } from '../errors.ts';
import { type Attempt, noObject, statusError } from './errors.ts';

/** Something that is done to objects of one namespace. */
export interface Review {
  readonly verb: string;
  /** Empty for the core group. */
  readonly group: string;
  /** Plural; a part of an object as `pods/log`. */
  readonly resource: string;
  readonly namespace: string;
  /** The object; any of them when absent. */
  readonly name?: string | undefined;
}

const group = 'authorization.k8s.io';
const plural = 'selfsubjectaccessreviews';

export const selfReview: Attempt = { verb: 'create', resource: { group, plural, namespaced: false } };
export const reviewPath = `/apis/${group}/v1/${plural}`;

export function reviewBody({ verb, group: of, resource, namespace, name }: Review): object {
  const [plural, subresource] = resource.split('/');
  return {
    apiVersion: `${group}/v1`,
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb, group: of, resource: plural, subresource, namespace, name } },
  };
}

/** What the answer comes to: undefined where it is allowed, else the refusal that the request itself would meet. */
export function reviewed(answer: unknown, review: Review, server: string, asCaller: boolean): GatewayError | undefined {
  const { status } = (answer ?? {}) as { readonly status?: unknown };
  const { allowed, reason, evaluationError } = (status ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof allowed !== 'boolean') throw noObject(selfReview, server, 'object');
  if (allowed) return undefined;
  const { verb, group, resource, namespace, name } = review;
  const [plural = '', part] = resource.split('/');
  const attempt = { verb, resource: { group, plural, namespaced: true }, part, name, namespace };
  const said = [reason, evaluationError].find(each => typeof each === 'string' && each !== '');
  const message = typeof said === 'string' ? said : 'the API server does not allow it';
  return statusError(attempt, { server, asCaller, secrets: [] }, { code: 403, reason: 'Forbidden', message });
}
