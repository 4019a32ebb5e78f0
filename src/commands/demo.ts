import type { Logger } from 'pino';
import { buildableKinds } from '../backends/drivers.ts';
import { parseServe } from '../config/parse.ts';
import { parseDemo } from '../config/recording.ts';
import { ConfigError, type ServeSettings } from '../config/settings.ts';
import { startCluster } from '../demo/cluster.ts';
import { realClock } from '../demo/host/clock.ts';
import { playingMs, playRecording, usualSpeed } from '../demo/playing.ts';
import { presetNamespace } from '../demo/world/places.ts';
import { startWorld, type World } from '../demo/world.ts';
import type { Recording } from '../drivers/kserve/recording.ts';
import { messageOf } from '../errors.ts';
import { openServer } from '../kubernetes/access.ts';
import { createLogger } from '../log.ts';
import { greeting, replayGreeting } from './demo/greeting.ts';
import { runUntilStopped } from './process.ts';
import { readRecording } from './recording/file.ts';
import { spanWords } from './recording/lines.ts';
import { flagsOf, playedOf } from './recording/played.ts';
import { type Served, serve } from './serve.ts';

/** Where the demo listens unless told otherwise: this machine only. */
const usualAddress = '127.0.0.1:8080';

/** Where the API server of its cluster listens, if nobody else does, nor the gateway itself is to. */
const usualClusterPort = 8090;

/** What is played begins when there was time to open the page, in milliseconds. */
const beginsAfterMs = 5_000;

/** Where its world has what the platform publishes of serving. */
const places = { presetNamespace, discovery: 'agent-platform-model-serving' };

/** Runs the real gateway against the emulated world. Takes the settings of `serve`, but none of its variables. */
export async function runDemo(argv: readonly string[]): Promise<void> {
  const { replay, rest } = parseDemo(argv);
  const recording = replay && (await readRecording(replay.file));
  if (recording) await checkPlayable(recording, replay.file);
  const played = recording && playedOf(recording, places);
  const speed = played ? (replay?.speed ?? usualSpeed(played.instants)) : 1;
  // Nobody waits for what is there at once.
  const afterMs = speed === Number.POSITIVE_INFINITY ? 0 : beginsAfterMs;
  const clusterPort = clusterPortBeside(rest);
  await using world = await startWorld({ clusterPort, ...(played && { replay: { ...played, speed, afterMs } }) });
  const settings = settingsFor(world, [...rest, ...(recording ? flagsOf(recording, places) : [])]);
  const log = createLogger({ format: settings.logFormat, verbose: settings.verbose });
  const served = await serveWorld(world, settings, log);
  const found = {
    url: served.url,
    mcpPath: settings.mcpPath,
    lmstudio: world.urls.lmstudio,
    cluster: world.cluster.url,
    discoveryNamespace: world.serving.discoveryNamespace,
    asksToken: settings.oauth.enable,
  };
  console.log(
    recording && played
      ? replayGreeting(found, {
          object: recording.object,
          file: replay.file,
          length: spanWords((played.instants.at(-1)?.at ?? 0) - (played.instants[0]?.at ?? 0)),
          pace:
            afterMs === 0
              ? undefined
              : { speed, playing: spanWords(playingMs(played.instants, speed)), after: spanWords(afterMs) },
        })
      : greeting(found),
  );
  const life = world.live(served.url, event => log.info(`demo: ${event}`));
  await Promise.race([runUntilStopped(async () => served, log), life]);
}

/** Where the API server listens beside a gateway with these settings; 0 for any free port. */
export function clusterPortBeside(argv: readonly string[]): number {
  const { settings } = parseServe(['--listen', usualAddress, ...argv], {}, { buildable: buildableKinds });
  const taken = [settings.listen.port, settings.metricsListen?.port];
  return taken.includes(usualClusterPort) ? 0 : usualClusterPort;
}

/** Throws a `ConfigError` for a recording that no cluster can play: before there is anything that would have to stop. */
async function checkPlayable(recording: Recording, file: string): Promise<void> {
  const cluster = await startCluster();
  try {
    await playRecording(cluster, playedOf(recording, places), { speed: Number.POSITIVE_INFINITY, clock: realClock });
  } catch (error) {
    throw new ConfigError([`${file}: ${messageOf(error)}`]);
  } finally {
    await cluster.close();
  }
}

/**
 * Those of `argv` but for what makes the gateway that of the world. A document in its cluster registers LM Studio. Where there
 * are agents they are asked, unless `argv` has the inventory mode `pod`.
 */
export function settingsFor(
  { urls, hub, serving, cacheAgents, namespace, kagentNamespace }: World,
  argv: readonly string[],
): ServeSettings {
  const usual = [
    ...['--listen', usualAddress],
    ...['--log-format', 'text'],
    ...['--kserve-poll-interval', '1s'],
    ...['--kserve-inventory-mode', cacheAgents ? 'daemonset' : 'pod'],
  ];
  const ours = [
    '--discover=false',
    ...['--backends', 'ollama,lemonade,kserve'],
    ...['--ollama-endpoint', urls.ollama],
    ...['--lemonade-endpoint', urls.lemonade],
    ...['--kserve-hf-endpoint', hub.url],
    ...['--kserve-hf-token-secret', serving.tokenSecret],
    ...['--kserve-discovery-namespace', serving.discoveryNamespace],
    ...(cacheAgents ? ['--kserve-inventory-agent-port', String(cacheAgents.port)] : []),
    ...['--namespace', namespace],
    ...['--kagent-namespace', kagentNamespace],
  ];
  return parseServe([...usual, ...argv, ...ours], {}, { buildable: buildableKinds }).settings;
}

/** The cluster is given as it is: no kubeconfig is read, least of all that of who runs the demo. */
export const serveWorld = ({ cluster }: World, settings: ServeSettings, log: Logger): Promise<Served> =>
  serve(settings, log, process.env, openServer(cluster.url));
