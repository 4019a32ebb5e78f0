/** The container that answers. */
import { backoffAfter } from './faults.ts';
import type { Termination } from './podStatus.ts';
import { type LivePod, type Surroundings, tellBackOff } from './surroundings.ts';

const name = 'main';

/** Resolves when it answers. One that crashes is started again and again, and never does. */
export async function startRuntime(live: LivePod, around: Surroundings, image: string): Promise<void> {
  const { pace, fault } = around;
  const what = fault(live.served);
  const running = started(live, 0);
  live.print(name, greeting);
  if (what?.kind === 'crash') return await crash(live, around, { image, ...what });
  await probed(live, around, pace.loadMs);
  live.print(name, 'INFO:     Application startup complete.\n');
  live.say(name, { running }, { ready: true, started: true });
}

const greeting = `INFO [api_server.py:1293] vLLM API server version 0.11.0
INFO [gpu_model_runner.py:1843] Starting to load model /mnt/models...
`;

function started(live: LivePod, restartCount: number, last?: Termination) {
  live.told(name, 'Created', `Created container: ${name}`);
  live.told(name, 'Started', `Started container ${name}`);
  const running = { startedAt: live.now() };
  live.say(name, { running }, { restartCount, started: false, ...(last && { lastState: { terminated: last } }) });
  return running;
}

/** As long as it does not answer, its probe says so. */
async function probed(live: LivePod, { clock, pace }: Surroundings, ms: number): Promise<void> {
  const end = clock.now() + ms;
  const at = `${live.address}:8000`;
  const message = `Startup probe failed: Get "http://${at}/health": dial tcp ${at}: connect: connection refused`;
  while (clock.now() < end) {
    await live.pause(Math.min(pace.probeMs, end - clock.now()));
    if (clock.now() < end) live.told(name, 'Unhealthy', message, 'Warning');
  }
}

interface Crash {
  readonly image: string;
  readonly afterMs: number;
  readonly log: string;
}

/** How long it lies there before the kubelet looks at it, in milliseconds at most. */
const seenMs = 1_000;

async function crash(live: LivePod, around: Surroundings, { image, afterMs, log }: Crash): Promise<never> {
  const { cluster, pace } = around;
  const { name: pod, namespace = '', uid } = live.pod.metadata;
  const written = greeting + log;
  for (let crashes = 1; ; crashes++) {
    const startedAt = live.now();
    await probed(live, around, afterMs);
    live.print(name, log);
    const terminated: Termination = {
      exitCode: 1,
      reason: 'Error',
      message: log,
      startedAt,
      finishedAt: live.now(),
    };
    live.say(name, { terminated }, { started: false });
    await live.pause(Math.min(pace.backoffMs, seenMs));
    // The first time it is started again at once.
    if (crashes > 1) {
      const wait = backoffAfter(crashes - 1, pace.backoffMs);
      const message = `back-off ${wait / 1000}s restarting failed container=${name} pod=${pod}_${namespace}(${uid})`;
      live.say(name, { waiting: { reason: 'CrashLoopBackOff', message } }, { lastState: { terminated } });
      cluster.logs.set(namespace, pod, name, { current: written, previous: written });
      tellBackOff(live, name);
      await live.pause(wait);
    }
    cluster.logs.set(namespace, pod, name, { current: greeting, previous: written });
    live.told(name, 'Pulled', `Container image "${image}" already present on machine`);
    started(live, crashes, terminated);
  }
}
