#!/usr/bin/env node
/** The command line. What a command needs is imported when it runs, so that `--help` answers at once. */
import { setSourceMapsSupport } from 'node:module';
import { setFlagsFromString } from 'node:v8';

// Loading code makes garbage once. Without this V8 grows the space for young objects by it and keeps 20 MB for good.
setFlagsFromString('--semi-space-growth-factor=1');

// Whoever asks for source maps wants those of our files; those of packages would be read at the start, too, and kept.
if (process.sourceMapsEnabled) setSourceMapsSupport(true, { nodeModules: false });

// Unless it is told that this is no development, graphql-js asks of every value whether another copy of itself made it.
process.env.NODE_ENV ??= 'production';

const [command, ...rest] = process.argv.slice(2);
const wantsHelp = rest.some(word => word === '--help' || word === '-h' || word === '-help');

switch (command) {
  case 'serve':
    await (wantsHelp ? print(help => help.serveHelp(width())) : start(runServe));
    break;
  case 'demo':
    await (wantsHelp ? print(help => help.demoHelp(width())) : start(runDemo));
    break;
  case 'record':
    await (wantsHelp ? print(help => help.recordHelp(width())) : start(runRecord));
    break;
  case 'replay':
    await (wantsHelp ? print(help => help.replayHelp(width())) : start(runReplay));
    break;
  case 'cache-agent':
    await (wantsHelp ? print(help => help.cacheAgentHelp(width())) : start(runCacheAgent));
    break;
  case 'schema':
    await (wantsHelp ? print(help => help.schemaHelp(width())) : writeSchema());
    break;
  case '--version':
  case '-v': {
    const { readBuild } = await import('./commands/build.ts');
    console.log(readBuild(process.env).version);
    break;
  }
  default: {
    const asked = command === undefined || command === '--help' || command === '-h' || command === 'help';
    if (!asked) {
      console.error(`model-manager has no command ${JSON.stringify(command)}.\n`);
      process.exitCode = 2;
    }
    await print(help => help.topHelp(width()), asked ? console.log : console.error);
  }
}

function width(): number {
  return process.stdout.columns ?? 100;
}

async function print(text: (help: typeof import('./config/help.ts')) => string, write = console.log) {
  write(text(await import('./config/help.ts')));
}

/** Runs a command until it is stopped. What a person can mend is said in a sentence, without a stack. */
async function start(run: (argv: string[]) => Promise<void>) {
  const { startErrorOf } = await import('./commands/process.ts');
  try {
    await run(rest);
  } catch (error) {
    const problem = startErrorOf(error);
    if (problem === undefined) throw error;
    console.error(problem);
    process.exitCode = 2;
  }
}

async function runServe(argv: string[]) {
  const { parseServe } = await import('./config/parse.ts');
  const { buildableKinds } = await import('./backends/drivers.ts');
  const { createLogger } = await import('./log.ts');
  const { settings, warnings } = parseServe(argv, process.env, { buildable: buildableKinds });
  const { openAuditFile } = await import('./audit/file.ts');
  const { auditLog } = settings;
  const file = auditLog === '' || auditLog === '-' ? undefined : openAuditFile(auditLog);
  const audit = auditLog === '-' ? 'stdout' : file;
  const log = createLogger({ format: settings.logFormat, verbose: settings.verbose, audit });
  for (const warning of warnings) log.warn(warning);
  const { serve } = await import('./commands/serve.ts');
  const { runUntilStopped } = await import('./commands/process.ts');
  await runUntilStopped(async () => {
    const served = await serve(settings, log, process.env, undefined, file);
    setFlagsFromString('--semi-space-growth-factor=2');
    return served;
  }, log);
}

async function runDemo(argv: string[]) {
  const demo = await import('./commands/demo.ts');
  await demo.runDemo(argv);
}

async function runRecord(argv: string[]) {
  const { runRecord } = await import('./commands/record.ts');
  await runRecord(argv, process.env);
}

async function runReplay(argv: string[]) {
  const { runReplay } = await import('./commands/replay.ts');
  await runReplay(argv);
}

async function runCacheAgent(argv: string[]) {
  const { parseCacheAgent } = await import('./config/parse.ts');
  const settings = parseCacheAgent(argv, process.env);
  const { createLogger } = await import('./log.ts');
  const log = createLogger({ format: 'auto' });
  const { startCacheAgent } = await import('./commands/cacheAgent.ts');
  const { runUntilStopped } = await import('./commands/process.ts');
  await runUntilStopped(() => startCacheAgent(settings, log), log);
}

async function writeSchema() {
  const schema = await import('./commands/schema.ts');
  schema.writeSchema();
}
