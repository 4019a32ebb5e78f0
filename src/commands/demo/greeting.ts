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
  /** Whether people have to sign in. */
  readonly asksToken: boolean;
}

/** A recording that is played. Times in words. */
export interface Played {
  readonly object: string;
  readonly file: string;
  /** How long it took. */
  readonly length: string;
  /** Undefined: all is there at once. */
  readonly pace: { readonly speed: number; readonly playing: string; readonly after: string } | undefined;
}

const json = "-H 'content-type: application/json'";

const subscribe = (url: string, query: string) => `curl -N ${url}/graphql ${json} \\
    -H 'accept: text/event-stream' -d '{"query":
    "subscription { ${query} }"}'`;

const follow = (url: string, object: string, fields: string) =>
  subscribe(url, `serve(model: \\"${object}\\") { serve { ${fields} } }`);

/** How this program is called: with the Node of its checkout, or by its name where it is installed. */
function ourselves(): string {
  const main = fileURLToPath(new URL('../../main.ts', import.meta.url));
  return import.meta.url.endsWith('.ts') ? `npx node ${relative(process.cwd(), main)}` : 'model-manager';
}

const record = ({ cluster, discoveryNamespace }: Places, object: string) => `${ourselves()} record ${object} \\
    --server ${cluster} --kserve-discovery-namespace ${discoveryNamespace}`;

/** What the commands above it lack. */
const signIn = ({ asksToken }: Places) =>
  asksToken
    ? '\nEverybody has to sign in: add -H "Authorization: Bearer $TOKEN" to each curl.\nWhat the demo itself asks for is refused.\n'
    : '';

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

  # Put on record how it comes up: this first, then the load above
  ${record(places, 'gemma-3-4b-gguf')}

  # MCP: tools of agents; what a document registers can go, and come back
  ${call('remove_backend', '"kind": "lmstudio"')}
  ${call('add_backend', '"kind": "lmstudio"', `"endpoint": "${lmstudio}"`)}
${signIn(places)}
Ctrl-C ends it.
`;
}

/** Of a demo that replays: what is there to see is the recording. */
export function replayGreeting(places: Places, { object, file, length, pace }: Played): string {
  const { url } = places;
  const faster = pace?.speed === 1 ? 'as fast as it happened' : `${pace?.speed} times as fast`;
  const course = pace
    ? `It took ${length}, and takes ${pace.playing} now: ${faster}, and where nothing
changes for long, faster still. It begins in ${pace.after}. Watch it live:`
    : `It took ${length}, and is there at once:`;
  return `
A made-up cluster in which ${object} is served as it is on record in
${file}, and the real gateway in front of it.
${course}

  ${url}/graphql

  # Follow it to its first answer, or to what stopped it
  ${follow(url, object, 'phase reason')}

  # Where it is, with all its steps
  curl '${url}/api/v1/loaded?backend=kserve'

  # Put it on record once more, from where it is
  ${record(places, object)}
${signIn(places)}
What it ends with stays. Ctrl-C ends the demo.
`;
}
