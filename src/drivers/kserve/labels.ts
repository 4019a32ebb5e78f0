/** What this backend writes on its objects, and knows them by. */
import { componentLabel, managedByLabel, manager, ownKey } from '../../kubernetes/ownership.ts';

/** Of the cache: the directory that an object's weights are in. */
export const directoryLabel = 'model-manager.giantswarm.io/model-dir';
export const presetLabel = 'agent-platform.giantswarm.io/preset';

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
