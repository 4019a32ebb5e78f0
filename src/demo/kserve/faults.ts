/** What can go wrong with a model that is served. */
export type ServingFault = CrashingRuntime | StallingDownload;

/** Its runtime ends with code 1 again and again, each time after it wrote its log. */
interface CrashingRuntime {
  readonly kind: 'crash';
  /** How long it runs, in milliseconds. */
  readonly afterMs: number;
  readonly log: string;
}

/** Its weights come to a part of them, from 0 to 1; after a while without a byte the download ends, and is begun again. */
interface StallingDownload {
  readonly kind: 'stall';
  readonly at: number;
  /** How long nothing comes, in milliseconds. */
  readonly afterMs: number;
}

/** All times in milliseconds. */
export interface ServingPace {
  /** Until the controller has noticed what happened. */
  readonly controllerMs: number;
  /** From a node to the first container. */
  readonly startMs: number;
  /** How fast weights come. */
  readonly bytesPerSecond: number;
  /** Between two looks at them. */
  readonly progressMs: number;
  /** For weights that are there. */
  readonly cachedMs: number;
  /** For an image that the node does not have. */
  readonly pullMs: number;
  /** From the start of the runtime to its first answer. */
  readonly loadMs: number;
  /** Between two startup probes. */
  readonly probeMs: number;
  /** From the first answer of the runtime to that of its address. */
  readonly routeMs: number;
  /** Before a container is started for the third time, or an image is asked for again; then twice as long each time. */
  readonly backoffMs: number;
  /** From the request to end to the end. */
  readonly stopMs: number;
}

/** As real ones have it: thirty times the first one at most. */
export const backoffAfter = (failures: number, firstMs: number) => firstMs * Math.min(2 ** (failures - 1), 30);
