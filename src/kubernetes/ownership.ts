/** What the gateway writes on every object that it makes, and knows its own by. */

export const managedByLabel = 'app.kubernetes.io/managed-by';
export const manager = 'model-manager';

/** A label or annotation of ours: `model-manager.giantswarm.io/model` has the model that an object is about. */
export const ownKey = <Name extends string>(name: Name) => `model-manager.giantswarm.io/${name}` as const;
/** What an object is for, where it is one of ours only. */
export const componentLabel = ownKey('component');
export const modelAnnotation = ownKey('model');
