/** How the runtime loads the model, or dies of it. */
import type { Read } from '../../../config/values.ts';
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
  if (waiting?.reason === 'CrashLoopBackOff' || waiting?.reason === 'RunContainerError') {
    return failed(from, { reason: waiting.reason, message: crashWords(runtime, log, waiting.message) });
  }
  if (terminated && pod.restartPolicy === 'Never') return failed(from, crashed(terminated.reason ?? 'Error'));
  if (hasCrashed(runtime)) return inProgress(from, crashed('CrashLoop'));
  if (waiting) return inProgress(from, waiting);
  return inProgress(running?.startedAt ?? from, { reason: 'LoadingModel', message: probeWords(runtime, events) });
}

const probeWords = ({ name }: Container, events: readonly EventView[]) =>
  latestOf(ofContainer(events, name), 'Unhealthy')?.message ||
  'the runtime is loading the model; the startup probe has not passed yet';
