/** What goes wrong. */
type FaultAction =
  /** The request is taken and never answered. */
  | { readonly kind: 'hang' }
  /** The request is answered late. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** The connection is dropped: before any answer, or after so many bytes of its body. */
  | { readonly kind: 'drop'; readonly afterBytes?: number }
  /** The true answer comes in pieces of so many bytes, one every `everyMs`. */
  | { readonly kind: 'split'; readonly pieceBytes: number; readonly everyMs?: number }
  /** Another answer: a page, a refusal, a recorded body. In pieces when `pieceBytes` says so. */
  | {
      readonly kind: 'answer';
      readonly status?: number;
      /** None when ''; JSON when absent. */
      readonly contentType?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body: string | Uint8Array;
      readonly pieceBytes?: number;
      readonly everyMs?: number;
      readonly afterBytes?: number;
    };

/** A scripted fault and the requests it meets. */
export type Fault = FaultAction & {
  readonly path: string;
  readonly method?: string;
  /** Only the nth such request, counted from 1 since the fault was set; all when absent. */
  readonly nth?: number;
};

export interface FaultPlan {
  /** Sets a fault; the newest one wins. Returns what clears it. */
  add(fault: Fault): () => void;
  /** The fault that this request meets; each call counts as a request. */
  meet(method: string, path: string): Fault | undefined;
}

export function faultPlan(): FaultPlan {
  const rules: { readonly fault: Fault; seen: number }[] = [];
  return {
    add(fault) {
      const rule = { fault, seen: 0 };
      rules.unshift(rule);
      return () => {
        const place = rules.indexOf(rule);
        if (place >= 0) rules.splice(place, 1);
      };
    },
    meet(method, path) {
      const matching = rules.filter(
        ({ fault }) => fault.path === path && (fault.method === undefined || fault.method === method),
      );
      for (const rule of matching) rule.seen++;
      return matching.find(({ fault, seen }) => fault.nth === undefined || fault.nth === seen)?.fault;
    },
  };
}
