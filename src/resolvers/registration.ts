import {
  type AddedBackend,
  addBackend,
  type DocumentConfigMap,
  type RemovedBackend,
  removeBackend,
} from '../backends/documents/registration.ts';
import { backendView } from './backend.ts';
import { builder } from './builder.ts';
import { BackendRef } from './refs.ts';
import { keyedLabels, LabelRef, labelsOf } from './serving/pool.ts';

const DocumentConfigMapRef = builder.objectRef<DocumentConfigMap>('DocumentConfigMap').implement({
  description: 'The ConfigMap that holds the document of a backend.',
  fields: t => ({
    namespace: t.exposeString('namespace'),
    name: t.exposeString('name'),
    labels: t.field({ type: [LabelRef], extensions: keyedLabels, resolve: ({ labels }) => labelsOf(labels) ?? [] }),
  }),
});

const AddBackendPayload = builder.objectRef<AddedBackend>('AddBackendPayload').implement({
  description: 'What adding a backend did, or with `dryRun` would do.',
  fields: t => ({
    dryRun: t.exposeBoolean('dryRun', { description: 'Nothing was written.' }),
    document: t.exposeString('document', { description: 'The document in YAML, with its defaults filled in.' }),
    configMap: t.expose('configMap', { type: DocumentConfigMapRef }),
    created: t.exposeBoolean('created', {
      nullable: true,
      description: 'False when a document was there and was replaced.',
    }),
    registered: t.exposeBoolean('registered', {
      nullable: true,
      description: 'Whether the backend was there by the time of the answer.',
    }),
    error: t.exposeString('error', { nullable: true, description: 'What is wrong with the document, when it is not.' }),
    backend: t.field({
      type: BackendRef,
      nullable: true,
      description: 'The backend, once it is there.',
      resolve: ({ backend }, _, context) => (backend === undefined ? null : backendView(context, backend)),
    }),
  }),
});

const RemoveBackendPayload = builder.objectRef<RemovedBackend>('RemoveBackendPayload').implement({
  description: 'What removing a backend did, or with `dryRun` would do.',
  fields: t => ({
    dryRun: t.exposeBoolean('dryRun', { description: 'Nothing was removed.' }),
    configMap: t.expose('configMap', { type: DocumentConfigMapRef }),
    modelConfigs: t.exposeStringList('modelConfigs', {
      nullable: true,
      description: 'Models that would be unwired; only with `dryRun`.',
    }),
    unwired: t.exposeStringList('unwired', { nullable: true, description: 'Models that were unwired first.' }),
    removed: t.exposeBoolean('removed', { nullable: true, description: 'The document is gone.' }),
    deregistered: t.exposeBoolean('deregistered', {
      nullable: true,
      description: 'Whether the backend was gone by the time of the answer.',
    }),
  }),
});

builder.mutationFields(t => {
  const optional = (description: string) => t.arg.string({ description });
  const writing = {
    dryRun: t.arg.boolean({ defaultValue: false, description: 'Only say what would be done.' }),
    mode: optional('`apply`, the only way to write there is, and the one that is taken when absent.'),
  };
  return {
    addBackend: t.field({
      type: AddBackendPayload,
      nullable: true,
      description: 'Registers a backend by writing its document, or replaces the document there is of its kind.',
      args: {
        kind: optional('What it runs on: `kserve`, `lemonade`, `lmstudio` or `ollama`.'),
        endpoint: optional('Where the server answers, as the gateway dials it; needed for all kinds but kserve.'),
        agentEndpoint: optional('Where agents reach the server; the endpoint when absent.'),
        source: optional('Who registers it: `person`, also when absent, or `cluster-manager`.'),
        credentialsSecret: optional('Name of the Secret that holds the token for the cluster; kserve only.'),
        credentialsKey: optional('Which entry of that Secret it is; `token` when absent.'),
        cluster: optional("Name of the cluster, kserve only; `local`, the gateway's own, when absent."),
        organization: optional('Who the cluster belongs to; kserve only.'),
        apiServer: optional('URL of its API server; kserve only, and needed for every cluster but `local`.'),
        caBundle: optional('Certificates that its API server is trusted by, in PEM; needed with `apiServer`.'),
        servingNamespace: optional('Namespace that models are served in; needed for kserve.'),
        discoveryNamespace: optional(
          'Namespace of the ConfigMap that describes the serving stack; the serving one when absent.',
        ),
        discoveryName: optional('Name of that ConfigMap; `agent-platform-model-serving` when absent.'),
        gpuPoolTaint: optional('Taint of the GPU nodes that models tolerate, as `key[=value][:effect]`; kserve only.'),
        gpuPoolNodeSelector: optional('Labels of the GPU nodes, as `key=value[,key=value]`; kserve only.'),
        ...writing,
      },
      resolve: (_root, args, { gateway, call }) => addBackend(gateway, call, args),
    }),
    removeBackend: t.field({
      type: RemoveBackendPayload,
      nullable: true,
      description: 'Removes the document of a backend, after unwiring the models it has.',
      args: { kind: optional('What it runs on: the kind it was added with.'), ...writing },
      resolve: (_root, args, { gateway, call }) => removeBackend(gateway, call, args),
    }),
  };
});
