/** The Jobs that look at the cache and remove from it. */
import { randomInt } from 'node:crypto';
import type { Manifest } from '../../../domain.ts';
import { invalidRequest, quoted } from '../../../errors.ts';
import { cutLabel, longLabelOf, maxLabelLength, slugOf } from '../../../kubernetes/names.ts';
import { cacheMount, cacheVolume, containerSecurity, placement, podBasics, shellCommand } from '../jobs/podParts.ts';
import { ownLabels } from '../labels.ts';
import type { KserveSettings } from '../settings.ts';
import { cacheRoot, removeScript, scanScript } from './scripts.ts';

/** Counts the claim: as a node has it mounted, where only some nodes have it. */
export const scanJob = (settings: KserveSettings, node: string | undefined, suffix = randomSuffix()) =>
  toolJob(settings, {
    name: named('mm-scan', node ? slugOf(node) : '', suffix),
    script: scanScript(),
    node,
    readOnly: true,
  });

/** Removes a directory of the claim. Throws `invalid_request` for one that must not be removed. */
export function removeJob(
  settings: KserveSettings,
  directory: string,
  node: string | undefined,
  suffix = randomSuffix(),
): Manifest {
  checkRemovable(directory);
  const name = named('mm-rm', longLabelOf(directory), suffix);
  return toolJob(settings, { name, script: removeScript(), directory, node, readOnly: false });
}

export function checkRemovable(directory: string): void {
  if (directory === '' || directory.startsWith('.') || /[/\s\p{Cc}]/u.test(directory))
    throw invalidRequest(`refusing to remove cache directory ${quoted(directory)}`);
}

interface Tool {
  readonly name: string;
  readonly script: string;
  readonly directory?: string;
  readonly node: string | undefined;
  readonly readOnly: boolean;
}

function toolJob(settings: KserveSettings, { name, script, directory, node, readOnly }: Tool) {
  const labels = ownLabels('cache-tool');
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: settings.namespace, labels },
    spec: {
      backoffLimit: 0,
      ttlSecondsAfterFinished: 600,
      template: {
        metadata: { labels },
        spec: {
          ...podBasics,
          ...placement(settings, node),
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: 'tool',
              image: settings.downloads.toolImage,
              command: shellCommand(script),
              ...(directory !== undefined && { env: [{ name: 'MM_DIRNAME', value: directory }] }),
              resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '500m', memory: '128Mi' } },
              securityContext: { ...containerSecurity, readOnlyRootFilesystem: true },
              volumeMounts: [cacheMount(cacheRoot, readOnly)],
            },
          ],
          volumes: [cacheVolume(settings.cache.claim, readOnly)],
        },
      },
    },
  };
}

/** As API servers name pods: without vowels there are no words. */
const letters = 'bcdfghjklmnpqrstvwxz2456789';
const randomSuffix = () => Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('');

function named(prefix: string, middle: string, suffix: string): string {
  const cut = cutLabel(middle, maxLabelLength - prefix.length - suffix.length - 2);
  return [prefix, cut, suffix].filter(Boolean).join('-');
}
