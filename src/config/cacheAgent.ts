/** The settings of `model-manager cache-agent`. */
import type { Setting } from './settings.ts';
import { address, type ListenAddress, text } from './values.ts';

export interface CacheAgentSettings {
  readonly root: string;
  readonly listen: ListenAddress;
  readonly node: string;
}

export const cacheAgentSettings: { readonly [Name in keyof CacheAgentSettings]: Setting<CacheAgentSettings[Name]> } = {
  root: {
    group: 'Server',
    flag: 'root',
    variables: [],
    kind: { ...text, placeholder: 'PATH' },
    default: '/mnt/models',
    help: 'The folder where the volume claim of the cache is mounted.',
  },
  listen: {
    group: 'Server',
    flag: 'listen',
    variables: [],
    kind: address,
    default: ':8081',
    help: 'The address to listen on.',
  },
  node: {
    group: 'Server',
    flag: 'node',
    variables: ['NODE_NAME'],
    kind: { ...text, placeholder: 'NAME' },
    default: '',
    defaultMeans: 'none',
    help: 'The node that this runs on; it has to be given.',
  },
};
