/** The serving presets of the demo: for each model of the emulated Hub, of every sort; and two that fail. */
import { stringify } from 'yaml';
import { wrongArguments, wrongImage } from './loading.ts';
import { largePool, presetNamespace, servingNamespace } from './places.ts';

interface Preset {
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly model: {
    readonly id: string;
    readonly storageUri?: string;
    readonly contextLength: number;
    readonly capabilities: readonly string[];
    readonly license: string;
  };
  readonly args: readonly string[];
  readonly gpus: number;
  readonly requests: { readonly cpu: string; readonly memory: string };
  readonly weightsGiB: number;
  readonly overheadGiB: number;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  /** Jinja. */
  readonly chatTemplate?: string;
  /** Of the runtime, in place of the usual one. */
  readonly image?: string;
}

const chat = ['completion', 'tools'];
const toolsBy = (parser: string) => ['--enable-auto-tool-choice', `--tool-call-parser=${parser}`];

/** What two presets that are there to fail are made of, too. */
const onCpu: Preset = {
  name: 'qwen3-0-6b-cpu',
  displayName: 'Qwen3 0.6B on CPU',
  description: 'Runs without an accelerator.',
  model: { id: 'Qwen/Qwen3-0.6B', contextLength: 8_192, capabilities: ['completion'], license: 'apache-2.0' },
  args: ['--max-model-len=8192', '--dtype=bfloat16'],
  gpus: 0,
  requests: { cpu: '4', memory: '8Gi' },
  weightsGiB: 1.5,
  overheadGiB: 3,
};

const presets: readonly Preset[] = [
  onCpu,
  {
    ...onCpu,
    name: wrongArguments,
    displayName: 'Qwen3 0.6B, wrong arguments',
    description: 'Asks for a longer context than the model has: its runtime crashes again and again.',
    model: { ...onCpu.model, contextLength: 131_072 },
    args: ['--max-model-len=131072', '--dtype=bfloat16'],
  },
  {
    ...onCpu,
    name: 'qwen3-0-6b-wrong-image',
    displayName: 'Qwen3 0.6B, wrong image',
    description: 'The image of its runtime does not exist.',
    image: wrongImage,
  },
  {
    name: 'qwen2-5-7b-x2',
    displayName: 'Qwen2.5 7B (2 GPUs)',
    description: 'Needs two L4 of one node, and none has two that are free.',
    model: { id: 'Qwen/Qwen2.5-7B-Instruct', contextLength: 32_768, capabilities: chat, license: 'apache-2.0' },
    args: ['--tensor-parallel-size=2', '--max-model-len=32768', ...toolsBy('hermes')],
    gpus: 2,
    requests: { cpu: '8', memory: '32Gi' },
    weightsGiB: 14.2,
    overheadGiB: 12,
  },
  {
    name: 'qwen3-8b-l4',
    displayName: 'Qwen3 8B',
    description: 'For one L4.',
    model: { id: 'Qwen/Qwen3-8B', contextLength: 16_384, capabilities: [...chat, 'thinking'], license: 'apache-2.0' },
    args: ['--max-model-len=16384', '--reasoning-parser=qwen3', ...toolsBy('hermes')],
    gpus: 1,
    requests: { cpu: '4', memory: '16Gi' },
    weightsGiB: 15.3,
    overheadGiB: 5,
  },
  {
    name: 'gpt-oss-20b',
    displayName: 'gpt-oss 20B (model image)',
    description: 'Weights are an image that nodes pull themselves; nothing of it is in the cache.',
    model: {
      id: 'openai/gpt-oss-20b',
      storageUri: 'oci://registry.example.com/models/gpt-oss-20b:2026.09.1',
      contextLength: 32_768,
      capabilities: [...chat, 'thinking'],
      license: 'apache-2.0',
    },
    args: ['--max-model-len=32768', '--reasoning-parser=openai_gptoss', ...toolsBy('openai')],
    gpus: 1,
    requests: { cpu: '4', memory: '16Gi' },
    weightsGiB: 12.9,
    overheadGiB: 6,
  },
  {
    name: 'mistral-small-24b-x4',
    displayName: 'Mistral Small 24B (4 GPUs)',
    description: 'Tensor-parallel over four L4, with a chat template of its own.',
    model: {
      id: 'mistralai/Mistral-Small-3.2-24B-Instruct-2506',
      contextLength: 65_536,
      capabilities: [...chat, 'vision'],
      license: 'apache-2.0',
    },
    args: ['--tensor-parallel-size=4', '--max-model-len=64k', ...toolsBy('mistral')],
    gpus: 4,
    requests: { cpu: '24', memory: '96Gi' },
    weightsGiB: 44.8,
    overheadGiB: 20,
    chatTemplate: '{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}',
  },
  {
    name: 'gemma-3-27b-h100',
    displayName: 'Gemma 3 27B',
    description: 'Gated, and for a pool that has no node.',
    model: {
      id: 'google/gemma-3-27b-it',
      contextLength: 32_768,
      capabilities: ['completion', 'vision'],
      license: 'gemma',
    },
    args: ['--max-model-len=32768'],
    gpus: 1,
    requests: { cpu: '8', memory: '64Gi' },
    weightsGiB: 51.1,
    overheadGiB: 16,
    nodeSelector: largePool,
  },
  {
    name: 'gemma-3-4b-gguf',
    displayName: 'Gemma 3 4B, quantized',
    description: 'Declares one of the files in its repository, which has more.',
    model: {
      id: 'ggml-org/gemma-3-4b-it-GGUF',
      contextLength: 8_192,
      capabilities: ['completion', 'vision'],
      license: 'gemma',
    },
    args: ['--max-model-len=8192'],
    gpus: 1,
    requests: { cpu: '4', memory: '12Gi' },
    weightsGiB: 2.4,
    overheadGiB: 4,
  },
  {
    name: 'support-assistant-70b',
    displayName: 'Support assistant 70B',
    description: 'Too large for every node there is.',
    model: { id: 'acme/support-assistant-70b-fp8', contextLength: 65_536, capabilities: chat, license: 'other' },
    args: ['--tensor-parallel-size=4', '--max-model-len=64k', ...toolsBy('llama3_json')],
    gpus: 4,
    requests: { cpu: '24', memory: '96Gi' },
    weightsGiB: 67.7,
    overheadGiB: 40,
  },
  {
    name: 'support-assistant-8b',
    displayName: 'Support assistant 8B',
    description: 'In a private repository, which the token in the cluster opens.',
    model: { id: 'acme/support-assistant-8b', contextLength: 16_384, capabilities: chat, license: 'other' },
    args: ['--max-model-len=16384', ...toolsBy('llama3_json')],
    gpus: 1,
    requests: { cpu: '4', memory: '16Gi' },
    weightsGiB: 15,
    overheadGiB: 5,
  },
];

/** Each as the platform publishes it, and the chat templates that they mention. */
export const presetObjects = (): readonly object[] => presets.flatMap(objectsOf);

const mountPath = '/mnt/chat-template';
const key = 'chat-template.jinja';

function objectsOf(preset: Preset): readonly object[] {
  const { name, displayName, description, model, gpus, requests, weightsGiB, overheadGiB, nodeSelector, image } =
    preset;
  const configMap = `agent-platform-chat-template-${name}`;
  const isTemplated = preset.chatTemplate !== undefined;
  const written = {
    apiVersion: 'agent-platform.giantswarm.io/v1alpha1',
    kind: 'ServingPreset',
    metadata: { name },
    spec: {
      displayName,
      description,
      model: { storageUri: `hf://${model.id}`, format: 'vLLM', ...model },
      args: [...preset.args, ...(isTemplated ? [`--chat-template=${mountPath}/${key}`] : [])],
      ...(isTemplated && { chatTemplate: { configMap, key, mountPath } }),
      resources: { gpus, requests },
      requirements: { weightsGiB, overheadGiB },
      ...(nodeSelector && { scheduling: { nodeSelector } }),
      ...(image && { template: { containers: [{ name: 'main', image }] } }),
    },
  };
  const published = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `agent-platform-serving-preset-${name}`,
      namespace: presetNamespace,
      labels: {
        'agent-platform.giantswarm.io/serving-preset': 'true',
        'agent-platform.giantswarm.io/preset': name,
        'agent-platform.giantswarm.io/preset-source': model.id.startsWith('acme/') ? 'values' : 'shipped',
      },
    },
    data: { 'preset.yaml': stringify(written) },
  };
  const template = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: configMap, namespace: servingNamespace },
    data: { [key]: preset.chatTemplate },
  };
  return isTemplated ? [published, template] : [published];
}
