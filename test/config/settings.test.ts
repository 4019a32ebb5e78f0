import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { buildableKinds } from '../../src/backends/drivers.ts';
import {
  cacheAgentHelp,
  configurationTable,
  demoHelp,
  recordHelp,
  replayHelp,
  schemaHelp,
  serveHelp,
  topHelp,
} from '../../src/config/help.ts';
import { defaultLimits } from '../../src/config/limits.ts';
import { parseServe } from '../../src/config/parse.ts';
import { allSettings, ConfigError } from '../../src/config/settings.ts';
import { parseDuration, parseListen } from '../../src/config/values.ts';
import { flagsOf } from '../drivers/kserve/world.ts';

type Env = Record<string, string>;
const all = allSettings;
const parse = (argv: string[], env: Env = {}) => parseServe(argv, env, { buildable: ['ollama', 'lmstudio'] });
const settingsOf = (argv: string[], env: Env = {}) => parse(argv, env).settings;

function problemsOf(argv: string[], env: Env = {}): readonly string[] {
  try {
    parse(argv, env);
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.problems;
  }
  throw new assert.AssertionError({ message: `accepted ${argv.join(' ')}` });
}

describe('settings', () => {
  test('without flags and variables every setting has its default', () => {
    assert.deepEqual(parse([]), {
      settings: {
        listen: { host: undefined, port: 8080 },
        metricsListen: undefined,
        backend: undefined,
        backends: [],
        discover: false,
        ollamaEndpoint: 'http://127.0.0.1:11434',
        ollamaAgentHost: '',
        lemonadeEndpoint: 'http://127.0.0.1:13305',
        lemonadeAgentHost: '',
        lmstudioEndpoint: 'http://127.0.0.1:1234',
        lmstudioAgentHost: '',
        lmstudioApiToken: '',
        ollamaMemoryBudgetGib: '',
        defaultKeepAlive: '5m',
        jobStore: 'memory',
        jobRetention: 86_400_000,
        kubeconfig: '',
        kubeContext: '',
        inCluster: false,
        namespace: '',
        kagentNamespace: 'kagent',
        kagentApiVersion: 'auto',
        modelconfigPrefix: '',
        autoWire: true,
        disableWiring: false,
        reconcileInterval: 30_000,
        graphiql: true,
        introspection: undefined,
        allowedOrigins: [],
        mcpEnabled: true,
        mcpPath: '/mcp',
        logFormat: 'auto',
        auditLog: '',
        verbose: false,
        kserve: flagsOf(),
        limits: defaultLimits,
        oauth: {
          enable: false,
          baseUrl: '',
          provider: 'dex',
          dexIssuerUrl: '',
          dexClientId: '',
          dexClientSecret: false,
          dexCaFile: '',
          googleClientId: '',
          googleClientSecret: false,
          trustedAudiences: [],
          allowPrivateUrls: false,
          ssoAllowPrivateIps: false,
          allowPublicClientRegistration: false,
          downstream: false,
          downstreamApiServers: [],
        },
      },
      warnings: [],
    });
  });

  test('a flag can be written in every usual way', () => {
    for (const argv of [
      ['--mcp-path', '/tools'],
      ['--mcp-path=/tools'],
      ['-mcp-path', '/tools'],
      ['-mcp-path=/tools'],
      ['--mcp-path', '/other', '--mcp-path', '/tools'],
    ]) {
      assert.equal(settingsOf(argv).mcpPath, '/tools', argv.join(' '));
    }
  });

  test('a switch is on when named, and takes a value after =', () => {
    const cases: [string[], boolean][] = [
      [['--verbose'], true],
      [['-verbose'], true],
      [['--verbose=true'], true],
      [['--verbose=1'], true],
      [['--verbose=false'], false],
      [['-verbose=F'], false],
      [['--verbose', '--verbose=0'], false],
    ];
    for (const [argv, expected] of cases) assert.equal(settingsOf(argv).verbose, expected, argv.join(' '));
    assert.equal(settingsOf(['--graphiql=false']).graphiql, false);
  });

  test('a flag wins over its variable, and its variable over the default', () => {
    const env = { MODEL_MANAGER_JOB_RETENTION: '30m' };
    assert.equal(settingsOf([], env).jobRetention, 1_800_000);
    assert.equal(settingsOf(['--job-retention', '1h'], env).jobRetention, 3_600_000);
    assert.deepEqual(settingsOf(['--backends='], { MODEL_MANAGER_BACKENDS: 'ollama' }).backends, []);
  });

  test('an empty variable counts as unset', () => {
    for (const value of ['', '  ']) {
      const env = Object.fromEntries(all.flatMap(setting => setting.variables).map(name => [name, value]));
      assert.deepEqual(parse([], env), parse([]));
    }
  });

  test('blanks around a value do not count', () => {
    assert.equal(settingsOf([], { OLLAMA_ENDPOINT: ' http://box:11434/ ' }).ollamaEndpoint, 'http://box:11434');
  });

  test('a number, duration or switch in a variable that cannot be read gives way to the default, with a warning', () => {
    assert.deepEqual(
      parse([], {
        MODEL_MANAGER_JOB_RETENTION: 'soon',
        MODEL_MANAGER_MCP_ENABLED: 'yes',
        MODEL_MANAGER_DEFAULT_KEEP_ALIVE: 'five minutes',
      }),
      {
        ...parse([]),
        warnings: [
          'MODEL_MANAGER_MCP_ENABLED "yes" is neither true nor false; using the default true',
          'MODEL_MANAGER_DEFAULT_KEEP_ALIVE "five minutes" is not a keep-alive; write a duration such as 5m, a number of seconds, or -1; using the default 5m',
          'MODEL_MANAGER_JOB_RETENTION "soon" is not a duration; write one such as 30s, 10m or 1h30m; using the default 24h',
        ],
      },
    );
  });

  test('a variable that is not used is not complained about', () => {
    assert.deepEqual(parse(['--job-retention', '1h'], { MODEL_MANAGER_JOB_RETENTION: 'soon' }).warnings, []);
  });

  test('the memory budget stays as written, however odd', () => {
    for (const value of ['24', '1.5', 'lots', '-3']) {
      assert.equal(settingsOf(['--ollama-memory-budget-gib', value]).ollamaMemoryBudgetGib, value);
    }
  });

  test('a keep-alive is a duration or a number of seconds, and may be negative', () => {
    for (const value of ['5m', '-1', '300', '-1m', '1.5h']) {
      assert.equal(settingsOf(['--default-keep-alive', value]).defaultKeepAlive, value);
    }
  });

  test('a keep-alive that would unload every model at once is no default', () => {
    for (const value of ['0', '0s', '-0', '0h0m']) {
      assert.deepEqual(problemsOf(['--default-keep-alive', value]), [
        `--default-keep-alive "${value}" would unload every model at once; write a duration such as 5m, or -1`,
      ]);
    }
  });

  test('metrics are off unless an address is given', () => {
    assert.deepEqual(settingsOf(['--metrics-listen', ':9464']).metricsListen, { host: undefined, port: 9464 });
    const env = { MODEL_MANAGER_METRICS_LISTEN: ':9464' };
    assert.equal(settingsOf(['--metrics-listen='], env).metricsListen, undefined);
  });
});

describe('backends', () => {
  test('the list keeps its order and loses its blanks', () => {
    assert.deepEqual(settingsOf(['--backends', ' lmstudio, ollama,']).backends, ['lmstudio', 'ollama']);
  });

  test('a single backend is a list of one, and beside a list only has to be in it', () => {
    assert.deepEqual(settingsOf(['--backend', 'ollama']).backends, ['ollama']);
    assert.deepEqual(settingsOf(['--backend', 'ollama', '--backends', 'lmstudio,ollama']).backends, [
      'lmstudio',
      'ollama',
    ]);
  });

  test('a list that makes no sense stops the start, from a flag as from a variable', () => {
    const cases: [flags: string[], env: Env, problem: string][] = [
      [['--backends', 'ollama,ollama'], {}, '--backends lists ollama twice; name each backend once'],
      [
        [],
        { MODEL_MANAGER_BACKENDS: 'ollama, ollama' },
        '--backends lists ollama twice; name each backend once (from MODEL_MANAGER_BACKENDS)',
      ],
      [['--backends', 'Olama'], {}, '--backends does not know the backend "Olama"; did you mean ollama?'],
      [
        [],
        { MODEL_MANAGER_BACKEND: 'vllm' },
        '--backend does not know the backend "vllm"; known are ollama, lemonade, lmstudio, kserve (from MODEL_MANAGER_BACKEND)',
      ],
      [
        ['--backend', 'lmstudio'],
        { MODEL_MANAGER_BACKENDS: 'ollama' },
        '--backend lmstudio is not in --backends ollama; add it there or drop it',
      ],
      [['--backends', 'ollama,kserve'], {}, '--backends kserve is not in this version yet; it has ollama, lmstudio'],
      [['--backend', 'kserve'], {}, '--backend kserve is not in this version yet; it has ollama, lmstudio'],
    ];
    for (const [argv, env, problem] of cases) assert.deepEqual(problemsOf(argv, env), [problem]);
  });
});

describe('what cannot be used', () => {
  test('a bad flag is named with its value and the way out', () => {
    const cases: [argv: string[], problem: string][] = [
      [['--job-retention', 'soon'], '--job-retention "soon" is not a duration; write one such as 30s, 10m or 1h30m'],
      [['--job-retention', '-5m'], '--job-retention "-5m" is below zero'],
      [['--job-retention='], '--job-retention "" is not a duration; write one such as 30s, 10m or 1h30m'],
      [['--job-store', 'redis'], '--job-store "redis" is not one of memory, kubernetes'],
      [['--job-store', 'kubernetes', '--in-cluster'], '--job-store kubernetes needs --namespace: jobs are kept there'],
      [
        ['--job-store', 'kubernetes', '--namespace', 'models'],
        '--job-store kubernetes needs a cluster: add --kubeconfig or --in-cluster',
      ],
      [['--verbose=maybe'], '--verbose "maybe" is neither true nor false'],
      [['--log-format', 'xml'], '--log-format "xml" is not one of auto, json, text'],
      [
        ['--listen', '8080'],
        '--listen "8080" is a port without a colon; write :8080 for every interface or 127.0.0.1:8080',
      ],
      [['--mcp-path', 'mcp'], '--mcp-path "mcp" is not a path; write one such as /mcp'],
      [['--mcp-path', '/'], '--mcp-path "/" is not a path; write one such as /mcp'],
      [['--mcp-path', '/api/v1/mcp'], '--mcp-path "/api/v1/mcp" is taken; choose a path such as /mcp'],
      [
        ['--ollama-endpoint', 'localhost:11434'],
        '--ollama-endpoint must be an http(s) URL, got "localhost:11434"; write it as in http://localhost:11434',
      ],
      [
        ['--metrics-listen', ':8080'],
        '--metrics-listen is the address of --listen; give the metrics a port of their own, such as :9464',
      ],
    ];
    for (const [argv, problem] of cases) assert.deepEqual(problemsOf(argv), [problem]);
  });

  test('an address, endpoint or path in a variable stops the start too', () => {
    assert.deepEqual(problemsOf([], { MODEL_MANAGER_LISTEN: 'here' }), [
      '--listen "here" is not an address to listen on; write :8080, 127.0.0.1:8080 or [::1]:8080 (from MODEL_MANAGER_LISTEN)',
    ]);
  });

  test('an unknown word is met with the nearest setting', () => {
    const cases: [argv: string[], problem: string][] = [
      [['--backend-names', 'ollama'], '--backend-names is not a setting'],
      [['--backnds', 'ollama'], '--backnds is not a setting; did you mean --backends?'],
      [['-lisen=:80'], '-lisen is not a setting; did you mean --listen?'],
      [['--disc'], '--disc is not a setting; did you mean --discover?'],
      [['--zzz'], '--zzz is not a setting'],
      [['-123'], '-123 is not a setting'],
      [['--__proto__'], '--__proto__ is not a setting'],
      [['ollama'], '"ollama" is not a setting'],
      [['--', '--verbose'], '"--verbose" is not a setting'],
      [['--verbose', 'false'], '"false" is not a setting; did you mean --verbose=false?'],
    ];
    for (const [argv, problem] of cases) assert.deepEqual(problemsOf(argv), [problem]);
  });

  test('a setting without its value is not filled with the next setting', () => {
    assert.deepEqual(problemsOf(['--listen']), ['--listen needs a value, as in --listen :8080']);
    assert.deepEqual(problemsOf(['--backends', '--verbose']), ['--backends needs a value, as in --backends NAME,…']);
  });

  test('everything that is wrong is told at once', () => {
    const argv = ['--listen', '8080', '--verbos', '--log-format=xml'];
    const problems = problemsOf(argv, { MODEL_MANAGER_BACKENDS: 'ollama,ollama', MODEL_MANAGER_JOB_RETENTION: 'x' });
    assert.deepEqual(
      problems.map(problem => problem.split(' ')[0]),
      ['--verbos', '--backends', '--listen', '--log-format'],
    );
    assert.throws(() => parse(argv), {
      name: 'ConfigError',
      message: /^- --verbos .*\n- --listen .*\n- --log-format /,
    });
  });

  test('a password in an endpoint is not repeated', () => {
    for (const url of ['http://jane:hunter2@box:1', 'jane:hunter2@box:1', 'http:\\\\jane:hunter2@box']) {
      assert.doesNotMatch(problemsOf(['--ollama-endpoint', url]).join(), /hunter2/);
    }
  });
});

describe('values', () => {
  test('durations are read as Go reads them', () => {
    const cases: Record<string, number | undefined> = {
      '30s': 30_000,
      '10m': 600_000,
      '24h': 86_400_000,
      '1h30m': 5_400_000,
      '1.5h': 5_400_000,
      '.5s': 500,
      '5.s': 5000,
      '250ms': 250,
      '1500us': 1.5,
      '1500µs': 1.5,
      '1500μs': 1.5,
      '1m1m': 120_000,
      '0': 0,
      '-0': 0,
      '+2s': 2000,
      '-1m30s': -90_000,
      '': undefined,
      '5': undefined,
      s: undefined,
      '.s': undefined,
      '1d': undefined,
      '1 h': undefined,
      '1h-30m': undefined,
      '5M': undefined,
    };
    for (const [text, ms] of Object.entries(cases)) assert.equal(parseDuration(text), ms, text);
  });

  test('an address to listen on has a port, and a host if it is not for everyone', () => {
    const good: Record<string, [string | undefined, number]> = {
      ':8080': [undefined, 8080],
      ':0': [undefined, 0],
      '127.0.0.1:8080': ['127.0.0.1', 8080],
      '[::1]:8080': ['::1', 8080],
      'localhost:65535': ['localhost', 65_535],
      'my-box.example.com:80': ['my-box.example.com', 80],
    };
    for (const [text, [host, port]] of Object.entries(good)) {
      assert.deepEqual(parseListen(text), { value: { host, port } }, text);
    }
    const bad: Record<string, RegExp> = {
      '': /not an address/,
      '8080': /write :8080/,
      localhost: /not an address/,
      ':http': /not an address/,
      ':65536': /above 65535/,
      '::1:8080': /brackets/,
      '::1': /brackets/,
      '[localhost]:80': /no IPv6 address/,
      '999.0.0.1:80': /no host name/,
      'a b:80': /no host name/,
      'http://localhost:80': /brackets|not an address/,
    };
    for (const [text, problem] of Object.entries(bad)) {
      const read = parseListen(text);
      assert.ok('problem' in read, text);
      assert.match(read.problem, problem);
    }
  });
});

describe('help', () => {
  test('help and table name every setting with its variables and default', () => {
    const help = serveHelp();
    const rows = configurationTable().split('\n');
    for (const setting of all) {
      const row = rows.find(line => line.startsWith(`| \`--${setting.flag}\` |`)) ?? assert.fail(setting.flag);
      assert.ok(help.includes(`\n  --${setting.flag} `) || help.includes(`\n  --${setting.flag}\n`), setting.flag);
      for (const text of [...setting.variables, setting.defaultMeans ?? setting.default]) {
        assert.ok(row.includes(text), `${setting.flag}: ${text}`);
      }
      const variables = setting.variables.join(', ');
      if (variables !== '') assert.ok(help.includes(`[env: ${variables}]`), variables);
      assert.ok(help.replace(/\s+/g, ' ').includes(setting.help), setting.help);
    }
    assert.equal(rows.length, all.length + 3);
  });

  test('every default is a value its own check accepts', () => {
    for (const setting of all) assert.ok(setting.kind.check.safeParse(setting.default).success, setting.flag);
  });

  test('no line is wider than asked for, in 60 to 100 columns', () => {
    for (const [asked, width] of [
      [80, 80],
      [90, 90],
      [100, 100],
      [400, 100],
    ] as const) {
      const widest = Math.max(
        ...serveHelp(asked)
          .split('\n')
          .map(line => line.length),
      );
      assert.ok(widest <= width, `${widest} of ${width}`);
    }
  });

  test('the help of serve begins with what it does, how to call it and examples that work', () => {
    const help = serveHelp(90);
    assert.equal(
      help.slice(0, help.indexOf('\nOllama:')),
      `Serve all your model servers as one live graph: GraphQL, REST and MCP.

Usage: model-manager serve [settings]

Examples:
  model-manager serve --discover
      Serve what runs on this machine; then open http://localhost:8080/graphql.
  model-manager serve --backend ollama --ollama-endpoint http://gpu-box:11434
      Serve the Ollama of another machine.
  model-manager serve --backends kserve --kubeconfig ~/.kube/config
      Serve a GPU cluster; --kserve-discovery-namespace says where it is described.
  MODEL_MANAGER_LISTEN=127.0.0.1:9000 model-manager serve --discover
      Let nothing but this machine in.

Give a setting as a flag or as the environment variable named beside it. The flag wins,
and an empty variable counts as unset. A switch that is on is turned off with =false.
Durations read 30s, 10m or 1h30m.

Backends:
  --discover                      Look for model servers on the usual ports of this
                                  machine and serve those that answer.
                                  [default: off]
  --backends NAME,…               The backends to serve, separated by commas; a request
                                  that names no backend means the first.
                                  [default: none] [env: MODEL_MANAGER_BACKENDS]
  --backend NAME                  The one backend to serve; beside --backends it must be
                                  in that list.
                                  [default: none] [env: MODEL_MANAGER_BACKEND]
`,
    );
    const commands = help.split('\n').filter(line => line.startsWith('  ') && line.includes('model-manager serve '));
    for (const command of commands) {
      const [variables, flags] = command.trim().split('model-manager serve ') as [string, string];
      const env = Object.fromEntries(
        variables
          .trim()
          .split(' ')
          .filter(Boolean)
          .map(pair => pair.split('=', 2)),
      );
      assert.doesNotThrow(() => parseServe(flags.split(' '), env, { buildable: buildableKinds }), command);
    }
    assert.equal(commands.length, 4);
  });

  test('the help of the program names its commands', () => {
    const commands = ['serve', 'demo', 'record', 'replay', 'cache-agent', 'schema'];
    for (const word of [...commands, '--version', '--help']) {
      assert.match(topHelp(), new RegExp(`^ {2}${word} `, 'm'));
    }
  });

  test('each command has a help of its own', () => {
    const helps = { serveHelp, demoHelp, recordHelp, replayHelp, cacheAgentHelp, schemaHelp };
    for (const [name, help] of Object.entries(helps)) {
      const word = name.replace('Help', '').replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`);
      assert.match(help(), new RegExp(`^Usage: model-manager ${word}\\b`, 'm'));
    }
    assert.match(recordHelp(), /^ {2}model-manager record .*--kserve-discovery-namespace/m);
  });

  test('the command line prints the help that was asked for', () => {
    const main = new URL('../../src/main.ts', import.meta.url).pathname;
    const help = execFileSync(process.execPath, [main, 'schema', '--help'], { encoding: 'utf8' });
    assert.match(help, /^Usage: model-manager schema$/m);
  });
});
