import { type Call, clientOf } from '../call.ts';
import { GatewayError } from '../errors.ts';

const minuteMs = 60_000;
/** Clients that are remembered at most; who was quiet longest is forgotten first. */
const maxClients = 10_000;

export interface MutationLimit {
  /** Lets so many mutations of a client through; throws the refusal of any more. */
  admit(call: Call, count?: number): void;
  /** What one more mutation of the client would be refused with now. */
  refusal(call: Call): GatewayError | undefined;
}

export interface MutationLimitOptions {
  /** Of one client in any minute. */
  readonly limit: number;
  onRefused?(): void;
  /** Milliseconds of any clock that only goes on. */
  now?(): number;
}

/**
 * So many mutations of each client in any minute. What was refused does not count, so who comes again when told to is let
 * through. The refusal is `rate_limited`, with `details.retryAfterMs`.
 */
export function limitMutations({
  limit,
  onRefused,
  now = () => performance.now(),
}: MutationLimitOptions): MutationLimit {
  /** When each client's mutations of the last minute were, oldest first; who came last is last. */
  const clients = new Map<string, readonly number[]>();

  function forget(before: number) {
    for (const [client, times] of clients) {
      if (clients.size <= maxClients && (times.at(-1) as number) > before) break;
      clients.delete(client);
    }
  }

  /** When the client's mutations of the last minute were. */
  const timesOf = (call: Call, time: number) =>
    (clients.get(clientOf(call)) ?? []).filter(each => each > time - minuteMs);

  function refusalOf(times: readonly number[], count: number, time: number): GatewayError | undefined {
    const over = times.length + count - limit;
    if (over <= 0) return undefined;
    // When enough of them are a minute old; more at once than the limit will never be.
    const free = times[Math.min(over, times.length) - 1] ?? time;
    return tooMany(limit, Math.ceil(free + minuteMs - time));
  }

  return {
    refusal(call) {
      const time = now();
      return refusalOf(timesOf(call, time), 1, time);
    },
    admit(call, count = 1) {
      const time = now();
      const times = timesOf(call, time);
      const refusal = refusalOf(times, count, time);
      if (refusal) {
        onRefused?.();
        throw refusal;
      }
      const client = clientOf(call);
      clients.delete(client);
      clients.set(client, [...times, ...Array<number>(count).fill(time)]);
      forget(time - minuteMs);
    },
  };
}

function tooMany(limit: number, retryAfterMs: number): GatewayError {
  const seconds = Math.ceil(retryAfterMs / 1000);
  return new GatewayError(
    'rate_limited',
    `too many changes: a caller may ask for ${limit} in a minute; ask again in ${seconds} s`,
    { details: { retryAfterMs } },
  );
}
