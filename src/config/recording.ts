/** The settings of `model-manager record`, `model-manager replay`, and of a demo that replays. */
import { type KserveFlags, kserveFlags } from './kserve.ts';
import { readFlags, readTable } from './parse.ts';
import { ConfigError, type ServeSettings, type Setting, serveSettings } from './settings.ts';
import { type Kind, namespaceName, optionalEndpoint, quote, type Read, reading, text } from './values.ts';

/** What can be told of the cluster besides: what the timeline depends on. */
const recordedFlags = [
  'discoveryNamespace',
  'discoveryConfigmap',
  'namespace',
  'gpuResource',
  'cacheClaim',
  'cacheNodes',
  'presetNamespace',
  'presetSelector',
  'scaleUpTimeout',
] as const satisfies readonly (keyof KserveFlags)[];

interface OwnSettings extends Pick<ServeSettings, 'kubeconfig' | 'kubeContext' | 'inCluster' | 'verbose'> {
  readonly server: string | undefined;
  readonly namespace: string;
  readonly output: string;
}

export interface RecordSettings extends Omit<OwnSettings, 'namespace'> {
  /** Name of an object, or of the model that it serves. */
  readonly reference: string;
  readonly kserve: KserveFlags;
}

const file: Kind<string> = { ...text, placeholder: 'FILE' };

const ownSettings: { readonly [Name in keyof OwnSettings]: Setting<OwnSettings[Name]> } = {
  namespace: {
    group: 'KServe',
    flag: 'namespace',
    variables: [],
    kind: namespaceName,
    default: '',
    defaultMeans: 'as discovered, else model-serving',
    help: 'The namespace models are served in; the same as --kserve-namespace.',
  },
  output: {
    group: 'KServe',
    flag: 'output',
    variables: [],
    kind: file,
    default: '',
    defaultMeans: 'a new one in this folder, named by the object and the time',
    help: 'The file to write; one that is there is not overwritten.',
  },
  kubeconfig: { ...serveSettings.kubeconfig, defaultMeans: '~/.kube/config' },
  kubeContext: serveSettings.kubeContext,
  inCluster: serveSettings.inCluster,
  server: {
    group: 'Kubernetes',
    flag: 'server',
    variables: [],
    kind: optionalEndpoint,
    default: '',
    defaultMeans: 'none',
    help: 'An API server that asks nobody who they are: that of the demo, or `kubectl proxy`. No kubeconfig is read then.',
  },
  verbose: serveSettings.verbose,
};

export const recordSettings: readonly Setting[] = [
  ...Object.values<Setting>(ownSettings),
  ...recordedFlags.map(
    (name): Setting =>
      name === 'discoveryNamespace'
        ? { ...kserveFlags[name], defaultMeans: 'that of served models' }
        : kserveFlags[name],
  ),
];

/**
 * @param argv what follows the word `record`
 * @throws ConfigError with everything that is wrong
 */
export function parseRecord(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): { readonly settings: RecordSettings; readonly warnings: readonly string[] } {
  const problems: string[] = [];
  const warnings: string[] = [];
  const words: string[] = [];
  const flags = readFlags(argv, recordSettings, problems, words);
  const own = readTable(ownSettings, flags, env, problems, warnings) as unknown as OwnSettings;
  // All others have their default, whatever variables say: nothing on record depends on them.
  const given = Object.fromEntries(
    recordedFlags.flatMap(name => kserveFlags[name].variables.map(each => [each, env[each]])),
  );
  const kserve = readTable(kserveFlags, flags, given, problems, warnings) as unknown as KserveFlags;
  const { namespace, ...settings } = own;
  const reference = theWord(words, 'the object or model to record', 'record nova-4b', problems);
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return {
    settings: { ...settings, reference, kserve: namespace === '' ? kserve : { ...kserve, namespace } },
    warnings,
  };
}

/** How many times as fast; Infinity: all at once. */
function readSpeed(text: string): Read<number> {
  if (text === 'max') return { value: Number.POSITIVE_INFINITY };
  const times = /^(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isNaN(times)) return { value: times === 0 ? Number.POSITIVE_INFINITY : times };
  return { problem: `${quote(text)} is no speed; write how many times as fast, such as 20 or 0.5, or max` };
}

const speed: Kind<number> = { placeholder: 'N', check: reading(readSpeed) };

/** Undefined: as is usual for what is played. */
const demoSpeed: Kind<number | undefined> = {
  placeholder: 'N',
  check: reading<number | undefined>(text => (text === 'auto' ? { value: undefined } : readSpeed(text))),
};

export interface ReplaySettings {
  readonly speed: number;
}

const speedSetting: Setting<number> = {
  group: 'KServe',
  flag: 'speed',
  variables: [],
  kind: speed,
  default: '20',
  help:
    'How many times as fast as it happened, but that a span of which nothing is told is cut to 3 seconds; max, or 0, ' +
    'shows all of it at once.',
};

const demoSpeedSetting: Setting<number | undefined> = {
  ...speedSetting,
  kind: demoSpeed,
  default: 'auto',
  help:
    'How many times as fast as it happened, but that a span in which nothing changes is cut to 10 seconds; max, or 0, is ' +
    'all at once. auto plays the whole within a minute, or as it happened where that took less. It begins when the ' +
    'page has been up for 5 seconds.',
};

export const replaySettings: { readonly [Name in keyof ReplaySettings]: Setting<ReplaySettings[Name]> } = {
  speed: speedSetting,
};

/**
 * @param argv what follows the word `replay`
 * @throws ConfigError with everything that is wrong
 */
export function parseReplay(argv: readonly string[]): ReplaySettings & { readonly file: string } {
  const problems: string[] = [];
  const words: string[] = [];
  const flags = readFlags(argv, Object.values<Setting>(replaySettings), problems, words);
  const { speed } = readTable(replaySettings, flags, {}, problems, []) as unknown as ReplaySettings;
  const file = theWord(words, 'the file of the recording', 'replay nova-4b.yaml', problems);
  if (problems.length > 0) throw new ConfigError([...new Set(problems)]);
  return { file, speed };
}

/** The one word of a command line that is no flag. */
function theWord(words: readonly string[], what: string, example: string, problems: string[]): string {
  const [word = '', ...others] = words;
  if (word === '') problems.push(`${what} is missing; write it as in model-manager ${example}`);
  for (const other of others)
    problems.push(`${quote(other)} is one word too many; the command takes ${quote(word)} alone`);
  return word;
}

export const demoSettings: readonly Setting[] = [
  {
    group: 'KServe',
    flag: 'replay',
    variables: [],
    kind: file,
    default: '',
    defaultMeans: 'none',
    help: 'Serve a model in the made-up cluster as this recording has it.',
  },
  demoSpeedSetting,
];

/**
 * What of the demo's command line is about a recording, and the rest of it.
 *
 * @throws ConfigError with everything that is wrong
 */
export function parseDemo(argv: readonly string[]): {
  readonly replay: { readonly file: string; readonly speed: number | undefined } | undefined;
  readonly rest: readonly string[];
} {
  const isOurs = (word: string | undefined) => /^--?(replay|speed)(=|$)/.test(word ?? '');
  const isValue = (index: number) => isOurs(argv[index - 1]) && !argv[index - 1]?.includes('=');
  const ours = argv.filter((word, index) => isOurs(word) || isValue(index));
  const rest = argv.filter((word, index) => !isOurs(word) && !isValue(index));
  const problems: string[] = [];
  const flags = readFlags(ours, demoSettings, problems);
  const table = { file: demoSettings[0] as Setting, speed: demoSpeedSetting };
  const { file, speed } = readTable(table, flags, {}, problems, []) as { file: string; speed?: number };
  if (problems.length === 0 && file === '' && flags.has('speed')) {
    problems.push('--speed is of a recording; name one with --replay FILE');
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return { replay: file === '' ? undefined : { file, speed }, rest };
}
