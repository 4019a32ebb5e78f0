import { GatewayError } from '../../../errors.ts';

/** Undefined for what is not there; throws every other failure. */
export function ifMissing(error: unknown): undefined {
  if (error instanceof GatewayError && error.code === 'not_found') return undefined;
  throw error;
}
