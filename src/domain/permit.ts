/** Whether somebody may do something, by all that is known before it is tried. */
export interface Permit {
  /** Undefined while nobody can tell. */
  readonly allowed: boolean | undefined;
  /** Why not, or why nobody can tell. */
  readonly reason?: string | undefined;
}

export const permitted: Permit = { allowed: true };

/** What needs all of them: the first that refuses, else the first that nobody can tell. */
export const together = (permits: readonly Permit[]): Permit =>
  permits.find(({ allowed }) => allowed === false) ?? permits.find(({ allowed }) => allowed === undefined) ?? permitted;
