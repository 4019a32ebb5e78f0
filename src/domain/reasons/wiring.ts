/** How a model became known to agents, or that it did not. */
import type { ReasonEntry } from './entry.ts';

export const wiringTable = {
  'wired on load': {
    where: ['wiring'],
    meaning: 'The model became known to agents when it was loaded.',
    remedy: 'Nothing.',
  },
  'wired on read': {
    where: ['wiring'],
    meaning: 'The model was served and not known to agents; this look at it made it known.',
    remedy: 'Nothing.',
  },
  'already wired': {
    where: ['wiring'],
    meaning: 'Agents knew the model before. Who made its ModelConfig, if not the gateway, keeps it.',
    remedy: 'Nothing.',
  },
  'wiring failed': {
    where: ['wiring'],
    meaning: 'The model is served, but agents do not know it: its ModelConfig could not be written.',
    remedy: 'Mend what `error` says, most often a permission in the namespace of kagent, then call `wire_model`.',
  },
} as const satisfies Record<string, ReasonEntry>;
