/**
 * The settings of `model-manager serve`: one table of flags, variables, defaults and checks.
 *
 * Parsing, `--help` and the README's configuration table all come from it. A flag wins over its variables, an empty
 * variable counts as unset. To add a setting, add its type to `ServeSettings` and its row to `serveSettings`.
 */
import { parseArgs } from 'node:util';
import type { BackendKind } from '../domain.ts';
import {
  address,
  backendName,
  backendNames,
  boolean,
  duration,
  endpoint,
  type Kind,
  keepAlive,
  type ListenAddress,
  nearest,
  oneOf,
  optionalAddress,
  path,
  quote,
  text,
} from './values.ts';

export interface ServeSettings {
  readonly listen: ListenAddress;
  readonly metricsListen: ListenAddress | undefined;
  /** As given; `backends` has it too. */
  readonly backend: BackendKind | undefined;
  /** The static backends; the first is the default backend. */
  readonly backends: readonly BackendKind[];
  readonly discover: boolean;
  readonly ollamaEndpoint: string;
  readonly ollamaAgentHost: string;
  readonly ollamaMemoryBudgetGib: string;
  readonly lemonadeEndpoint: string;
  readonly lemonadeAgentHost: string;
  readonly lmstudioEndpoint: string;
  readonly lmstudioAgentHost: string;
  /** Sent to LM Studio as a bearer token; empty for none. */
  readonly lmstudioApiToken: string;
  readonly defaultKeepAlive: string;
  /** Milliseconds. */
  readonly jobRetention: number;
  readonly graphiql: boolean;
  readonly mcpEnabled: boolean;
  readonly mcpPath: string;
  readonly logFormat: LogFormat;
  readonly verbose: boolean;
}

const logFormats = ['auto', 'json', 'text'] as const;
export type LogFormat = (typeof logFormats)[number];

export interface Setting<T = unknown> {
  readonly group: (typeof settingGroups)[number];
  readonly flag: string;
  /** The first one that is not empty counts. */
  readonly variables: readonly string[];
  readonly kind: Kind<T>;
  /** In the words one would write on the command line. */
  readonly default: string;
  /** What to show as the default, where its own words would not tell. */
  readonly defaultMeans?: string;
  /** One sentence. */
  readonly help: string;
}

export const settingGroups = [
  'Backends',
  'Ollama',
  'Lemonade',
  'LM Studio',
  'Server',
  'Interfaces',
  'Models and jobs',
  'Logs',
] as const;

export const isSwitch = (setting: Setting) => setting.kind.placeholder === '';

/** Not checked as an endpoint: it is passed on to agents, who may have spellings of their own. */
const agentHost: Kind<string> = { ...text, placeholder: 'URL' };

/** Every setting, in the order people read them. */
export const serveSettings: { readonly [Name in keyof ServeSettings]: Setting<ServeSettings[Name]> } = {
  discover: {
    group: 'Backends',
    flag: 'discover',
    variables: [],
    kind: boolean,
    default: 'false',
    help: 'Look for model servers on the usual ports of this machine and serve those that answer.',
  },
  backends: {
    group: 'Backends',
    flag: 'backends',
    variables: ['MODEL_MANAGER_BACKENDS'],
    kind: backendNames,
    default: '',
    defaultMeans: 'none',
    help: 'The backends to serve, separated by commas; a request that names no backend means the first.',
  },
  backend: {
    group: 'Backends',
    flag: 'backend',
    variables: ['MODEL_MANAGER_BACKEND'],
    kind: backendName,
    default: '',
    defaultMeans: 'none',
    help: 'The one backend to serve; beside --backends it must be in that list.',
  },
  ollamaEndpoint: {
    group: 'Ollama',
    flag: 'ollama-endpoint',
    variables: ['OLLAMA_ENDPOINT'],
    kind: endpoint,
    default: 'http://127.0.0.1:11434',
    help: 'Where Ollama answers, as an http or https URL.',
  },
  ollamaAgentHost: {
    group: 'Ollama',
    flag: 'ollama-agent-host',
    variables: ['OLLAMA_AGENT_HOST'],
    kind: agentHost,
    default: '',
    defaultMeans: 'the endpoint',
    help: 'Where agents reach Ollama, if not at the endpoint.',
  },
  ollamaMemoryBudgetGib: {
    group: 'Ollama',
    flag: 'ollama-memory-budget-gib',
    variables: ['MODEL_MANAGER_OLLAMA_MEMORY_BUDGET_GIB'],
    // Stays text: a budget that makes no sense is reported on the node it belongs to.
    kind: { ...text, placeholder: 'GIB' },
    default: '',
    defaultMeans: 'the memory of this machine',
    help: 'How much memory models may take on the Ollama machine, in GiB.',
  },
  lemonadeEndpoint: {
    group: 'Lemonade',
    flag: 'lemonade-endpoint',
    variables: ['LEMONADE_ENDPOINT'],
    kind: endpoint,
    default: 'http://127.0.0.1:13305',
    help: 'Where Lemonade Server answers, as an http or https URL.',
  },
  lemonadeAgentHost: {
    group: 'Lemonade',
    flag: 'lemonade-agent-host',
    variables: ['LEMONADE_AGENT_HOST'],
    kind: agentHost,
    default: '',
    defaultMeans: 'the endpoint',
    help: 'Where agents reach Lemonade, if not at the endpoint; /api/v1 is added to it.',
  },
  lmstudioEndpoint: {
    group: 'LM Studio',
    flag: 'lmstudio-endpoint',
    variables: ['LMSTUDIO_ENDPOINT'],
    kind: endpoint,
    default: 'http://127.0.0.1:1234',
    help: 'Where LM Studio answers, as an http or https URL.',
  },
  lmstudioAgentHost: {
    group: 'LM Studio',
    flag: 'lmstudio-agent-host',
    variables: ['LMSTUDIO_AGENT_HOST'],
    kind: agentHost,
    default: '',
    defaultMeans: 'the endpoint',
    help: 'Where agents reach LM Studio, if not at the endpoint; /v1 is added to it.',
  },
  lmstudioApiToken: {
    group: 'LM Studio',
    flag: 'lmstudio-api-token',
    variables: ['LMSTUDIO_API_TOKEN'],
    kind: { ...text, placeholder: 'TOKEN' },
    default: '',
    defaultMeans: 'none',
    help: 'The API token that LM Studio asks for, where it does; better given as the variable, which nobody can list.',
  },
  listen: {
    group: 'Server',
    flag: 'listen',
    variables: ['MODEL_MANAGER_LISTEN'],
    kind: address,
    default: ':8080',
    help: 'The address to listen on; :8080 is every interface, 127.0.0.1:8080 this machine only, port 0 any free port.',
  },
  metricsListen: {
    group: 'Server',
    flag: 'metrics-listen',
    variables: ['MODEL_MANAGER_METRICS_LISTEN'],
    kind: optionalAddress,
    default: '',
    defaultMeans: 'off',
    help: 'Serve Prometheus metrics at /metrics on an address of their own, such as :9464.',
  },
  graphiql: {
    group: 'Interfaces',
    flag: 'graphiql',
    variables: ['MODEL_MANAGER_GRAPHIQL'],
    kind: boolean,
    default: 'true',
    help: 'Serve the GraphiQL page to browsers at /graphql.',
  },
  mcpEnabled: {
    group: 'Interfaces',
    flag: 'mcp-enabled',
    variables: ['MODEL_MANAGER_MCP_ENABLED'],
    kind: boolean,
    default: 'true',
    help: 'Serve the MCP tools.',
  },
  mcpPath: {
    group: 'Interfaces',
    flag: 'mcp-path',
    variables: ['MODEL_MANAGER_MCP_PATH'],
    kind: path,
    default: '/mcp',
    help: 'The path the MCP tools are served at.',
  },
  defaultKeepAlive: {
    group: 'Models and jobs',
    flag: 'default-keep-alive',
    variables: ['MODEL_MANAGER_DEFAULT_KEEP_ALIVE'],
    kind: keepAlive,
    default: '5m',
    help: 'How long an idle model stays in memory if its load did not say: a duration, seconds, or -1 for good.',
  },
  jobRetention: {
    group: 'Models and jobs',
    flag: 'job-retention',
    variables: ['MODEL_MANAGER_JOB_RETENTION'],
    kind: duration,
    default: '24h',
    help: 'How long finished jobs stay listed (200 at most).',
  },
  logFormat: {
    group: 'Logs',
    flag: 'log-format',
    variables: ['MODEL_MANAGER_LOG_FORMAT'],
    kind: oneOf(logFormats, 'FORMAT'),
    default: 'auto',
    help: 'json for machines, text for people; auto is text on a terminal and json elsewhere.',
  },
  verbose: {
    group: 'Logs',
    flag: 'verbose',
    variables: [],
    kind: boolean,
    default: 'false',
    help: 'Log what happens behind the scenes, too.',
  },
};

/** Settings that cannot be used. `problems` has one sentence each. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.length === 1 ? problems[0] : problems.map(problem => `- ${problem}`).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}

export interface ParsedServe {
  readonly settings: ServeSettings;
  /** One line each for the log: variables that were not understood and gave way to their default. */
  readonly warnings: readonly string[];
}

/**
 * The settings of one start.
 *
 * @param argv what follows the word `serve`
 * @param buildable the backends this build has a driver for
 * @throws ConfigError with everything that is wrong, not only the first
 */
export function parseServe(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  { buildable }: { buildable: readonly BackendKind[] },
): ParsedServe {
  const problems: string[] = [];
  const warnings: string[] = [];
  const flags = readFlags(argv, problems);

  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries<Setting>(serveSettings)) {
    values[name] = readSetting(setting, flags, env, problems, warnings);
  }
  // Every key of the table was read with its own check.
  const read = values as unknown as ServeSettings;

  const settings = {
    ...read,
    backends: read.backends.length === 0 && read.backend !== undefined ? [read.backend] : read.backends,
  };
  if (read.backend !== undefined && !settings.backends.includes(read.backend)) {
    problems.push(`--backend ${read.backend} is not in --backends ${read.backends.join(',')}; add it there or drop it`);
  }
  for (const name of settings.backends) {
    if (buildable.includes(name)) continue;
    const flag = read.backends.length === 0 ? '--backend' : '--backends';
    problems.push(`${flag} ${name} is not in this version yet; it has ${buildable.join(', ') || 'none'}`);
  }
  if (sameAddress(settings.listen, settings.metricsListen)) {
    problems.push('--metrics-listen is the address of --listen; give the metrics a port of their own, such as :9464');
  }

  // Once each: a cluster of short flags such as -123 is one word, but parsed as three.
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return { settings, warnings };
}

function sameAddress(one: ListenAddress, other: ListenAddress | undefined): boolean {
  return other !== undefined && one.port !== 0 && one.port === other.port && one.host === other.host;
}

/** One setting's value from its flag, else its variables, else its default. */
function readSetting(
  setting: Setting,
  flags: ReadonlyMap<string, string>,
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
  warnings: string[],
): unknown {
  const { check, lenient } = setting.kind;
  const flagged = flags.get(setting.flag);
  const variable = setting.variables.find(name => (env[name] ?? '').trim() !== '');
  const given = flagged ?? (variable === undefined ? undefined : env[variable]);

  if (given !== undefined) {
    const checked = check.safeParse(given.trim());
    if (checked.success) return checked.data;
    const problem = checked.error.issues.map(issue => issue.message).join('; ');
    if (flagged !== undefined) problems.push(`--${setting.flag} ${problem}`);
    else if (lenient) warnings.push(`${variable} ${problem}; using the default ${setting.default}`);
    else problems.push(`--${setting.flag} ${problem} (from ${variable})`);
  }
  // After a problem too: the checks across settings still run, and report no follow-up.
  return check.parse(setting.default);
}

/** Flag → text as written, for the flags of the table. Everything else on the command line is a problem. */
function readFlags(argv: readonly string[], problems: string[]): Map<string, string> {
  const settings = new Map(Object.values<Setting>(serveSettings).map(setting => [setting.flag, setting]));
  const { tokens } = parseArgs({
    // Go's spelling has one dash. A value such as `-1` has no letter after it and is left alone.
    args: argv.map(word => (/^-[a-z]/i.test(word) ? `-${word}` : word)),
    options: Object.fromEntries(
      [...settings].map(([flag, setting]) => [flag, { type: isSwitch(setting) ? 'boolean' : 'string' } as const]),
    ),
    strict: false, // our own sentences are clearer, and it reports the first problem only
    tokens: true,
  });

  const flags = new Map<string, string>();
  let unknownAt = -2; // the word after an unknown flag is probably its value: one complaint is enough
  for (const token of tokens) {
    if (token.kind === 'positional') {
      if (token.index !== unknownAt + 1) problems.push(unexpectedWord(token.value, argv[token.index - 1]));
      continue;
    }
    if (token.kind === 'option-terminator') continue;

    const setting = settings.get(token.name);
    if (setting === undefined) {
      const near = nearest(token.name, [...settings.keys()]);
      const hint = near === undefined ? '' : `; did you mean --${near}?`;
      problems.push(`${(argv[token.index] as string).split('=', 1)[0]} is not a setting${hint}`);
      if (!token.inlineValue) unknownAt = token.index;
      continue;
    }
    const value = token.value ?? (isSwitch(setting) ? 'true' : undefined);
    if (value === undefined || (!token.inlineValue && value.startsWith('--'))) {
      const example = setting.default === '' ? setting.kind.placeholder : setting.default;
      problems.push(`--${setting.flag} needs a value, as in --${setting.flag} ${example}`);
      continue;
    }
    flags.set(setting.flag, value);
  }
  return flags;
}

function unexpectedWord(word: string, before: string | undefined): string {
  const hint = /^-/.test(before ?? '') && /^(true|false)$/i.test(word) ? `; did you mean ${before}=${word}?` : '';
  return `${quote(word)} is not a setting${hint}`;
}
