import type { Call } from '../call.ts';
import type { BackendStatus } from '../domain.ts';
import { GatewayError, isTimeout } from '../errors.ts';

/** The status a look gives. A look that fails says why the server is not healthy. */
export async function healthFrom(call: Call, look: () => Promise<BackendStatus>): Promise<BackendStatus> {
  try {
    return await look();
  } catch (error) {
    // When the caller left, nobody waits for the answer, and it would say nothing about the server.
    if (!(error instanceof GatewayError) || isCancelled(call)) throw error;
    return { healthy: false, message: error.message, timedOut: isTimeout(error) || undefined };
  }
}

/** Whether the caller left; a deadline that passed is the server's doing. */
const isCancelled = ({ signal }: Call) => signal.aborted && signal.reason?.name !== 'TimeoutError';
