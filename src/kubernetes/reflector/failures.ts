import { GatewayError } from '../../errors.ts';

/** The version that a watch was to go on from is too old. */
export const isExpired = ({ details }: GatewayError) => details?.reason === 'Expired' || details?.reason === 'Gone';

export const notInstalled = (name: string, cause: GatewayError) =>
  new GatewayError('not_found', `${name} are not installed in the cluster; once they are, they show within 30 s`, {
    cause,
  });

/** Nobody's request, so there is no id to find it by; the same words each time, so that they are news once. */
export const unexpected = (cause: unknown) =>
  new GatewayError('internal_error', 'unexpected error while looking; the log has it', { cause });

/** Longest wait that a server may ask for, in milliseconds. */
const longestRetryMs = 3_600_000;

/** How long the server asked to be left alone, in milliseconds. */
export function retryAfter({ details }: GatewayError): number {
  const asked = details?.retryAfterMs;
  if (typeof asked !== 'number' || !(asked > 0)) return 0;
  // A little later than that, so that not everybody who was told the same comes at the same moment.
  return Math.min(asked, longestRetryMs) * (1.01 + Math.random() / 20);
}
