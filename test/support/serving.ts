/** A backend that serves from presets and searches a hub, and somebody who makes models known to agents; both in memory. */
import type { ModelConfigRef, Permit, Preset, SearchResult } from '../../src/domain.ts';
import { conflict } from '../../src/errors.ts';
import { type Cell, createCell } from '../../src/live/cell.ts';
import type { Known, WiringState, WiringTarget } from '../../src/wiring/wiring.ts';
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

export interface FakeWiring extends WiringTarget {
  /** What is wired, by backend and model. */
  readonly wired: Map<string, ModelConfigRef>;
  /** What was asked of it, in order, with the keys that it was to use. */
  readonly asked: unknown[];
  readonly state: Cell<WiringState>;
  /** Whether callers may wire and unwire. */
  permit: Permit;
  /** What the next requests fail with. */
  failure: Error | undefined;
  /** What agents are told is there changes as somebody else may change it. */
  observe(): void;
}

const nameOf = (reference: string) => reference.replace(/[^a-z0-9]+/g, '-');

/** Wires in memory. A ModelConfig named `taken` is somebody else's. */
export function fakeWiring({ autoWire = true } = {}): FakeWiring {
  const wired = new Map<string, ModelConfigRef>();
  const asked: unknown[] = [];
  const knownNow = (): Known => {
    const refs = [...wired.values()];
    return { refs, of: ({ backend, reference }) => wired.get(`${backend}/${reference}`) };
  };
  const known = createCell<Known>(knownNow());
  const observe = () => known.set(knownNow());
  const wiring: FakeWiring = {
    wired,
    asked,
    known,
    observe,
    failure: undefined,
    permit: { allowed: true },
    state: createCell<WiringState>({ available: true }),
    info: { namespace: 'kagent', apiVersion: 'v1alpha3', autoWire },
    async wire(_call, { backend, reference, access }, apiKey) {
      asked.push(['wire', backend, reference, apiKey]);
      if (wiring.failure) throw wiring.failure;
      const name = nameOf(reference);
      if (name === 'taken') throw conflict(`ModelConfig kagent/${name} exists but is not managed by model-manager`);
      const modelConfig: ModelConfigRef = {
        name,
        namespace: 'kagent',
        apiVersion: 'kagent.dev/v1alpha3',
        provider: 'Ollama',
        model: reference,
        ready: false,
        message: 'not yet reconciled',
        managed: true,
        providerModel: access.model,
        endpoint: access.url,
        ...(apiKey?.passthrough && { apiKeyPassthrough: true }),
        apiKeySecret: apiKey?.secret?.name,
        backend,
      };
      wired.set(`${backend}/${reference}`, modelConfig);
      observe();
      return modelConfig;
    },
    async plan(_call, { backend, reference }) {
      if (wiring.failure) throw wiring.failure;
      const known = wired.get(`${backend}/${reference}`);
      if (known) return { manifests: [], deletes: [], known };
      const metadata = { name: nameOf(reference), namespace: 'kagent' };
      return { manifests: [{ apiVersion: 'kagent.dev/v1alpha3', kind: 'ModelConfig', metadata }], deletes: [] };
    },
    async planUnwire(_call, backend, reference) {
      if (wiring.failure) throw wiring.failure;
      const known = wired.get(`${backend}/${reference}`);
      return known ? [{ kind: 'ModelConfig', namespace: known.namespace, name: known.name }] : [];
    },
    mayWire: async () => wiring.permit,
    mayUnwire: async () => wiring.permit,
    async unwire(_call, backend, reference) {
      asked.push(['unwire', backend, reference]);
      if (wiring.failure) throw wiring.failure;
      wired.delete(`${backend}/${reference}`);
      observe();
    },
    async wiredOn(_call, backend) {
      return [...wired.values()].filter(each => each.backend === backend).map(({ model = '' }) => model);
    },
    async backendsOf(_call, reference) {
      return [...wired.values()].filter(each => each.model === reference).map(({ backend }) => backend);
    },
  };
  return wiring;
}
