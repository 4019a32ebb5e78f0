/**
 * The settings of `model-manager serve`: one table of flags, variables, defaults and checks.
 *
 * Parsing, `--help` and the README's configuration table all come from it. To add a setting, add its type to
 * `ServeSettings` and its row to `serveSettings`.
 */
import type { BackendKind } from '../domain.ts';
import { type InterfaceSettings, interfaceSettings } from './interfaces.ts';
import { type KserveFlags, kserveFlags } from './kserve.ts';
import { type Limits, limitSettings } from './limits.ts';
import { type OauthFlags, oauthFlags } from './oauth.ts';
import {
  address,
  apiVersion,
  backendName,
  backendNames,
  boolean,
  duration,
  endpoint,
  type Kind,
  keepAlive,
  type ListenAddress,
  namePrefix,
  namespaceName,
  oneOf,
  optionalAddress,
  text,
} from './values.ts';

export interface ServeSettings extends InterfaceSettings {
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
  readonly kserve: KserveFlags;
  readonly limits: Limits;
  readonly defaultKeepAlive: string;
  readonly jobStore: (typeof jobStores)[number];
  /** Milliseconds. */
  readonly jobRetention: number;
  /** Empty: the process has no Kubernetes, unless it is in a cluster. */
  readonly kubeconfig: string;
  readonly kubeContext: string;
  readonly inCluster: boolean;
  /** Where backend documents live; empty switches registration off. */
  readonly namespace: string;
  readonly kagentNamespace: string;
  /** A bare version, or `auto`. */
  readonly kagentApiVersion: string;
  readonly modelconfigPrefix: string;
  readonly autoWire: boolean;
  readonly disableWiring: boolean;
  /** Milliseconds; 0 = off. */
  readonly reconcileInterval: number;
  readonly oauth: OauthFlags;
  readonly logFormat: LogFormat;
  /** `-` is standard output; empty: entries are in the log only. */
  readonly auditLog: string;
  readonly verbose: boolean;
}

const jobStores = ['memory', 'kubernetes'] as const;

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
  'KServe',
  'Kubernetes',
  'Agents',
  'Server',
  'Identity',
  'Interfaces',
  'Limits',
  'Models and jobs',
  'Logs',
] as const;

export const isSwitch = (setting: Setting) => setting.kind.placeholder === '';

/** Not checked as an endpoint: it is passed on to agents, who may have spellings of their own. */
const agentHost: Kind<string> = { ...text, placeholder: 'URL' };

/** Every setting but those of KServe, identity and the limits, which are many and have tables of their own. */
export const serveSettings: {
  readonly [Name in keyof Omit<ServeSettings, 'kserve' | 'oauth' | 'limits'>]: Setting<ServeSettings[Name]>;
} = {
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
  kubeconfig: {
    group: 'Kubernetes',
    flag: 'kubeconfig',
    variables: ['KUBECONFIG'],
    kind: { ...text, placeholder: 'FILE' },
    default: '',
    defaultMeans: 'no Kubernetes',
    help: 'The kubeconfig file of the cluster to work with.',
  },
  kubeContext: {
    group: 'Kubernetes',
    flag: 'kube-context',
    variables: ['KUBE_CONTEXT'],
    kind: { ...text, placeholder: 'NAME' },
    default: '',
    defaultMeans: 'its current one',
    help: 'The context of that file to use.',
  },
  inCluster: {
    group: 'Kubernetes',
    flag: 'in-cluster',
    variables: ['KUBERNETES_IN_CLUSTER'],
    kind: boolean,
    default: 'false',
    help: 'Work with the cluster this process runs in, as its ServiceAccount; no kubeconfig is read then.',
  },
  namespace: {
    group: 'Kubernetes',
    flag: 'namespace',
    variables: ['MODEL_MANAGER_NAMESPACE', 'POD_NAMESPACE'],
    kind: namespaceName,
    default: '',
    defaultMeans: 'backends cannot be registered',
    help: 'The namespace that backend documents live in.',
  },
  kagentNamespace: {
    group: 'Agents',
    flag: 'kagent-namespace',
    variables: ['KAGENT_NAMESPACE'],
    kind: namespaceName,
    default: 'kagent',
    help: 'The namespace of kagent, where ModelConfigs are written.',
  },
  kagentApiVersion: {
    group: 'Agents',
    flag: 'kagent-api-version',
    variables: ['KAGENT_API_VERSION'],
    kind: apiVersion,
    default: 'auto',
    help: 'The API version of ModelConfigs, such as v1alpha3; auto asks the cluster.',
  },
  modelconfigPrefix: {
    group: 'Agents',
    flag: 'modelconfig-prefix',
    variables: ['MODELCONFIG_PREFIX'],
    kind: namePrefix,
    default: '',
    defaultMeans: 'none',
    help: 'What the names of ModelConfigs begin with.',
  },
  autoWire: {
    group: 'Agents',
    flag: 'auto-wire',
    variables: ['MODEL_MANAGER_AUTO_WIRE'],
    kind: boolean,
    default: 'true',
    help: 'Wire models into kagent when they are pulled and loaded.',
  },
  disableWiring: {
    group: 'Agents',
    flag: 'disable-wiring',
    variables: ['MODEL_MANAGER_DISABLE_WIRING'],
    kind: boolean,
    default: 'false',
    help: 'Leave kagent alone, also where there is a cluster.',
  },
  reconcileInterval: {
    group: 'Agents',
    flag: 'reconcile-interval',
    variables: ['MODEL_MANAGER_RECONCILE_INTERVAL'],
    kind: duration,
    default: '30s',
    help: 'How often what is served is compared with what is wired, where models are served; 0 never does.',
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
  ...interfaceSettings,
  defaultKeepAlive: {
    group: 'Models and jobs',
    flag: 'default-keep-alive',
    variables: ['MODEL_MANAGER_DEFAULT_KEEP_ALIVE'],
    kind: keepAlive,
    default: '5m',
    help: 'How long an idle model stays in memory if its load did not say: a duration, seconds, or -1 for good.',
  },
  jobStore: {
    group: 'Models and jobs',
    flag: 'job-store',
    variables: ['MODEL_MANAGER_JOB_STORE'],
    kind: oneOf(jobStores, 'STORE'),
    default: 'memory',
    help: 'Where jobs are kept: memory, or kubernetes, where several replicas share them and finish them for each other.',
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
  auditLog: {
    group: 'Logs',
    flag: 'audit-log',
    variables: ['MODEL_MANAGER_AUDIT_LOG'],
    kind: { ...text, placeholder: 'FILE' },
    default: '',
    defaultMeans: 'in the log only',
    help: 'Append a JSON line for every mutation, done or refused, to this file too; - is standard output.',
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

/** Every setting, in the order people read them. */
export const allSettings: readonly Setting[] = settingGroups.flatMap(group =>
  [serveSettings, kserveFlags, oauthFlags, limitSettings]
    .flatMap(table => Object.values<Setting>(table))
    .filter(setting => setting.group === group),
);

/** Settings that cannot be used. `problems` has one sentence each. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.length === 1 ? problems[0] : problems.map(problem => `- ${problem}`).join('\n'));
    this.name = 'ConfigError';
    this.problems = problems;
  }
}
