import { unwireModel, usualSecretKey, wireModel } from '../backends/wiring.ts';
import type { ModelConfigRef } from '../domain.ts';
import { backendArg, modelArg } from './arguments.ts';
import { builder, faces } from './builder.ts';
import { BackendRef, type BackendView } from './refs.ts';
import { ModelConfigType } from './serving/modelConfig.ts';

interface WirePayload extends BackendView {
  readonly model: string;
  readonly modelConfig: ModelConfigRef;
}

const WirePayloadRef = builder.objectRef<WirePayload>('WirePayload').implement({
  description: 'What a model is known to agents by now.',
  fields: t => ({
    backend: t.field({ type: BackendRef, resolve: payload => payload }),
    backendName: t.string({ resolve: ({ backend }) => backend.name }),
    model: t.exposeString('model', { description: 'The reference as given.' }),
    modelConfig: t.expose('modelConfig', { type: ModelConfigType }),
  }),
});

interface UnwirePayload {
  readonly view: BackendView | undefined;
  readonly model: string;
}

const UnwirePayloadRef = builder.objectRef<UnwirePayload>('UnwirePayload').implement({
  description: 'What is no longer known to agents.',
  fields: t => ({
    backend: t.field({ type: BackendRef, nullable: true, resolve: ({ view }) => view }),
    backendName: t.string({
      nullable: true,
      description: 'Null when the model is known nowhere, and so was not wired either.',
      resolve: ({ view }) => view?.backend.name,
    }),
    model: t.exposeString('model', { description: 'The reference as given.' }),
    modelConfig: t.field({
      type: ModelConfigType,
      nullable: true,
      description: 'What we have made it known by: nothing, null.',
      extensions: faces({ whenNull: null }),
      resolve: () => null,
    }),
  }),
});

builder.mutationFields(t => ({
  wireModel: t.field({
    type: WirePayloadRef,
    nullable: true,
    description: 'Makes a model known to agents, by a ModelConfig. Doing it again refreshes that.',
    args: {
      model: modelArg(t.arg),
      backend: backendArg(t.arg),
      apiKeyPassthrough: t.arg.boolean({
        defaultValue: false,
        description: 'Agents pass the token of their own caller on to the backend.',
      }),
      apiKeySecret: t.arg.string({ description: 'Name of the Secret that holds the key agents send.' }),
      apiKeySecretKey: t.arg.string({
        description: `Which entry of that Secret it is; \`${usualSecretKey}\` when absent.`,
      }),
    },
    resolve: async (_root, args, { gateway, call }) => ({
      model: args.model,
      ...(await wireModel(gateway, call, args)),
    }),
  }),
  unwireModel: t.field({
    type: UnwirePayloadRef,
    nullable: true,
    description: 'Takes back that a model is known to agents. One that is not known to them stays as it is.',
    args: { model: modelArg(t.arg), backend: backendArg(t.arg) },
    resolve: async (_root, args, { gateway, call }) => {
      const backend = await unwireModel(gateway, call, args);
      return { model: args.model, view: backend && { backend } };
    },
  }),
}));
