/** What Karpenter has in mind for a pod. */

/** The NodeClaim that a nomination names: `Pod should schedule on: nodeclaim/gpu-l4-k7x2m, node/ip-10-0-12-34`. */
export const nominatedClaim = (message: string | undefined): string | undefined =>
  /^Pod should schedule on: nodeclaim\/([^\s,]+)/.exec(message ?? '')?.[1];

/** The pool that a NodeClaim was made for, by its name; undefined when the name has another form. */
export const poolOfClaim = (claim: string): string | undefined => /^(.+)-[^-]{5}$/.exec(claim)?.[1];
