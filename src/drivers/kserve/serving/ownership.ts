/** Which of the objects that serve models may be taken for the gateway's own, and what each is in words. */
import { manager } from '../../../kubernetes/ownership.ts';
import type { ServedModel } from './served.ts';

/** Made by the gateway, or from a preset as others make it, too. All others are to be seen only. */
export const isManageable = ({ managedBy, labelledPreset }: Pick<ServedModel, 'managedBy' | 'labelledPreset'>) =>
  managedBy === manager || Boolean(labelledPreset);

export const serviceWords = ({ namespace, name }: Pick<ServedModel, 'namespace' | 'name'>) =>
  `LLMInferenceService ${namespace}/${name}`;

export const managedByWords = ({ managedBy = '' }: Pick<ServedModel, 'managedBy'>) => `managed by "${managedBy}"`;
