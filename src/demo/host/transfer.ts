/** Bytes on their way to a disk; where they are is a function of the time. */
export interface Transfer {
  readonly bytes: number;
  /** Bytes that were there when it began. */
  readonly from: number;
  readonly startedAt: number;
  readonly firstByteMs: number;
  readonly msPerByte: number;
  readonly stall?: { readonly at: number; readonly ms: number } | undefined;
  /** Where it ends, if not at its last byte. */
  readonly endsEarly?: number | undefined;
}

const endOf = ({ endsEarly, bytes }: Transfer) => endsEarly ?? bytes;

/** Bytes that are there at an instant. */
export function completedAt(transfer: Transfer, now: number): number {
  const { from, msPerByte, stall } = transfer;
  let moving = now - transfer.startedAt - transfer.firstByteMs;
  if (moving < 0) return from;
  if (stall) {
    const before = (stall.at - from) * msPerByte;
    if (moving > before) moving = Math.max(before, moving - stall.ms);
  }
  const moved = msPerByte > 0 ? Math.floor(moving / msPerByte + 1e-6) : transfer.bytes;
  return Math.min(from + moved, endOf(transfer));
}

/** When it is complete, or ends early. */
export function endsAt(transfer: Transfer): number {
  const end = endOf(transfer);
  const stalled = transfer.stall && end > transfer.stall.at ? transfer.stall.ms : 0;
  return transfer.startedAt + transfer.firstByteMs + (end - transfer.from) * transfer.msPerByte + stalled;
}
