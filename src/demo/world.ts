/**
 * The scripted world of the demo: three emulated hosts, a cluster with kagent that serves models with KServe, a Hub, and a
 * day that repeats every two minutes. On Ollama a model is loaded and counts down, a pull takes 40 seconds, another one
 * fails, and the host restarts once. On Lemonade a pull goes file by file. LM Studio comes and goes; a document in the
 * cluster registers it. In the cluster a model is downloaded into the cache, and a node is away for a while; a pod that
 * finds no GPUs gets another node, and what is served there comes up as in a real one, or fails as scripted. What is pulled
 * and loaded on hosts, and served in the cluster, becomes known to agents, as kagent says two seconds later.
 */
import { type EmulatedCacheAgents, startCacheAgents } from './cacheAgents.ts';
import { type ClusterOptions, type EmulatedCluster, startCluster } from './cluster.ts';
import { type Clock, realClock } from './host/clock.ts';
import { type EmulatedHub, library, startHub } from './hub.ts';
import { startKagent } from './kagent.ts';
import { startKarpenter } from './karpenter.ts';
import { serveModel, startServing } from './kserve.ts';
import { type EmulatedKubelet, startKubelet } from './kubelet.ts';
import { startLemonade } from './lemonade.ts';
import { type EmulatedLmstudio, startLmstudio } from './lmstudio.ts';
import { type EmulatedOllama, startOllama } from './ollama.ts';
import { type PlayedRecording, playRecording } from './playing.ts';
import { kagentMs, kagentNamespace, namespace, objectsFor } from './world/cluster.ts';
import * as onLemonade from './world/lemonade.ts';
import * as onLmstudio from './world/lmstudio.ts';
import { loadingOptions } from './world/loading.ts';
import * as onOllama from './world/ollama.ts';
import { scaling } from './world/scaling.ts';
import * as serving from './world/serving.ts';

export interface World extends AsyncDisposable {
  /** Root URLs of the emulated hosts. */
  readonly urls: { readonly ollama: string; readonly lemonade: string; readonly lmstudio: string };
  readonly cluster: EmulatedCluster;
  /** What runs Jobs there, and has the volume of the cache. */
  readonly kubelet: EmulatedKubelet;
  /** What tells on each node what is in the cache; absent where a recording is played, which has its own nodes. */
  readonly cacheAgents: EmulatedCacheAgents | undefined;
  /** Where models come from that are served there. */
  readonly hub: EmulatedHub;
  /** Where discovery begins, and the Secret with the token for the Hub. */
  readonly serving: { readonly discoveryNamespace: string; readonly tokenSecret: string };
  /** Of the documents, and of the ModelConfigs. */
  readonly namespace: string;
  readonly kagentNamespace: string;
  /** Lives its days until it is closed, as a client of the gateway at that URL. `tell` is told what happens. */
  live(gatewayUrl: string, tell: (event: string) => void): Promise<void>;
}

export interface WorldOptions {
  readonly clock?: Clock;
  /** Where its API server listens on loopback; any free port when absent, or when another process has this one. */
  readonly clusterPort?: number;
  /** What happens in the cluster instead of its usual day, how many times as fast as it did, and after how many ms. */
  readonly replay?: PlayedRecording & { readonly speed: number; readonly afterMs: number };
}

export async function startWorld({ clock = realClock, clusterPort, replay }: WorldOptions = {}): Promise<World> {
  const [ollama, lemonade, lmstudio, hub] = await Promise.all([
    startOllama({ models: onOllama.library, registry: onOllama.registry, clock }),
    // Room for one model beside the pinned one.
    startLemonade({ models: onLemonade.library, registry: onLemonade.registry, maxModels: 2, clock }),
    startLmstudio({ models: onLmstudio.library, registry: onLmstudio.registry, clock }),
    startHub({ models: library, tokens: serving.hubTokens, clock }),
  ]);
  const objects = [...objectsFor(lmstudio.url), ...serving.servingObjects()];
  const cluster = await startClusterAt(clusterPort, { objects, clock });
  for (const model of serving.servedModels) serveModel(cluster, model);
  const kagent = startKagent(cluster, { clock, delayMs: kagentMs });
  const volumes = { [serving.cacheVolume]: serving.cached };
  const kubelet = startKubelet(cluster, { clock, volumes, ...serving.pace });
  const cacheAgents = replay ? undefined : await startCacheAgents(cluster, { clock, kubelet, ...serving.cachePlace });
  // What is played from a recording is moved by nobody else.
  const machinery = replay
    ? []
    : [
        startServing(cluster, { clock, kubelet, ...loadingOptions(serving.openedByToken) }),
        startKarpenter(cluster, { clock, ...scaling }),
      ];
  const closing = new AbortController();

  /** Again and again until the world is closed. */
  async function repeat(round: () => Promise<void>) {
    while (!closing.signal.aborted) {
      try {
        await round();
      } catch (error) {
        if (!closing.signal.aborted) throw error;
      }
    }
  }

  async function play(recording: NonNullable<typeof replay>, tell: (event: string) => void) {
    try {
      await clock.sleep(recording.afterMs, closing.signal);
      tell('KServe: the recording begins');
      await playRecording(cluster, recording, { speed: recording.speed, clock, signal: closing.signal });
      tell('KServe: the recording is over; what it ended with stays');
    } catch (error) {
      if (!closing.signal.aborted) throw error;
    }
  }

  return {
    urls: { ollama: ollama.url, lemonade: lemonade.url, lmstudio: lmstudio.url },
    cluster,
    kubelet,
    cacheAgents,
    hub,
    serving: { discoveryNamespace: serving.presetNamespace, tokenSecret: serving.tokenSecret },
    namespace,
    kagentNamespace,
    async live(gatewayUrl, tell) {
      const story: Story = {
        tell,
        pause: seconds => clock.sleep(seconds * 1000, closing.signal),
        async ask(method, path, body) {
          const { ok, status } = await fetch(`${gatewayUrl}/api/v1/models${path}`, {
            method,
            signal: closing.signal,
            ...(body && { body: JSON.stringify(body) }),
          });
          if (!ok) tell(`the gateway refuses that, by HTTP ${status}`);
        },
      };
      lemonade.load(onLemonade.pinned, { pinned: true });
      lmstudio.load(onLmstudio.loaded);
      await Promise.all([
        repeat(() => dayOfOllama(ollama, story)),
        repeat(() => dayOfLemonade(story)),
        repeat(() => dayOfLmstudio(lmstudio, story)),
        replay ? play(replay, tell) : repeat(() => dayOfKserve(cluster, story)),
      ]);
    },
    async [Symbol.asyncDispose]() {
      closing.abort();
      kagent.stop();
      for (const each of machinery) each.stop();
      kubelet.stop();
      await Promise.all([ollama, lemonade, lmstudio, hub, cluster, cacheAgents].map(server => server?.close()));
    },
  };
}

/** There, or on any free port. */
async function startClusterAt(port: number | undefined, options: ClusterOptions): Promise<EmulatedCluster> {
  if (port === undefined) return startCluster(options);
  try {
    return await startCluster({ ...options, port });
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'EADDRINUSE') throw error;
    return startCluster(options);
  }
}

/** How a day is told, and what happens in it. */
interface Story {
  tell(event: string): void;
  pause(seconds: number): Promise<void>;
  /** Asks the gateway for something done to a model, as one of its clients. */
  ask(method: string, path: string, body?: object): Promise<unknown>;
}

async function dayOfOllama(ollama: EmulatedOllama, { tell, pause, ask }: Story) {
  const backend = 'ollama';
  tell('Ollama: qwen3:8b is loaded and leaves in 75 s unless somebody uses it');
  await ask('POST', '/load', { backend, model: 'qwen3:8b', keepAlive: '75s' });
  await pause(2);
  tell(`Ollama: ${onOllama.pulled} is being pulled, for 40 s`);
  await ask('POST', '/pull', { backend, model: onOllama.pulled });
  await pause(10);
  tell(`Ollama: ${onOllama.broken} is being pulled, and will fail on the way`);
  await ask('POST', '/pull', { backend, model: onOllama.broken });
  await pause(35);
  tell('Ollama: gemma3 is loaded by somebody who does not ask the gateway');
  ollama.load('gemma3:latest', '60s');
  await pause(40);
  tell('Ollama: the host restarts, for 6 s; what was loaded is gone');
  await ollama.restart(6_000);
  await pause(20);
  tell(`Ollama: ${onOllama.pulled} is deleted, and the day begins again`);
  await ask('DELETE', `/${onOllama.pulled}?backend=${backend}`);
  await pause(5);
}

async function dayOfLemonade({ tell, pause, ask }: Story) {
  const backend = 'lemonade';
  await pause(20);
  tell(`Lemonade: ${onLemonade.pulled} is being pulled, in two files`);
  await ask('POST', '/pull', { backend, model: onLemonade.pulled });
  await pause(45);
  tell('Lemonade: Gemma-3-4b-it-GGUF is loaded beside the pinned model');
  await ask('POST', '/load', { backend, model: 'Gemma-3-4b-it-GGUF' });
  await pause(40);
  tell('Lemonade: it is unloaded again, and what was pulled is deleted');
  await ask('POST', '/unload', { backend, model: 'Gemma-3-4b-it-GGUF' });
  await ask('DELETE', `/${onLemonade.pulled}?backend=${backend}`);
  await pause(15);
}

async function dayOfLmstudio(lmstudio: EmulatedLmstudio, { tell, pause }: Story) {
  await pause(25);
  for (const seconds of [3, 3, 8]) {
    tell(`LM Studio: gone for ${seconds} s`);
    await lmstudio.restart(seconds * 1000);
    await pause(4);
  }
  tell('LM Studio: back, and somebody loads its model again');
  lmstudio.load(onLmstudio.loaded);
  await pause(71);
}

async function dayOfKserve(cluster: EmulatedCluster, { tell, pause, ask }: Story) {
  const backend = 'kserve';
  await pause(15);
  tell(`KServe: ${serving.pulled} is downloaded into the cache by a Job, for half a minute`);
  await ask('POST', '/pull', { backend, model: serving.pulled });
  await pause(45);
  tell(`KServe: the node ${serving.awayNode} is not ready, for 20 s`);
  serving.setReady(cluster, serving.awayNode, false);
  await pause(20);
  tell('KServe: it is back');
  serving.setReady(cluster, serving.awayNode, true);
  await pause(30);
  tell(`KServe: ${serving.pulled} is deleted from the cache`);
  await ask('DELETE', `/${serving.pulled}?backend=${backend}`);
  await pause(10);
}
