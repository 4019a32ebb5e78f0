/** An emulated API server with many served models, and the gateway of `serve` over it in a process of its own. */
import { startCluster } from '../../src/demo/cluster.ts';
import { kagentDefinition } from '../../src/demo/kagent.ts';
import { serveModel } from '../../src/demo/kserve.ts';
import { servingNamespace, servingObjects } from '../../src/demo/world/serving.ts';
import { answerParent } from '../child.ts';

const modelCount = 300;
const service = 'llminferenceservices.serving.kserve.io';
const nameOf = (index: number) => `model-${String(index).padStart(3, '0')}`;

const cluster = await startCluster({ objects: [...servingObjects(), kagentDefinition()] });
for (let index = 0; index < modelCount; index++) {
  serveModel(cluster, {
    name: nameOf(index),
    namespace: servingNamespace,
    model: `acme/${nameOf(index)}`,
    uri: `hf://acme/${nameOf(index)}`,
    node: 'gpu-l4-x4',
    gpus: 1,
    url: `https://models.example.com/${nameOf(index)}`,
    since: '2026-08-20T06:00:00Z',
  });
}
let changes = 0;

answerParent({
  url: () => cluster.url,
  namespace: () => servingNamespace,
  /** How many requests came so far. */
  requests: () => cluster.requests.length,
  /** One model changes; what is told of it has as many bytes each time. */
  change() {
    const state = String(1_000_000 + ++changes);
    cluster.update<{ status: { conditions: object[] } }>(service, nameOf(0), servingNamespace, object => {
      object.status.conditions = [{ type: 'Ready', status: 'False', reason: 'Waiting', message: state }];
    });
  },
});
