/** The kinds of KServe, and the template that its controller brings. */

const group = 'serving.kserve.io';
export const apiVersion = `${group}/v1alpha2`;

/** Of runtimes, unless an object names another one. */
export const runtimeImage = 'ghcr.io/llm-d/llm-d-cuda:v0.4.0';

const column = (name: string, jsonPath: string, type = 'string') => ({ name, type, jsonPath });

/** Of what is served; there is none of it in a template. */
const columns = [
  column('URL', '.status.url'),
  column('Ready', '.status.conditions[?(@.type=="Ready")].status'),
  column('Reason', '.status.conditions[?(@.type=="Ready")].reason'),
  column('Age', '.metadata.creationTimestamp', 'date'),
];

const definition = (plural: string, kind: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List` },
    versions: [
      {
        name: 'v1alpha2',
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: columns,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

/** What makes a cluster one that serves models: both definitions, and the template that the controller brings. */
export const kserveDefinitions = (namespace: string): readonly object[] => [
  definition('llminferenceservices', 'LLMInferenceService'),
  definition('llminferenceserviceconfigs', 'LLMInferenceServiceConfig'),
  {
    apiVersion,
    kind: 'LLMInferenceServiceConfig',
    metadata: { name: 'kserve-config-llm-template', namespace },
    spec: { template: { containers: [{ name: 'main', image: runtimeImage }] } },
  },
];
