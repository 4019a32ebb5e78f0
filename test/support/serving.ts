/** A backend that serves from presets and searches a hub, and somebody who makes models known to agents; both in memory. */
import type { Wiring } from '../../src/backends/wiring.ts';
import type { ModelConfigRef, Preset, SearchResult } from '../../src/domain.ts';
import { conflict } from '../../src/errors.ts';
import { type FakeDriver, type FakeDriverOptions, fakeDriver } from './gateway.ts';

export const qwenPreset: Preset = {
  backend: 'kserve',
  name: 'qwen3-14b',
  displayName: 'Qwen3 14B',
  description: 'For one L4.',
  source: 'shipped',
  model: 'Qwen/Qwen3-14B-AWQ',
  storageUri: 'hf://Qwen/Qwen3-14B-AWQ',
  format: 'safetensors',
  contextLength: 32_768,
  capabilities: ['completion', 'tools'],
  license: 'apache-2.0',
  gpus: 1,
  weightsBytes: 9_990_000_000,
  overheadBytes: 4_000_000_000,
  args: ['--max-model-len=32768'],
  nodeSelector: { 'example.com/gpu': 'l4', zone: '' },
  chatTemplate: '{{ messages }}',
};

export const qwenResult: SearchResult = {
  backend: 'kserve',
  id: 'Qwen/Qwen3-14B-AWQ',
  author: 'Qwen',
  downloads: 250_000,
  likes: 40,
  gated: false,
  private: false,
  pipelineTag: 'text-generation',
  library: 'transformers',
  tags: ['awq'],
  lastModified: new Date('2026-05-21T10:00:00Z'),
  presets: ['qwen3-14b'],
};

/** A driver that has presets, searches and checks fits, and nothing else. */
export function servingDriver({ name = 'kserve', capabilities, ...options }: FakeDriverOptions = {}): FakeDriver {
  const driver = fakeDriver({
    kind: 'kserve',
    ...options,
    name,
    capabilities: {
      pull: false,
      pullProgress: false,
      delete: false,
      load: false,
      unload: false,
      loadedModels: false,
      nodeInventory: false,
      presets: true,
      fitCheck: true,
      search: true,
      ...capabilities,
    },
  });
  driver.world.presets = [{ ...qwenPreset, backend: name }];
  driver.world.hub = [{ ...qwenResult, backend: name }];
  return driver;
}

export interface FakeWiring extends Wiring {
  /** What is wired, by backend and model. */
  readonly wired: Map<string, ModelConfigRef>;
  /** What was asked of it, in order, with the keys that it was to use. */
  readonly asked: unknown[];
}

/** Wires in memory. A ModelConfig named `taken` is somebody else's. */
export function fakeWiring(): FakeWiring {
  const wired = new Map<string, ModelConfigRef>();
  const asked: unknown[] = [];
  return {
    wired,
    asked,
    info: { namespace: 'kagent', apiVersion: 'v1alpha3', autoWire: true },
    async wire(_call, driver, model, apiKey) {
      asked.push(['wire', driver.name, model.name, apiKey]);
      const name = model.name.replace(/[^a-z0-9]+/g, '-');
      if (name === 'taken') throw conflict(`ModelConfig kagent/${name} exists but is not managed by model-manager`);
      const modelConfig: ModelConfigRef = {
        name,
        namespace: 'kagent',
        apiVersion: 'kagent.dev/v1alpha3',
        provider: 'Ollama',
        model: model.name,
        ready: false,
        message: 'not yet reconciled',
        managed: true,
        providerModel: model.name,
        endpoint: driver.agentEndpoint,
        apiKeyPassthrough: apiKey.passthrough,
        apiKeySecret: apiKey.secret?.name,
        backend: driver.name,
      };
      wired.set(`${driver.name}/${model.name}`, modelConfig);
      return modelConfig;
    },
    async unwire(_call, driver, model) {
      asked.push(['unwire', driver.name, model]);
      wired.delete(`${driver.name}/${model}`);
    },
    async wiredOn(_call, model) {
      return [...wired.values()].filter(each => each.model === model).map(({ backend }) => backend);
    },
  };
}
