import type { Logger } from 'pino';
import { buildableKinds } from '../backends/drivers.ts';
import { parseServe } from '../config/parse.ts';
import { parseDemo } from '../config/recording.ts';
import { ConfigError, type ServeSettings } from '../config/settings.ts';
import { startCluster } from '../demo/cluster.ts';
import { realClock } from '../demo/host/clock.ts';
import { playRecording } from '../demo/playing.ts';
import { presetNamespace } from '../demo/world/places.ts';
import { startWorld, type World } from '../demo/world.ts';
import type { Recording } from '../drivers/kserve/recording.ts';
import { messageOf } from '../errors.ts';
import { openServer } from '../kubernetes/access.ts';
import { createLogger } from '../log.ts';
import { runUntilStopped } from './process.ts';
import { readRecording } from './recording/file.ts';
import { flagsOf, playedOf } from './recording/played.ts';
import { type Served, serve } from './serve.ts';

/** Where the demo listens unless told otherwise: this machine only. */
const usualAddress = '127.0.0.1:8080';

/** Where its world has what the platform publishes of serving. */
const places = { presetNamespace, discovery: 'agent-platform-model-serving' };

/** Runs the real gateway against the emulated world. Takes the settings of `serve`, but none of its variables. */
export async function runDemo(argv: readonly string[]): Promise<void> {
  const { replay, rest } = parseDemo(argv);
  const recording = replay && (await readRecording(replay.file));
  if (recording) await checkPlayable(recording, replay.file);
  await using world = await startWorld(
    recording ? { replay: { ...playedOf(recording, places), speed: replay.speed } } : {},
  );
  const settings = settingsFor(world, [...rest, ...(recording ? flagsOf(recording, places) : [])]);
  const log = createLogger({ format: settings.logFormat, verbose: settings.verbose });
  const served = await serveWorld(world, settings, log);
  console.log(greeting(served.url, settings.mcpPath, world.urls.lmstudio));
  const life = world.live(served.url, event => log.info(`demo: ${event}`));
  await Promise.race([runUntilStopped(served, log), life]);
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

function greeting(url: string, mcpPath: string, lmstudio: string): string {
  const json = "-H 'content-type: application/json'";
  const subscribe = (query: string) => `curl -N ${url}/graphql ${json} \\
    -H 'accept: text/event-stream' -d '{"query":
    "subscription { ${query} }"}'`;
  const call = (tool: string, ...args: string[]) => `curl ${url}${mcpPath} ${json} -d '{
    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {"name": "${tool}", "arguments": {${args.join(`,
      `)}}}}'`;
  return `
A made-up Ollama, Lemonade and LM Studio, a made-up cluster with kagent and
KServe, a made-up Hugging Face Hub, and the real gateway in front of them.
Watch them live:

  ${url}/graphql

There is more to pull: smollm2:135m on Ollama, google/gemma-3-1b on LM Studio,
mistral-small-24b-x4 on kserve (name the backend). Or from another terminal:

  # REST: the models, and what is loaded of them
  curl ${url}/api/v1/models

  # GraphQL: a subscription to the downloads
  ${subscribe('jobs { items { reference phase percent status } }')}

  # GraphQL: what agents know; load a model meanwhile, and see it get ready
  ${subscribe('models { items { name modelConfig { ready message } } }')}
  curl ${url}/api/v1/models/load -d '{"model": "gemma3"}'

  # Does a model fit on the nodes of the cluster, and if not, why?
  curl ${url}/api/v1/models/fit-check \\
    -d '{"preset": "support-assistant-70b"}'

  # Follow a model of the cluster from its load to its first answer: 15 s with
  # cached weights. qwen2-5-7b-x2 needs a new node, too, and takes a minute;
  # qwen3-0-6b-wrong-args crashes, qwen3-0-6b-wrong-image has no image
  ${subscribe('serve(model: \\"gemma-3-4b-gguf\\") { serve { phase } }')}
  curl ${url}/api/v1/models/load \\
    -d '{"preset": "gemma-3-4b-gguf"}'

  # MCP: tools of agents; what a document registers can go, and come back
  ${call('remove_backend', '"kind": "lmstudio"')}
  ${call('add_backend', '"kind": "lmstudio"', `"endpoint": "${lmstudio}"`)}

Ctrl-C ends it.
`;
}
