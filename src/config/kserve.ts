/**
 * The flags of this backend as data: what each is called, how it is written, its default and one sentence. What a flag
 * leaves to discovery is '' unless somebody gave it.
 */
import { z } from 'zod';
import type { Setting } from './settings.ts';
import { duration, endpoint, type Kind, namespaceName, quote, text } from './values.ts';

export interface KserveFlags {
  readonly discoveryNamespace: string;
  readonly discoveryConfigmap: string;
  readonly namespace: string;
  readonly gpuResource: string;
  readonly cacheClaim: string;
  readonly cacheMountPath: string;
  readonly cacheNodes: readonly string[];
  readonly cacheIndexConfigmap: string;
  readonly presetNamespace: string;
  readonly presetSelector: string;
  readonly hfEndpoint: string;
  readonly hfTokenSecret: string;
  readonly hfTokenSecretKey: string;
  /** Milliseconds, as every duration here. */
  readonly hfTimeout: number;
  readonly downloadImage: string;
  readonly initImage: string;
  readonly downloadIgnorePatterns: readonly string[];
  readonly downloadStallTimeout: number;
  readonly jobTtl: number;
  /** Checked as a whole with the rest, in words of its own: see `checkFlags`. */
  readonly inventoryMode: string;
  readonly inventoryTtl: number;
  readonly inventoryTimeout: number;
  readonly inventoryAgentSelector: string;
  readonly inventoryAgentPort: number;
  readonly budgetSource: string;
  readonly defaultOverheadGib: number;
  readonly readyTimeout: number;
  readonly pollInterval: number;
  readonly scaleUpTimeout: number;
}

const name: Kind<string> = { ...text, placeholder: 'NAME' };
const image: Kind<string> = { ...text, placeholder: 'IMAGE' };
const selector: Kind<string> = { ...text, placeholder: 'KEY=VALUE' };

const list = (placeholder: string): Kind<readonly string[]> => ({
  placeholder,
  check: z.string().transform(text =>
    text
      .split(',')
      .map(part => part.trim())
      .filter(part => part !== ''),
  ),
});

const portNumber: Kind<number> = {
  placeholder: 'PORT',
  check: z
    .string()
    .refine(text => /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535, {
      error: issue => `${quote(issue.input)} is not a port; write a number from 1 to 65535`,
    })
    .transform(Number),
};

const amountOfGib: Kind<number> = {
  placeholder: 'GIB',
  check: z
    .string()
    .refine(text => /^(\d+\.?\d*|\.\d+)$/.test(text) && Number(text) < 2 ** 22, {
      error: issue => `${quote(issue.input)} is not an amount of GiB; write a number such as 30 or 2.5`,
    })
    .transform(Number),
};

/** A text that gives way to what discovery says, and that to `fallback`. */
const overriding = (flag: string, kind: Kind<string>, fallback: string, help: string): Setting<string> => ({
  ...row(flag, kind, '', help),
  defaultMeans: `as discovered, else ${fallback}`,
});

/** `kserve-hf-endpoint` and `KSERVE_HF_ENDPOINT` */
const row = <T>(flag: string, kind: Kind<T>, standard: string, help: string): Setting<T> => ({
  group: 'KServe',
  flag,
  variables: [flag.toUpperCase().replaceAll('-', '_')],
  kind,
  default: standard,
  ...(standard === '' && { defaultMeans: 'none' }),
  help,
});

/** Every flag, in the order people read them. */
export const kserveFlags: { readonly [Name in keyof KserveFlags]: Setting<KserveFlags[Name]> } = {
  discoveryNamespace: {
    ...row('kserve-discovery-namespace', namespaceName, '', 'The namespace of the discovery ConfigMap.'),
    defaultMeans: '--namespace, else that of served models',
  },
  discoveryConfigmap: row(
    'kserve-discovery-configmap',
    name,
    'agent-platform-model-serving',
    'The ConfigMap in which the platform publishes how models are served.',
  ),
  namespace: overriding('kserve-namespace', namespaceName, 'model-serving', 'The namespace models are served in.'),
  gpuResource: overriding(
    'kserve-gpu-resource',
    name,
    'nvidia.com/gpu',
    'What nodes call their GPUs, and what models ask for.',
  ),
  cacheClaim: overriding(
    'kserve-cache-claim',
    name,
    'hf-cache',
    'The volume claim that weights are kept in; giving it turns the cache on.',
  ),
  cacheMountPath: overriding(
    'kserve-cache-mount-path',
    { ...text, placeholder: 'PATH' },
    '/mnt/models',
    'Where that volume is mounted.',
  ),
  cacheNodes: {
    ...row(
      'kserve-cache-nodes',
      list('NODE,…'),
      '',
      'The nodes that can mount the claim, where its volume names none.',
    ),
    defaultMeans: 'those its volume names',
  },
  cacheIndexConfigmap: row(
    'kserve-cache-index-configmap',
    name,
    'model-manager-cache-index',
    'The ConfigMap that notes which model each directory of the cache holds.',
  ),
  presetNamespace: overriding(
    'kserve-preset-namespace',
    namespaceName,
    'the discovery namespace',
    'The namespace of the serving presets.',
  ),
  presetSelector: overriding(
    'kserve-preset-selector',
    selector,
    'agent-platform.giantswarm.io/serving-preset=true',
    'The labels by which ConfigMaps are serving presets.',
  ),
  hfEndpoint: row('kserve-hf-endpoint', endpoint, 'https://huggingface.co', 'Where the Hugging Face Hub answers.'),
  hfTokenSecret: row(
    'kserve-hf-token-secret',
    name,
    '',
    'The Secret in the serving namespace with a token for the Hub, for gated repositories.',
  ),
  hfTokenSecretKey: row('kserve-hf-token-secret-key', name, 'token', 'The key of the token in that Secret.'),
  hfTimeout: row('kserve-hf-timeout', duration, '4s', 'How long all look-ups at the Hub of one request may take.'),
  downloadImage: row(
    'kserve-download-image',
    image,
    'gsoci.azurecr.io/giantswarm/storage-initializer:v0.20.0',
    'The image that downloads weights.',
  ),
  initImage: row(
    'kserve-init-image',
    image,
    'gsoci.azurecr.io/giantswarm/alpine:3.22.1',
    'The image that looks at the cache and removes from it.',
  ),
  downloadIgnorePatterns: row(
    'kserve-download-ignore-patterns',
    list('GLOB,…'),
    '',
    'Files that are not downloaded, as patterns separated by commas.',
  ),
  downloadStallTimeout: row(
    'kserve-download-stall-timeout',
    duration,
    '10m',
    'How long a download may write nothing before it fails.',
  ),
  jobTtl: row('kserve-job-ttl', duration, '1h', 'How long finished download Jobs stay in the cluster.'),
  inventoryMode: row(
    'kserve-inventory-mode',
    { ...text, placeholder: 'MODE' },
    'pod',
    'What looks at the cache: pod starts one each time, daemonset asks the agent on the node.',
  ),
  inventoryTtl: row(
    'kserve-inventory-ttl',
    duration,
    '2m',
    'How long what was found in the cache is taken as current.',
  ),
  inventoryTimeout: row('kserve-inventory-timeout', duration, '2m', 'How long a look at the cache may take.'),
  inventoryAgentSelector: row(
    'kserve-inventory-agent-selector',
    selector,
    'model-manager.giantswarm.io/component=cache-agent',
    'The labels of the agent pods, for the inventory mode daemonset.',
  ),
  inventoryAgentPort: row('kserve-inventory-agent-port', portNumber, '8081', 'The port the agent pods answer on.'),
  budgetSource: row(
    'kserve-budget-source',
    { ...text, placeholder: 'SOURCE' },
    'auto',
    "What a node's memory for models is taken from: gpu-labels, allocatable, or auto, which prefers the labels.",
  ),
  defaultOverheadGib: row(
    'kserve-default-overhead-gib',
    amountOfGib,
    '30',
    'Memory beside the weights where no preset says how much, in GiB.',
  ),
  readyTimeout: row('kserve-ready-timeout', duration, '2h', 'How long a load waits for its model to become ready.'),
  pollInterval: row('kserve-poll-interval', duration, '5s', 'How often it looks whether it is.'),
  scaleUpTimeout: row(
    'kserve-scale-up-timeout',
    duration,
    '10m',
    'How long a model may wait for a node that the cloud refuses before its load fails; 0 waits for ever.',
  ),
};
