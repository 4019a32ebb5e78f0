import type { Logger } from 'pino';
import type { Registry } from '../backends/registry.ts';
import { createCall } from '../call.ts';
import { asGatewayError } from '../errors.ts';
import { type RestResponse, textResponse } from '../rest-compat/respond.ts';

/** All backends have this long to answer, in milliseconds. */
const backendsMs = 5_000;

/**
 * Asks every backend whether it is healthy: 200 `ok`, or 503 with each that is not and why. Not those that are only worked with
 * as somebody: nobody signs in to ask for this.
 */
export async function checkBackends(registry: Registry, log: Logger): Promise<RestResponse> {
  const call = createCall({ log, timeoutMs: backendsMs });
  const problems = await Promise.all(
    registry.backends
      .filter(({ isEverybodys }) => isEverybodys)
      .map(async ({ name, status }) => {
        const problem = await status.read(call).then(
          ({ value, error }) => (error ? error.message : value?.healthy ? undefined : (value?.message ?? 'no answer')),
          error =>
            call.signal.aborted
              ? `no answer within ${backendsMs / 1000} s`
              : asGatewayError(error, call.requestId).message,
        );
        return problem === undefined ? [] : [`backend ${name} not healthy: ${problem}`];
      }),
  );
  const lines = problems.flat();
  return lines.length === 0 ? textResponse(200, 'ok') : textResponse(503, lines.join('; '));
}
