/** Where things are in the serving cluster of the demo, and since when. */

export const servingNamespace = 'model-serving';
/** Of presets, and of the document that says how models are served. */
export const presetNamespace = 'agent-platform';
export const controllerNamespace = 'kserve';

const pool = 'giantswarm.io/machine-pool';
/** Labels of the nodes of the pool that models are served on: it has some. */
export const servingPool = { [pool]: 'gpu-l4' };
/** What keeps everything else off its nodes. */
export const poolTaint = { key: 'nvidia.com/gpu', effect: 'NoSchedule' };
/** Labels of those of another one: it has none. */
export const largePool = { [pool]: 'gpu-h100' };

export const gatewayEndpoint = 'https://models.example.com';
/** The claim of the cache, and its volume. */
export const cacheClaim = 'hf-cache';
export const cacheVolume = 'pv-hf-cache';
export const tokenSecret = 'hf-token';
/** From when on most of it is there. */
export const since = '2026-08-20T06:00:00Z';
