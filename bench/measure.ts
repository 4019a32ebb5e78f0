/** Measuring two things in turn, so that whatever else the machine does meets both. */

/** Microseconds that one piece of work takes: on the clock, and of the server's processor. */
interface Sample {
  readonly wall: number;
  readonly cpu: number;
}

/** A middle, and between what the middle half lies. */
export interface Spread {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

export interface Comparison {
  readonly ours: Sample;
  readonly reference: Sample;
  /** Ours as a multiple of the reference, round by round. */
  readonly ratio: { readonly wall: Spread; readonly cpu: Spread };
}

export type Measure = () => Promise<Sample>;

/** Measures both in each round, one first in one round and the other in the next. The first round only warms up. */
export async function compare(ours: Measure, reference: Measure, rounds: number): Promise<Comparison> {
  const pairs: { ours: Sample; reference: Sample }[] = [];
  for (let round = 0; round <= rounds; round++) {
    const early = round % 2 === 0 ? await reference() : undefined;
    const pair = { ours: await ours(), reference: early ?? (await reference()) };
    if (round > 0) pairs.push(pair);
  }
  const middle = (side: 'ours' | 'reference', figure: keyof Sample) => median(pairs.map(pair => pair[side][figure]));
  const ratio = (figure: keyof Sample) => spread(pairs.map(pair => pair.ours[figure] / pair.reference[figure]));
  return {
    ours: { wall: middle('ours', 'wall'), cpu: middle('ours', 'cpu') },
    reference: { wall: middle('reference', 'wall'), cpu: middle('reference', 'cpu') },
    ratio: { wall: ratio('wall'), cpu: ratio('cpu') },
  };
}

export const median = (values: readonly number[]) => quantile(values, 0.5);

export const spread = (values: readonly number[]): Spread => ({
  median: median(values),
  low: quantile(values, 0.25),
  high: quantile(values, 0.75),
});

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * part;
  const [low = Number.NaN, high = low] = sorted.slice(Math.floor(at), Math.floor(at) + 2);
  return low + (high - low) * (at % 1);
}
