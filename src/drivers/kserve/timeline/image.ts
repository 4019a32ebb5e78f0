/** How the runtime's image comes to the node. */
import type { ReasonCode } from '../../../domain.ts';
import { type EventView, earliestOf } from './events.ts';
import { type Container, lacksImage, type PodView } from './pod.ts';
import { done, failed, inProgress, type Stage } from './steps.ts';

/** A container that ended, now or before, was there: it has its image. */
export const hasCrashed = ({ restarts, terminated, lastTerminated }: Container) =>
  restarts > 0 || terminated !== undefined || lastTerminated !== undefined;

/** @param from when the weights were there. A restarted container is "Pulled" again, which is not this step. */
export function imageStage(pod: PodView, events: readonly EventView[], from: number | undefined): Stage {
  const [runtime] = pod.containers;
  if (!runtime) return inProgress(from);
  const pulling = earliestOf(events, 'Pulling', runtime.name);
  const pulled = earliestOf(events, 'Pulled', runtime.name);
  const since = timed(pulling) ?? from;
  const { waiting, running } = runtime;
  if (waiting && lacksImage(waiting)) return failed(since, waiting);
  if (waiting && !pulled && !hasCrashed(runtime)) {
    const { reason = 'Pulling' satisfies ReasonCode, message } = waiting;
    return inProgress(since, { reason, message: pulling?.message || message });
  }
  return done(since, timed(pulled) ?? running?.startedAt ?? since, pulled?.message || undefined);
}

const timed = (event: EventView | undefined) => (event && Number.isFinite(event.first) ? event.first : undefined);
