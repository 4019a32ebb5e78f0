import { type ModelConfigRef, type WiringInfo, type WiringResult, wiringReasons } from '../../domain.ts';
import { builder, enumValues, faces } from '../builder.ts';

export const ModelConfigType = builder.objectRef<ModelConfigRef>('ModelConfigRef').implement({
  description: 'A ModelConfig: the object by which agents know a model.',
  fields: t => ({
    name: t.exposeString('name'),
    namespace: t.exposeString('namespace'),
    apiVersion: t.exposeString('apiVersion', { nullable: true, description: 'Such as `kagent.dev/v1alpha3`.' }),
    provider: t.exposeString('provider', { nullable: true, description: '`Ollama` or `OpenAI`.' }),
    model: t.exposeString('model', { nullable: true, description: "The backend's reference of the model." }),
    ready: t.exposeBoolean('ready', { description: 'Agents can use it.' }),
    message: t.exposeString('message', { nullable: true, description: 'Why it is ready, or why not.' }),
    managed: t.exposeBoolean('managed', { description: 'False: somebody else made it.' }),
    providerModel: t.exposeString('providerModel', {
      nullable: true,
      description: 'The model as agents ask the backend for it.',
    }),
    endpoint: t.exposeString('endpoint', { nullable: true, description: 'Where agents ask.' }),
    apiKeyPassthrough: t.exposeBoolean('apiKeyPassthrough', {
      nullable: true,
      description: 'Agents pass the token of their own caller on.',
      extensions: faces({ omitFalse: true }),
    }),
    apiKeySecret: t.exposeString('apiKeySecret', { nullable: true, description: 'The Secret that holds the key.' }),
    backendName: t.exposeString('backend', { nullable: true, description: 'Name of the backend that has the model.' }),
  }),
});

const WiringReasonEnum = builder.enumType('WiringReason', {
  description: 'What made a model known to agents, or that it failed.',
  values: enumValues(wiringReasons),
});

export const WiringResultRef = builder.objectRef<WiringResult>('WiringResult').implement({
  description: 'How wiring a model went that was wired on the way of something else.',
  fields: t => ({
    wired: t.exposeBoolean('wired'),
    reason: t.expose('reason', { type: WiringReasonEnum, nullable: true }),
    modelConfig: t.expose('modelConfig', { type: ModelConfigType, nullable: true }),
    error: t.exposeString('error', { nullable: true }),
  }),
});

export const WiringInfoRef = builder.objectRef<WiringInfo>('WiringInfo').implement({
  description: 'Where models are made known to agents.',
  fields: t => ({
    namespace: t.exposeString('namespace', { description: 'Namespace of the ModelConfigs.' }),
    apiVersion: t.exposeString('apiVersion', { nullable: true }),
    autoWire: t.exposeBoolean('autoWire', { description: 'Models are wired when they are pulled or loaded.' }),
  }),
});
