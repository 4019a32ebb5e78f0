/** What the caller may do with the things of the graph, so that a portal offers nothing that would be refused. */

import type { Backend } from '../backends/backend.ts';
import { mayAct, mayDelete, mayRemove, mayUnwire, mayWire } from '../backends/permits.ts';
import { backendNamed } from '../backends/registry.ts';
import type { Model, Permit, Preset } from '../domain.ts';
import type { ModelAction } from '../drivers/driver.ts';
import { wiringOf } from './backend.ts';
import { builder, type Context } from './builder.ts';
import { BackendRef, type BackendView, ModelRef, PresetRef } from './refs.ts';

const ActionRef = builder.objectRef<Permit>('Action').implement({
  description: 'Whether the caller may do something, as far as that is known before it is tried.',
  fields: t => ({
    allowed: t.exposeBoolean('allowed', {
      nullable: true,
      description: [
        'False: it would be refused. Null: nobody can tell now, such as while the API server of Kubernetes does not answer;',
        'it can be tried. True promises no success: a model may not fit, and a server may be down.',
      ].join('\n'),
    }),
    reason: t.exposeString('reason', {
      nullable: true,
      description: 'Why not, in the words of the refusal, or why nobody can tell; null where it is allowed.',
    }),
  }),
});

/** One action of a type: what `permit` says, and what keeps the caller from any change at the moment. */
const action = <V>(description: string, permit: (view: V, context: Context) => Promise<Permit>) => ({
  type: ActionRef,
  description,
  resolve: async (view: V, _args: object, context: Context): Promise<Permit> => {
    // Rights change without any news, so such an answer is not kept.
    context.reads?.clear();
    const own = await permit(view, context);
    const refusal = own.allowed === false ? undefined : context.refusal?.();
    return refusal ? { allowed: false, reason: refusal.message } : own;
  },
});

interface ModelView {
  readonly backend: Backend;
  readonly model: Model;
}

const act =
  (what: ModelAction) =>
  ({ backend, model }: ModelView, { gateway, call }: Context) =>
    mayAct(gateway, call, backend, what, model);

const ModelActionsRef = builder.objectRef<ModelView>('ModelActions').implement({
  description: 'What the caller may do with a model on its backend, by the mutations of these names.',
  fields: t => ({
    pull: t.field(action('`pullModel`', act('pull'))),
    load: t.field(action('`loadModel`. Whether the model fits is for `checkFit` to say.', act('load'))),
    unload: t.field(action('`unloadModel`', act('unload'))),
    delete: t.field(
      action('`deleteModel`, which unwires the model first.', ({ backend, model }: ModelView, { gateway, call }) =>
        mayDelete(gateway, call, backend, model),
      ),
    ),
    wire: t.field(
      action('`wireModel`', async ({ backend, model }: ModelView, context) =>
        mayWire(context.gateway, context.call, backend, model, await wiringOf({ backend }, context)),
      ),
    ),
    unwire: t.field(
      action('`unwireModel`', async ({ backend, model }: ModelView, context) =>
        mayUnwire(context.gateway, context.call, model, await wiringOf({ backend }, context)),
      ),
    ),
  }),
});

interface PresetView {
  readonly backend: Backend;
  readonly preset: Preset;
}

const actOnPreset =
  (what: ModelAction) =>
  ({ backend, preset }: PresetView, { gateway, call }: Context) =>
    mayAct(gateway, call, backend, what, { name: preset.model, preset: preset.name });

const PresetActionsRef = builder.objectRef<PresetView>('PresetActions').implement({
  description: 'What the caller may do with a preset.',
  fields: t => ({
    pull: t.field(action('`pullModel` of its weights.', actOnPreset('pull'))),
    load: t.field(action('`loadModel` by it. Whether it fits is for `fit` to say.', actOnPreset('load'))),
  }),
});

const actOnAny =
  (what: ModelAction) =>
  ({ backend }: BackendView, { gateway, call }: Context) =>
    mayAct(gateway, call, backend, what);

const BackendActionsRef = builder.objectRef<BackendView>('BackendActions').implement({
  description: 'What the caller may do on a backend, whichever model it is done to.',
  fields: t => ({
    pull: t.field(action('`pullModel`', actOnAny('pull'))),
    load: t.field(action('`loadModel`', actOnAny('load'))),
    unload: t.field(action('`unloadModel`', actOnAny('unload'))),
    delete: t.field(action('`deleteModel`', actOnAny('delete'))),
    remove: t.field(
      action('`removeBackend`', ({ backend }: BackendView, { gateway, call }) => mayRemove(gateway, call, backend)),
    ),
  }),
});

const description = 'What the caller may do with it.';
const goneDescription = `${description} Null when its backend is gone.`;

builder.objectField(ModelRef, 'actions', t =>
  t.field({
    type: ModelActionsRef,
    nullable: true,
    description: goneDescription,
    resolve: (model, _args, { gateway }) => {
      const backend = backendNamed(gateway.registry, model.backend);
      return backend && { backend, model };
    },
  }),
);

builder.objectField(PresetRef, 'actions', t =>
  t.field({
    type: PresetActionsRef,
    nullable: true,
    description: goneDescription,
    resolve: (preset, _args, { gateway }) => {
      const backend = backendNamed(gateway.registry, preset.backend);
      return backend && { backend, preset };
    },
  }),
);

builder.objectField(BackendRef, 'actions', t =>
  t.field({ type: BackendActionsRef, description, resolve: view => view }),
);
