#!/usr/bin/env node
/** The command line. What a command needs is imported when it runs, so that `--help` answers at once. */
import { setFlagsFromString } from 'node:v8';

// Loading code makes garbage once. Without this V8 grows the space for young objects by it and keeps 20 MB for good.
setFlagsFromString('--semi-space-growth-factor=1');

const [command, ...rest] = process.argv.slice(2);
const wantsHelp = rest.some(word => word === '--help' || word === '-h' || word === '-help');

switch (command) {
  case 'serve':
    await (wantsHelp ? printServeHelp() : runServe(rest));
    break;
  case 'demo': {
    const { runDemo } = await import('./commands/demo.ts');
    await runDemo(rest);
    break;
  }
  case 'schema': {
    const { writeSchema } = await import('./commands/schema.ts');
    writeSchema();
    break;
  }
  case '--version':
  case '-v': {
    const { readBuild } = await import('./commands/build.ts');
    console.log(readBuild(process.env).version);
    break;
  }
  default: {
    const { topHelp } = await import('./config/help.ts');
    const asked = command === undefined || command === '--help' || command === '-h' || command === 'help';
    if (!asked) console.error(`model-manager has no command ${JSON.stringify(command)}.\n`);
    (asked ? console.log : console.error)(topHelp(width()));
    process.exitCode = asked ? 0 : 2;
  }
}

function width(): number {
  return process.stdout.columns ?? 100;
}

async function printServeHelp() {
  const { serveHelp } = await import('./config/help.ts');
  console.log(serveHelp(width()));
}

async function runServe(argv: string[]) {
  const { ConfigError, parseServe } = await import('./config/settings.ts');
  const { buildableKinds } = await import('./backends/drivers.ts');
  const { createLogger } = await import('./log.ts');
  const { runUntilStopped, startErrorOf } = await import('./commands/process.ts');
  try {
    const { settings, warnings } = parseServe(argv, process.env, { buildable: buildableKinds });
    const log = createLogger({ format: settings.logFormat, verbose: settings.verbose });
    for (const warning of warnings) log.warn(warning);
    const { serve } = await import('./commands/serve.ts');
    const served = await serve(settings, log, process.env);
    setFlagsFromString('--semi-space-growth-factor=2');
    await runUntilStopped(served, log);
  } catch (error) {
    const problem = error instanceof ConfigError ? error.message : startErrorOf(error);
    if (problem === undefined) throw error;
    console.error(problem);
    process.exitCode = 2;
  }
}
