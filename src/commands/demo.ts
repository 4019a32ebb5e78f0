import { buildableKinds } from '../backends/drivers.ts';
import { parseServe } from '../config/parse.ts';
import { startWorld } from '../demo/world.ts';
import { createLogger } from '../log.ts';
import { runUntilStopped } from './process.ts';
import { serve } from './serve.ts';

/** Where the demo listens unless told otherwise: this machine only. */
const usualAddress = '127.0.0.1:8080';

/** Runs the real gateway against the emulated world. Takes the settings of `serve`. */
export async function runDemo(argv: readonly string[]): Promise<void> {
  await using world = await startWorld();
  const { settings } = parseServe(
    [
      '--listen',
      usualAddress,
      '--log-format',
      'text',
      ...argv,
      '--backends',
      'ollama,lemonade,lmstudio',
      '--ollama-endpoint',
      world.urls.ollama,
      '--lemonade-endpoint',
      world.urls.lemonade,
      '--lmstudio-endpoint',
      world.urls.lmstudio,
    ],
    {},
    { buildable: buildableKinds },
  );
  const log = createLogger({ format: settings.logFormat, verbose: settings.verbose });
  const served = await serve(settings, log, process.env);
  console.log(greeting(served.url, settings.mcpPath));
  const life = world.live(served.url, event => log.info(`demo: ${event}`));
  await Promise.race([runUntilStopped(served, log), life]);
}

const jsonHeader = "-H 'content-type: application/json'";

function greeting(url: string, mcpPath: string): string {
  const tool = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_jobs","arguments":{}}}';
  const question = '{"query":"subscription { jobs { items { reference phase percent status } } }"}';
  return `
A made-up Ollama, Lemonade and LM Studio, and the real gateway in front of them. Watch them live:

  ${url}/graphql

There are more models to pull: smollm2:135m on Ollama, google/gemma-3-1b on LM Studio. Or ask from another terminal:

  # REST: the models, and what is loaded of them
  curl ${url}/api/v1/models

  # MCP: the tool an agent would call
  curl ${url}${mcpPath} ${jsonHeader} \\
    -d '${tool}'

  # GraphQL: a subscription to the downloads
  curl -N ${url}/graphql ${jsonHeader} -H 'accept: text/event-stream' \\
    -d '${question}'

Ctrl-C ends it.
`;
}
