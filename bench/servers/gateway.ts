/** The gateway as `serve` builds it, over a backend in memory: what is measured is our own cost. */

import { defaultLimits } from '../../src/config/limits.ts';
import type { Job, LoadedModel, Model } from '../../src/domain.ts';
import { createGatewayServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/log.ts';
import { toolNamesOf } from '../../src/mcp/index.ts';
import { loadOperations } from '../../src/operations/load.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { fakeDriver, testGateway } from '../../test/support/gateway.ts';
import { answerParent } from '../child.ts';

const modelCount = 500;
const began = Date.parse('2026-03-04T05:06:07Z');

/** A model with all its 17 fields, as a driver makes it anew at every look. */
const modelOf = (index: number): Omit<Model, 'backend'> => ({
  name: `hf.co/organisation-${index}/model-${index}-GGUF:Q4_K_M`,
  digest: index.toString(16).padStart(64, 'a'),
  sizeBytes: 4_000_000_000 + index,
  modifiedAt: new Date(began + index * 1_000),
  format: 'gguf',
  family: 'qwen3',
  parameterSize: '8.2B',
  quantization: 'Q4_K_M',
  contextLength: 40_960,
  runtime: 'llamacpp',
  capabilities: ['completion', 'tools', 'thinking'],
  node: 'host-1',
  path: `/var/lib/models/organisation-${index}/model-${index}.gguf`,
  preset: `preset-${index}`,
  downloaded: true,
});

/** What runs of every fifth model: 15 fields, so that a row of the list has 20 on the average. */
const loadedOf = ({ backend, name, digest }: Model): LoadedModel => ({
  backend,
  name,
  digest,
  sizeBytes: 6_000_000_000,
  vramBytes: 5_000_000_000,
  contextLength: 8_192,
  expiresAt: new Date(began),
  endpoint: 'http://127.0.0.1:11434',
  node: 'host-1',
  status: 'loaded',
  reason: 'Ready',
  message: 'answers requests',
  device: 'gpu',
  pinned: true,
  preset: 'preset-1',
});

const job: Job = {
  id: '0123456789abcdef',
  backend: 'ollama',
  type: 'pull',
  model: 'hf.co/organisation/model-GGUF:Q4_K_M',
  phase: 'running',
  status: 'pulling 74701a8c35f6',
  bytesCompleted: 5_000_000_000,
  bytesTotal: 10_000_000_000,
  createdAt: new Date(began),
  startedAt: new Date(began),
  wire: false,
};

const driver = fakeDriver();
driver.world.models = Array.from({ length: modelCount }, (_, index) => ({ ...modelOf(index), backend: driver.name }));
driver.world.loaded = driver.world.models.filter((_, index) => index % 5 === 0).map(loadedOf);
driver.script.models = async () => driver.world.models.map(model => ({ ...model }));
driver.script.loaded = async () => driver.world.loaded.map(model => ({ ...model }));

const operations = loadOperations(schema);
const log = createLogger({ format: 'json', stream: { write: () => true } });
const gateway = testGateway({ drivers: [driver], tools: toolNamesOf(operations), log });
const { claim } = await gateway.jobs.store.begin('bench', job);
const server = createGatewayServer({
  gateway,
  schema,
  operations,
  log,
  openApi: '',
  graphiql: true,
  limits: defaultLimits,
  introspection: true,
  allowedOrigins: [],
  mcpPath: '/mcp',
});
const url = await server.listen({ host: '127.0.0.1', port: 0 });
let changes = 0;

answerParent({
  port: () => Number(new URL(url).port),
  /** The text of a stored operation. */
  operation: (name: string) => operations.find(operation => operation.name === name)?.text,
  /** One job moves on. Every event of it has as many bytes. */
  change: () => claim?.put({ ...job, bytesCompleted: job.bytesCompleted + ++changes }),
});
