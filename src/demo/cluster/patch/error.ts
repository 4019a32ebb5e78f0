export interface PatchCause {
  readonly reason: string;
  readonly message: string;
  /** Where in the object. */
  readonly field: string;
}

/** A patch that is refused, in the API server's words: what its `Status` is to say. */
export class PatchError extends Error {
  readonly status: number;
  readonly reason: string;
  readonly causes: readonly PatchCause[];

  constructor(status: number, reason: string, message: string, causes: readonly PatchCause[] = []) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.causes = causes;
  }
}

export const badRequest = (message: string) => new PatchError(400, 'BadRequest', message);
