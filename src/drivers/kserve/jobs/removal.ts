/** Removing Jobs that nobody waits for any more. */
import { type Call, outliving } from '../../../call.ts';
import { GatewayError } from '../../../errors.ts';
import { createBackoff } from '../../../kubernetes/backoff.ts';
import type { KubernetesClient } from '../../../kubernetes/client.ts';
import { jobs, type KubernetesObject } from '../../../kubernetes/resource.ts';
import { isRefused } from './follow.ts';

/** How long it is tried, in milliseconds. */
const removalMs = 30_000;

/**
 * Removes just this Job, as the caller, whether they are still there or not. Never rejects: what does not come off is logged,
 * and the Job goes by itself when its time is over.
 */
export async function removeDetached(
  client: Pick<KubernetesClient, 'remove'>,
  asking: Call,
  { metadata: { name, namespace, uid } }: KubernetesObject,
): Promise<void> {
  const call = outliving(asking, removalMs);
  const backoff = createBackoff();
  for (;;) {
    try {
      await client.remove(call, jobs, name, namespace, { uid });
      return;
    } catch (error) {
      // Another one has its name by now.
      if (error instanceof GatewayError && error.code === 'conflict') return;
      const pause = backoff.next();
      const isOver = call.deadline - Date.now() <= pause;
      if (isOver || (error instanceof GatewayError && isRefused(error))) {
        asking.log.warn({ err: error, job: `${namespace}/${name}` }, 'a Job could not be removed');
        return;
      }
      await new Promise(resolve => setTimeout(resolve, pause).unref());
    }
  }
}
