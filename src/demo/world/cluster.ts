/** What the cluster of the demo has from the beginning: kagent, and the document that registers LM Studio. */
import { kagentDefinition } from '../kagent.ts';

/** Where documents are kept, and where ModelConfigs are. */
export const namespace = 'model-manager';
export const kagentNamespace = 'kagent';

/** How long kagent takes to make up its mind, in milliseconds: long enough to be seen. */
export const kagentMs = 2_000;

export const objectsFor = (lmstudioUrl: string): readonly object[] => [
  ...[namespace, kagentNamespace].map(name => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
  kagentDefinition(),
  ...somebodysModel,
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: 'model-backend-lmstudio',
      namespace,
      labels: {
        'agent-platform.giantswarm.io/model-backend': 'true',
        'agent-platform.giantswarm.io/model-backend-source': 'person',
      },
    },
    data: { 'backend.yaml': documentOf(lmstudioUrl) },
  },
];

const documentOf = (endpoint: string) => `apiVersion: agent-platform.giantswarm.io/v1alpha1
kind: ModelBackend
metadata:
  name: lmstudio
spec:
  kind: lmstudio
  source: person
  endpoint: ${endpoint}
`;

/** The model that agents of kagent use when they name none; nothing of it is the gateway's. */
const somebodysModel = [
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'kagent-openai', namespace: kagentNamespace },
    stringData: { OPENAI_API_KEY: 'made up' },
  },
  {
    apiVersion: 'kagent.dev/v1alpha3',
    kind: 'ModelConfig',
    metadata: { name: 'default-model-config', namespace: kagentNamespace },
    spec: {
      provider: 'OpenAI',
      model: 'gpt-4.1-mini',
      apiKeySecret: 'kagent-openai',
      apiKeySecretKey: 'OPENAI_API_KEY',
    },
  },
];
