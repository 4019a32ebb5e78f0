/** How the runtime loads the model, or dies of it. */
import type { Read } from '../../../config/values.ts';
import { oneOf, type ReasonCode, say } from '../../../domain.ts';
import { crashWords } from './crash.ts';
import { type EventView, latestOf, ofContainer } from './events.ts';
import { hasCrashed } from './image.ts';
import type { Container, PodView } from './pod.ts';
import { done, failed, inProgress, type Stage } from './steps.ts';

interface Heard {
  readonly events: readonly EventView[];
  readonly log: Read<string> | undefined;
}

/** @param from when the image was there */
export function loadingStage(pod: PodView, { events, log }: Heard, from: number | undefined): Stage {
  const [runtime] = pod.containers;
  if (!runtime) return inProgress(from);
  const { waiting, terminated, running, ready } = runtime;
  if (ready) return done(running?.startedAt ?? from, pod.containersReadyAt);
  const crashed = (reason: string) => ({ reason, message: crashWords(runtime, log) });
  if (waiting && isOver(waiting.reason)) {
    return failed(from, { reason: waiting.reason, message: crashWords(runtime, log, waiting.message) });
  }
  if (terminated && pod.restartPolicy === 'Never')
    return failed(from, crashed(terminated.reason ?? ('Error' satisfies ReasonCode)));
  if (hasCrashed(runtime)) return inProgress(from, crashed('CrashLoop' satisfies ReasonCode));
  if (waiting) return inProgress(from, waiting);
  const words = say('LoadingModel', 'loading');
  return inProgress(running?.startedAt ?? from, { ...words, message: probeWords(runtime, events) || words.message });
}

/** Waiting for one of them, a runtime is not expected to come back by itself. */
const isOver = oneOf('CrashLoopBackOff', 'RunContainerError');

const probeWords = ({ name }: Container, events: readonly EventView[]) =>
  latestOf(ofContainer(events, name), 'Unhealthy')?.message;
