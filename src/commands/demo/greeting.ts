/** What the demo says when it is up: commands to copy. No line is wider than 80 characters but those that name a file. */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Places {
  /** Of the gateway. */
  readonly url: string;
  readonly mcpPath: string;
  /** URL of the emulated LM Studio. */
  readonly lmstudio: string;
  /** URL of the API server of the emulated cluster, and where it has what the platform publishes. */
  readonly cluster: string;
  readonly discoveryNamespace: string;
}

/** A recording that is played. */
export interface Played {
  readonly object: string;
  readonly file: string;
  /** How long it took, and how long it takes now, in words. */
  readonly length: string;
  readonly playing: string;
  /** Undefined: all is there at once. */
  readonly pace: { readonly speed: number; readonly after: string } | undefined;
}

const json = "-H 'content-type: application/json'";

const subscribe = (url: string, query: string) => `curl -N ${url}/graphql ${json} \\
    -H 'accept: text/event-stream' -d '{"query":
    "subscription { ${query} }"}'`;

const follow = (url: string, object: string, fields: string) =>
  subscribe(url, `serve(model: \\"${object}\\") { serve { ${fields} } }`);

/** How this very program is called from where it was: with the Node of a checkout, or by its name. */
function ourselves(): string {
  const main = fileURLToPath(new URL('../../main.ts', import.meta.url));
  return main === process.argv[1] ? `npx node ${relative(process.cwd(), main)}` : 'model-manager';
}

const record = ({ cluster, discoveryNamespace }: Places, object: string) => `${ourselves()} record ${object} \\
    --server ${cluster} --kserve-discovery-namespace ${discoveryNamespace}`;

export function greeting(places: Places): string {
  const { url, mcpPath, lmstudio } = places;
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
  ${subscribe(url, 'jobs { items { reference phase percent status } }')}

  # GraphQL: what agents know; load a model meanwhile, and see it get ready
  ${subscribe(url, 'models { items { name modelConfig { ready message } } }')}
  curl ${url}/api/v1/models/load -d '{"model": "gemma3"}'

  # Does a model fit on the nodes of the cluster, and if not, why?
  curl ${url}/api/v1/models/fit-check \\
    -d '{"preset": "support-assistant-70b"}'

  # Follow a model of the cluster from its load to its first answer: 15 s with
  # cached weights. qwen2-5-7b-x2 needs a new node, too, and takes a minute;
  # qwen3-0-6b-wrong-args crashes, qwen3-0-6b-wrong-image has no image
  ${follow(url, 'gemma-3-4b-gguf', 'phase')}
  curl ${url}/api/v1/models/load \\
    -d '{"preset": "gemma-3-4b-gguf"}'

  # Put on record how a model of the cluster comes up: this first, then a load
  ${record(places, 'qwen2-5-7b-x2')}

  # MCP: tools of agents; what a document registers can go, and come back
  ${call('remove_backend', '"kind": "lmstudio"')}
  ${call('add_backend', '"kind": "lmstudio"', `"endpoint": "${lmstudio}"`)}

Ctrl-C ends it.
`;
}

/** Of a demo that replays: what is there to see is the recording. */
export function replayGreeting(places: Places, { object, file, length, playing, pace }: Played): string {
  const { url } = places;
  const when = pace
    ? `${length} in ${playing}, ${pace.speed} times as fast. It begins in ${pace.after}.`
    : `${length}, all at once.`;
  return `
The recorded serve of ${object}, in a made-up cluster with the real gateway in
front: ${when} Of
${file}

Watch it live:

  ${url}/graphql

  # Follow it from its creation to its first answer, or to what stopped it
  ${follow(url, object, 'phase reason message')}

  # All its steps, as far as it is
  curl '${url}/api/v1/loaded?backend=kserve'

  # Put it on record again: this, then the demo anew, with the same --replay
  ${record(places, object)}

What it ended with stays. Ctrl-C ends it.
`;
}
