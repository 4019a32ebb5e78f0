import { GatewayError } from '../errors.ts';

/** Keeps looks away from a server that does not answer, and tells at once what it last said instead. */
export interface Circuit {
  /**
   * Runs a look. Once several in a row have failed, looks fail at once with the last failure, but for one probe now and
   * then; the first that succeeds ends that. A look that was given up says nothing about the server. `own` is what a look
   * of this kind failed with last: it keeps its words, also when others fail in others.
   */
  guard<T>(look: () => Promise<T>, signal: AbortSignal, own?: GatewayError): Promise<T>;
  /** Something suggests that the server is there again: the next look probes it. */
  retry(): void;
}

export interface CircuitOptions {
  /** Told when a server answers again after it did not. */
  onRecovery(): void;
  /** Whether a failure is excused by what the server is known to be doing: then it says nothing about the server. */
  excuses?(error: GatewayError): boolean;
  readonly now?: () => number;
}

/** Failures in a row after which looks are kept away. */
const failuresToOpen = 3;
/** Between probes: doubled from the first to the last, in milliseconds. */
const firstProbeMs = 5_000;
const lastProbeMs = 60_000;

export function createCircuit({ onRecovery, excuses = () => false, now = Date.now }: CircuitOptions): Circuit {
  let failures = 0;
  let lastFailure: GatewayError | undefined;
  let probeAt = 0;

  function failed(error: GatewayError) {
    failures++;
    lastFailure = error;
    if (failures >= failuresToOpen) probeAt = now() + probeDelay(failures - failuresToOpen);
  }

  return {
    async guard(look, signal, own) {
      const isOpen = failures >= failuresToOpen;
      if (isOpen && lastFailure && now() < probeAt) throw own ?? lastFailure;
      // One probe at a time: the others are told the last failure until it is back.
      if (isOpen) probeAt = now() + lastProbeMs;
      try {
        const seen = await look();
        const recovered = failures >= failuresToOpen;
        failures = 0;
        lastFailure = undefined;
        if (recovered) onRecovery();
        return seen;
      } catch (error) {
        const isDown = saysServerIsDown(error);
        if (signal.aborted || (isDown && excuses(error))) probeAt = 0;
        else if (isDown) failed(error);
        throw error;
      }
    },
    retry() {
      probeAt = 0;
    },
  };
}

function probeDelay(doublings: number): number {
  const delay = Math.min(lastProbeMs, firstProbeMs * 2 ** doublings);
  return delay * (0.9 + Math.random() * 0.2);
}

function saysServerIsDown(error: unknown): error is GatewayError {
  return error instanceof GatewayError && (error.code === 'backend_error' || error.code === 'unavailable');
}
