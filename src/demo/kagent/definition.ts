/** API versions of ModelConfigs: that of kagent 0.x, and that of later ones. */
type KagentVersion = 'v1alpha2' | 'v1alpha3';

export interface KagentDefinitionOptions {
  /** Served ones, both when absent; of several an API server prefers the newest. */
  readonly versions?: readonly [KagentVersion, ...KagentVersion[]];
  /** In which ModelConfigs are kept: the newest when absent. */
  readonly stored?: KagentVersion;
}

const text = { type: 'string' };
const count = { type: 'integer', format: 'int64' };

const conditions = {
  type: 'array',
  items: {
    type: 'object',
    required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
    properties: {
      type: text,
      status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
      reason: text,
      message: text,
      observedGeneration: count,
      lastTransitionTime: { type: 'string', format: 'date-time' },
    },
  },
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
};

function schemaOf(version: KagentVersion) {
  return {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        required: ['model'],
        properties: {
          provider: text,
          model: text,
          openAI: { type: 'object', properties: { baseUrl: text } },
          ollama: { type: 'object', properties: { host: text } },
          apiKeySecret: text,
          apiKeySecretKey: text,
          ...(version === 'v1alpha3' && { apiKeyPassthrough: { type: 'boolean' } }),
        },
        'x-kubernetes-preserve-unknown-fields': true,
      },
      status: { type: 'object', properties: { observedGeneration: count, conditions } },
    },
  };
}

/** The CustomResourceDefinition of ModelConfigs, as far as the gateway knows them. */
export function kagentDefinition({ versions = ['v1alpha2', 'v1alpha3'], stored }: KagentDefinitionOptions = {}) {
  const storage = stored ?? [...versions].sort().at(-1);
  const all = new Set([...versions, ...(stored ? [stored] : [])]);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'modelconfigs.kagent.dev' },
    spec: {
      group: 'kagent.dev',
      scope: 'Namespaced',
      names: {
        plural: 'modelconfigs',
        singular: 'modelconfig',
        kind: 'ModelConfig',
        listKind: 'ModelConfigList',
        categories: ['kagent'],
      },
      versions: [...all].sort().map(name => ({
        name,
        served: versions.includes(name),
        storage: name === storage,
        subresources: { status: {} },
        schema: { openAPIV3Schema: schemaOf(name) },
      })),
    },
  };
}
