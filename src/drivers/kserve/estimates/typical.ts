/** How long the steps of a serve take as a rule. */
import type { Estimate } from '../../../domain.ts';
import { gib } from '../units.ts';
import { type Kind, kinds, type Lesson, warm } from './lesson.ts';
import type { Lessons } from './lessons.ts';

export interface Question {
  readonly preset: string | undefined;
  readonly pool: string | undefined;
  readonly weightsBytes: number | undefined;
  /** Whether the weights are there already; absent = unknown, which counts as not. */
  readonly cached?: boolean | undefined;
}

const estimated = ['scheduling', 'nodeStarting', 'downloadingWeights', 'pullingImage', 'loading', 'routing'] as const;
/** Of each step but `ready`, which is a moment. */
export type Typicals = Readonly<Record<(typeof estimated)[number], Estimate>>;

/** What weights are taken to have whose size is unknown. */
const usualBytes = 8 * gib;

/**
 * The figures that portals have shown so far, of a serve on a GPU node that is started for it: 72 s are for 8 GiB of weights.
 * An initializer that finishes within 15 s is taken to have found the weights there, so that is the most it takes.
 */
const published: Readonly<Record<Kind, number>> = {
  scheduling: 35,
  nodeStarting: 270,
  download: 72 / usualBytes,
  cached: 15,
  unneeded: 0,
  pullingImage: 240,
  loading: 60,
  routing: 5,
};

/** The median of what the preset took in the pool, else of what any took there, else the published figure. */
export function typical(lessons: Lessons, question: Question): Typicals {
  const { pool, preset, weightsBytes: bytes = usualBytes, cached } = question;
  const inPool = [...lessons.kept.values()].filter(each => each.pool === pool);
  const ofPreset = preset === undefined ? [] : inPool.filter(each => each.preset === preset);
  const seconds = Object.fromEntries(kinds.map(kind => [kind, learned(ofPreset, kind) ?? learned(inPool, kind)]));
  const estimate = (kind: Kind, times = 1): Estimate => {
    const { median, samples } = seconds[kind] ?? { median: published[kind], samples: 0 };
    return { seconds: rounded(median * times), basis: samples > 0 ? 'learned' : 'published', samples };
  };
  const unneeded = learned(ofPreset, 'unneeded');
  const isNeeded = !unneeded || learned(ofPreset, 'download') || learned(ofPreset, 'cached');
  const nodeStarting = estimate('nodeStarting');
  return {
    scheduling: estimate('scheduling'),
    nodeStarting: pool === warm && nodeStarting.samples === 0 ? { ...nodeStarting, seconds: 0 } : nodeStarting,
    downloadingWeights: !isNeeded
      ? { seconds: 0, basis: 'learned', samples: unneeded.samples }
      : cached
        ? estimate('cached')
        : estimate('download', bytes),
    pullingImage: estimate('pullingImage'),
    loading: estimate('loading'),
    routing: estimate('routing'),
  };
}

function learned(lessons: readonly Lesson[], kind: Kind) {
  const sorted = lessons.flatMap(({ samples }) => samples[kind] ?? []).toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  return low === undefined || high === undefined ? undefined : { median: (low + high) / 2, samples: sorted.length };
}

const rounded = (seconds: number) => Math.round(seconds * 10) / 10;
