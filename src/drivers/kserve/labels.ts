/** What this backend writes on its objects, and knows them by. */

export const managedByLabel = 'app.kubernetes.io/managed-by';
export const manager = 'model-manager';
export const componentLabel = 'model-manager.giantswarm.io/component';
/** Of the cache: the directory that an object's weights are in. */
export const directoryLabel = 'model-manager.giantswarm.io/model-dir';
export const presetLabel = 'agent-platform.giantswarm.io/preset';

/** A label or annotation of ours: `model-manager.giantswarm.io/model` has the repository of what an object is about. */
export const ownKey = <Name extends string>(name: Name) => `model-manager.giantswarm.io/${name}` as const;
export const modelAnnotation = ownKey('model');

type Component = 'cache-tool' | 'download' | 'cache-index';

/** On everything that this backend creates. */
export const ownLabels = (component?: Component) => ({
  [managedByLabel]: manager,
  [ownKey('backend')]: 'kserve',
  ...(component && { [componentLabel]: component }),
});

/** Selects what this backend created. */
export const ownSelector = (component: Component) =>
  Object.entries(ownLabels(component))
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
