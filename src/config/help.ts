/** What the command line says about itself, and the README's configuration table. */
import { cacheAgentSettings } from './cacheAgent.ts';
import { demoSettings, recordSettings, replaySettings } from './recording.ts';
import { allSettings, isSwitch, type Setting, settingGroups } from './settings.ts';

const examples = [
  ['model-manager serve --discover', 'Serve what runs on this machine; then open http://localhost:8080/graphql.'],
  [
    'model-manager serve --backend ollama --ollama-endpoint http://gpu-box:11434',
    'Serve the Ollama of another machine.',
  ],
  [
    'model-manager serve --backends kserve --kubeconfig ~/.kube/config',
    'Serve a GPU cluster; --kserve-discovery-namespace says where it is described.',
  ],
  ['MODEL_MANAGER_LISTEN=127.0.0.1:9000 model-manager serve --discover', 'Let nothing but this machine in.'],
] as const;

/** `model-manager --help`. */
export function topHelp(width = 90): string {
  const rows = (all: readonly (readonly [string, string])[]) => all.flatMap(row => columns(row, 15, width));
  return lines(
    ...wrap('model-manager serves all your model servers as one live graph: GraphQL, REST and MCP.', width),
    '',
    'Usage: model-manager <command> [settings]',
    '',
    'Commands:',
    ...rows([
      ['serve', 'Serve your model servers; its settings are in `model-manager serve --help`.'],
      ['demo', 'Serve a made-up world of models: nothing to install, nothing to break.'],
      ['record', 'Put on record how a model comes up in a cluster, in a file without secrets.'],
      ['replay', 'Play such a file in the terminal, as fast as you like.'],
      ['cache-agent', 'Count the cache of models on a node of a cluster, for a gateway that asks.'],
      ['schema', 'Write what is generated from this source tree: schema and documents; for maintainers.'],
    ]),
    '',
    'Options:',
    ...rows([
      ['--help', 'Print this help, or the help of the command before it.'],
      ['--version', 'Print the version.'],
    ]),
    '',
    'To look around:                model-manager demo',
    'With a model server running:   model-manager serve --discover',
  );
}

/** `model-manager demo --help`. */
export function demoHelp(width = 90): string {
  const room = Math.min(Math.max(width, 60), 100);
  return lines(
    ...wrap(
      'Serve a made-up Ollama, Lemonade and LM Studio on this machine, and a made-up cluster with kagent and ' +
        'KServe. Their day repeats every two minutes. What to try there is printed when it has started.',
      width,
    ),
    '',
    'Usage: model-manager demo [--replay FILE [--speed N]] [settings]',
    '',
    'Examples:',
    '  model-manager demo',
    '      Then open http://127.0.0.1:8080/graphql.',
    '  model-manager demo --replay nova-4b.yaml',
    '      Watch there how that model came up.',
    '',
    ...demoSettings.flatMap(describer(demoSettings, room)),
    '',
    ...wrap(
      'It listens on 127.0.0.1:8080; choose another address with --listen. All settings of `model-manager serve` apply ' +
        'but those that name backends or a cluster; its variables do not.',
      width,
    ),
  );
}

/** `model-manager record --help`. */
export function recordHelp(width = 90): string {
  const room = Math.min(Math.max(width, 60), 100);
  return lines(
    ...wrap(
      'Put on record how a model comes up in a cluster: one YAML file with the objects that its progress is told from, ' +
        'each time that one of them changes. Secrets are left out. A line is printed each time that it gets further.',
      room,
    ),
    '',
    'Usage: model-manager record OBJECT|MODEL [settings]',
    '',
    'Examples:',
    '  model-manager record nova-4b --kserve-discovery-namespace agent-platform --output nova-4b.yaml',
    '      The namespace is that of the ConfigMap in which the platform publishes how models are served.',
    '  model-manager record qwen2-5-7b-x2 --server http://127.0.0.1:8090 \\',
    '    --kserve-discovery-namespace agent-platform',
    '      Record a model of the demo that runs meanwhile.',
    '',
    ...wrap(
      'It waits for an LLMInferenceService of that name, or one that serves that model. It ends when the model is ready, ' +
        'when it failed and came no further for 10 minutes, when the object is gone, or with Ctrl-C; the file is complete in any case. ' +
        'What must not be read is on record as refused. Look at the file before you give it away.',
      room,
    ),
    '',
    ...recordSettings.flatMap(describer(recordSettings, room)),
  );
}

/** `model-manager replay --help`. */
export function replayHelp(width = 90): string {
  const room = Math.min(Math.max(width, 60), 100);
  const settings = Object.values<Setting>(replaySettings);
  return lines(
    ...wrap(
      'Play a recording in the terminal: a line for each step that a model took on its way to its first answer, and how ' +
        'long each took. Nothing else is needed, and nothing is asked of any cluster.',
      room,
    ),
    '',
    'Usage: model-manager replay FILE [--speed N]',
    '',
    'Examples:',
    '  model-manager replay nova-4b.yaml',
    '  model-manager replay nova-4b.yaml --speed max',
    '',
    ...settings.flatMap(describer(settings, room)),
  );
}

/** `model-manager schema --help`. */
export const schemaHelp = (width = 90): string =>
  lines(
    ...wrap(
      'Write what is generated from the code of this source tree: schema/schema.graphql, the graph; schema/openapi.yaml, ' +
        'the REST routes; docs/reasons.md, what reasons mean. For maintainers: the tests say when one of them is stale.',
      Math.min(Math.max(width, 60), 100),
    ),
    '',
    'Usage: model-manager schema',
    '',
    'It has no settings.',
  );

/** `model-manager cache-agent --help`. */
export function cacheAgentHelp(width = 90): string {
  const room = Math.min(Math.max(width, 60), 100);
  const settings = Object.values<Setting>(cacheAgentSettings);
  return lines(
    ...wrap(
      'Count what is in the cache of models on this node, whenever a gateway with --kserve-inventory-mode daemonset asks.',
      room,
    ),
    '',
    'Usage: model-manager cache-agent --node NAME [settings]',
    '',
    ...settings.flatMap(describer(settings, room)),
  );
}

/** `model-manager serve --help`. */
export function serveHelp(width = 90): string {
  const room = Math.min(Math.max(width, 60), 100);
  const described = describer(allSettings, room);
  return lines(
    ...wrap('Serve all your model servers as one live graph: GraphQL, REST and MCP.', room),
    '',
    'Usage: model-manager serve [settings]',
    '',
    'Examples:',
    ...examples.flatMap(([command, meaning]) => [`  ${command}`, ...columns(['', meaning], 6, room)]),
    '',
    ...wrap(
      'Give a setting as a flag or as the environment variable named beside it. The flag wins, and an empty ' +
        'variable counts as unset. A switch that is on is turned off with =false. Durations read 30s, 10m or 1h30m.',
      room,
    ),
    ...settingGroups.flatMap(group => [
      '',
      `${group}:`,
      ...allSettings.filter(setting => setting.group === group).flatMap(described),
    ]),
  );
}

/** Describes settings in two columns that fit all of them. */
function describer(settings: readonly Setting[], room: number) {
  const column = Math.max(...settings.map(setting => spelling(setting).length).filter(each => each <= longest)) + 4;
  return (setting: Setting) => {
    const texts = [setting.help, origin(setting)];
    const words = texts.flatMap(text => text.split(' ')).map(word => word.length);
    if (spelling(setting).length <= longest && Math.max(...words) <= room - column) {
      return texts.flatMap((text, index) => columns([index === 0 ? spelling(setting) : '', text], column, room));
    }
    // What is too long for its column has lines of its own.
    const below = texts.flatMap(text => columns(['', loosened(text, room - 4)], 4, room));
    return [`  ${spelling(setting)}`, ...below];
  };
}

/** The README's table of settings, in Markdown. */
export function configurationTable(): string {
  const cell = (text: string) => text.replaceAll('|', '\\|');
  const code = (text: string) => `\`${text}\``;
  const rows = allSettings.map(setting => [
    code(`--${setting.flag}`),
    setting.variables.map(code).join(', else ') || '–',
    setting.defaultMeans ?? code(setting.default),
    setting.help,
  ]);
  return lines(
    ...[['Flag', 'Variable', 'Default', 'Meaning'], ['---', '---', '---', '---'], ...rows].map(
      row => `| ${row.map(cell).join(' | ')} |`,
    ),
  );
}

/** Characters of a flag that has its help beside it. */
const longest = 30;
const spelling = (setting: Setting) => `--${setting.flag} ${setting.kind.placeholder}`.trimEnd();

/** `[default: :8080] [env: MODEL_MANAGER_LISTEN]`, with hard spaces inside the brackets so that they wrap whole. */
function origin(setting: Setting): string {
  const shown = isSwitch(setting) ? { true: 'on', false: 'off' }[setting.default] : setting.defaultMeans;
  const parts = [`[default: ${shown ?? setting.default}]`];
  if (setting.variables.length > 0) parts.push(`[env: ${setting.variables.join(', ')}]`);
  return parts.map(part => part.replaceAll(' ', hardSpace)).join(' ');
}

const hardSpace = '\u00a0';

/** What has hard spaces and is wider than the room is wrapped like anything else. */
const loosened = (text: string, room: number) =>
  text
    .split(' ')
    .map(word => (word.length > room ? word.replaceAll(hardSpace, ' ') : word))
    .join(' ');

const lines = (...all: readonly string[]) => `${all.join('\n')}\n`;

/** Two columns; the right one is wrapped, and never begins left of its place. */
function columns([left, right]: readonly [string, string], at: number, width: number): string[] {
  return wrap(right, width - at).map((line, index) => (index === 0 ? `  ${left}`.padEnd(at) : ' '.repeat(at)) + line);
}

function wrap(text: string, width: number): string[] {
  const wrapped: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      wrapped.push(line);
      line = '';
    }
    line += line === '' ? word : ` ${word}`;
  }
  return [...wrapped, line].map(line => line.replaceAll(hardSpace, ' '));
}
