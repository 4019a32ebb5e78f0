/** The schemas of the kinds that every cluster has. */
import assert from 'node:assert/strict';
import { Job } from 'kubernetes-models/batch/v1';

/** Fails with what is wrong with the fields of a Job that it knows. */
export function checkKubernetes(object: object): void {
  const job = new Job(structuredClone(object) as ConstructorParameters<typeof Job>[0]);
  assert.doesNotThrow(() => job.validate());
}
