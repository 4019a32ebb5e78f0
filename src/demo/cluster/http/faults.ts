/** What goes wrong. */
type FaultAction =
  /** Another answer: a `Status` of that code when no body is given; a document or a text. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: object | string;
    }
  /** The connection is dropped: before any answer, or after so many bytes of its body. */
  | { readonly kind: 'drop'; readonly afterBytes?: number }
  /** The request is taken and never answered. */
  | { readonly kind: 'hang' }
  /** The request is answered late. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** A watch begins, and ends at once with an `ERROR` event that has this code: 410 when absent. */
  | { readonly kind: 'error event'; readonly status?: number };

/** A scripted fault and the requests it meets: those that have all that is said here. */
export type ClusterFault = FaultAction & {
  readonly verb?: string;
  /** `pods`, `pods/log`, `modelconfigs.kagent.dev`. */
  readonly resource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly user?: string;
  readonly path?: string;
  /** Ends after so many requests; never when absent. */
  readonly times?: number;
};

interface Met {
  readonly verb: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  readonly path: string;
}

export interface FaultPlan {
  /** Sets a fault; the newest one wins. Returns what clears it. */
  add(fault: ClusterFault): () => void;
  /** The fault that this request meets; each call counts as a request. */
  meet(request: Met): ClusterFault | undefined;
}

const conditions = ['verb', 'resource', 'namespace', 'name', 'user', 'path'] as const;

export function faultPlan(): FaultPlan {
  const rules: { readonly fault: ClusterFault; left: number }[] = [];
  return {
    add(fault) {
      const rule = { fault, left: fault.times ?? Number.POSITIVE_INFINITY };
      rules.unshift(rule);
      return () => {
        const place = rules.indexOf(rule);
        if (place >= 0) rules.splice(place, 1);
      };
    },
    meet(request) {
      const isMet = ({ fault, left }: (typeof rules)[number]) =>
        left > 0 && conditions.every(field => fault[field] === undefined || fault[field] === request[field]);
      const rule = rules.find(isMet);
      if (rule) rule.left--;
      return rule?.fault;
    },
  };
}
