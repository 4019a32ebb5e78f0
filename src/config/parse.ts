/** From a command line and its environment to settings. A flag wins over its variables, an empty variable counts as unset. */
import { parseArgs } from 'node:util';
import type { BackendKind } from '../domain.ts';
import { type CacheAgentSettings, cacheAgentSettings } from './cacheAgent.ts';
import { kserveFlags } from './kserve.ts';
import { limitSettings } from './limits.ts';
import { oauthFlags, oauthProblems, oauthWarnings } from './oauth.ts';
import { allSettings, ConfigError, isSwitch, type ServeSettings, type Setting, serveSettings } from './settings.ts';
import { type ListenAddress, nearest, quote } from './values.ts';

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
  const flags = readFlags(argv, allSettings, problems);

  const valuesOf = (table: Readonly<Record<string, Setting>>) => readTable(table, flags, env, problems, warnings);
  const values: unknown = {
    ...valuesOf(serveSettings),
    kserve: valuesOf(kserveFlags),
    oauth: valuesOf(oauthFlags),
    limits: valuesOf(limitSettings),
  };
  // Every key of the table was read with its own check.
  const read = values as ServeSettings;

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

  problems.push(...jobStoreProblems(settings), ...oauthProblems(settings.oauth));
  warnings.push(...oauthWarnings(settings.oauth));

  // Once each: a cluster of short flags such as -123 is one word, but parsed as three.
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return { settings, warnings };
}

/**
 * The settings of the agent that counts a cache.
 *
 * @param argv what follows the word `cache-agent`
 * @throws ConfigError with everything that is wrong
 */
export function parseCacheAgent(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CacheAgentSettings {
  const problems: string[] = [];
  const flags = readFlags(argv, Object.values<Setting>(cacheAgentSettings), problems);
  const settings = readTable(cacheAgentSettings, flags, env, problems, []) as unknown as CacheAgentSettings;
  if (settings.node === '') problems.push('--node is missing; it names the node that this runs on');
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return settings;
}

/** The values of a table, each read with its own check. */
export const readTable = (
  table: Readonly<Record<string, Setting>>,
  flags: ReadonlyMap<string, string>,
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
  warnings: string[],
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(table).map(([name, setting]) => [name, readSetting(setting, flags, env, problems, warnings)]),
  );

/** Shared jobs are objects in the gateway's namespace, which the gateway itself has to write. */
function jobStoreProblems({ jobStore, namespace, inCluster, kubeconfig, oauth }: ServeSettings): readonly string[] {
  if (jobStore !== 'kubernetes') return [];
  const flag = '--job-store kubernetes';
  return [
    ...(inCluster || kubeconfig !== '' ? [] : [`${flag} needs a cluster: add --kubeconfig or --in-cluster`]),
    ...(namespace !== '' ? [] : [`${flag} needs --namespace: jobs are kept there`]),
    ...(oauth.downstream
      ? [`${flag} cannot go with --downstream-oauth: jobs outlive the tokens of who asked; keep them in memory`]
      : []),
  ];
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

/**
 * Flag → text as written, for the flags of the table. Everything else on the command line is a problem, but words that are
 * no flags where `words` takes them.
 */
export function readFlags(
  argv: readonly string[],
  known: readonly Setting[],
  problems: string[],
  words?: string[],
): Map<string, string> {
  const settings = new Map(known.map(setting => [setting.flag, setting]));
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
      if (token.index === unknownAt + 1) continue;
      if (words) words.push(token.value);
      else problems.push(unexpectedWord(token.value, argv[token.index - 1]));
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
