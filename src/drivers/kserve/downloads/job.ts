/** The Job that downloads a model into the cache. */
import { invalidRequest, quoted } from '../../../errors.ts';
import { prefixedLabel } from '../../../kubernetes/names.ts';
import { modelAnnotation, ownKey } from '../../../kubernetes/ownership.ts';
import { isRepository, isRevision } from '../hub/reference.ts';
import { markerFolder } from '../inventory/entry.ts';
import { cacheRoot } from '../inventory/scripts.ts';
import { textOf } from '../jobs/fields.ts';
import type { JobView } from '../jobs/job.ts';
import { cacheMount, cacheVolume, containerSecurity, placement, podBasics, shellCommand } from '../jobs/podParts.ts';
import { directoryLabel, ownLabels } from '../labels.ts';
import type { KserveSettings } from '../settings.ts';
import { downloadScript, prepareScript, stalledExitCode } from './scripts.ts';

export interface DownloadPlan {
  /** `owner/name` */
  readonly repository: string;
  /** Absent for the main branch. */
  readonly revision?: string | undefined;
  /** Of the cache: a label of DNS. */
  readonly directory: string;
  readonly preset?: string | undefined;
  /** Only where the claim is pinned, or the request named it; else the pool has a node. */
  readonly node?: string | undefined;
  /** Absent while nobody knows. */
  readonly bytesTotal?: number | undefined;
}

export const downloadContainer = 'download';
/** Where models come from unless it is told otherwise. */
const usualHub = 'https://huggingface.co';

const annotationNames = {
  directory: ownKey('cache-dir'),
  node: ownKey('node'),
  preset: ownKey('preset'),
  revision: ownKey('revision'),
  bytesTotal: ownKey('bytes-total'),
};

export const downloadJobName = (directory: string) => prefixedLabel('mm-pull-', directory);

/** Throws `invalid_request` for what can be no repository, no revision or no directory: all of them stand in scripts. */
export function downloadJob(settings: KserveSettings, plan: DownloadPlan) {
  checkPlan(plan);
  const { repository, directory, node } = plan;
  const { image, toolImage, jobTtl } = settings.downloads;
  const name = downloadJobName(directory);
  const labels = { ...ownLabels('download'), [directoryLabel]: directory };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: settings.namespace, labels, annotations: annotationsOf(plan) },
    spec: {
      backoffLimit: 2,
      ttlSecondsAfterFinished: secondsOf(jobTtl),
      podFailurePolicy: {
        rules: [
          {
            action: 'FailJob',
            onExitCodes: { containerName: downloadContainer, operator: 'In', values: [stalledExitCode] },
          },
          { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
        ],
      },
      template: {
        metadata: { labels, annotations: { [modelAnnotation]: repository } },
        spec: {
          ...podBasics,
          ...placement(settings, node),
          initContainers: [
            {
              name: 'hf-cache-init',
              image: toolImage,
              command: shellCommand(prepareScript(directory)),
              securityContext: { ...containerSecurity, readOnlyRootFilesystem: true },
              volumeMounts: [cacheMount(cacheRoot, false)],
            },
          ],
          containers: [
            {
              name: downloadContainer,
              image,
              command: shellCommand(downloadScript()),
              env: environmentOf(settings, plan, name),
              resources: { requests: { cpu: '250m', memory: '512Mi' }, limits: { memory: '4Gi' } },
              securityContext: containerSecurity,
              volumeMounts: [cacheMount(cacheRoot, false), { name: 'tmp', mountPath: '/tmp' }],
            },
          ],
          volumes: [cacheVolume(settings.cache.claim, false), { name: 'tmp', emptyDir: {} }],
        },
      },
    },
  };
}

function checkPlan({ repository, revision, directory }: DownloadPlan): void {
  if (!isRepository(repository)) throw invalidRequest(`model ${quoted(repository)}: want owner/name`);
  if (revision !== undefined && !isRevision(revision)) {
    throw invalidRequest(`revision ${quoted(revision)}: want a branch, a tag or a commit`);
  }
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(directory)) {
    throw invalidRequest(`cache directory ${quoted(directory)}: want at most 63 of a-z, 0-9 and inner dashes`);
  }
}

/** What is not known is left out. */
function annotationsOf({ repository, directory, node, preset, revision, bytesTotal }: DownloadPlan) {
  return {
    [modelAnnotation]: repository,
    [annotationNames.directory]: directory,
    ...(node && { [annotationNames.node]: node }),
    ...(preset && { [annotationNames.preset]: preset }),
    ...(revision && { [annotationNames.revision]: revision }),
    ...(bytesTotal !== undefined && { [annotationNames.bytesTotal]: String(bytesTotal) }),
  };
}

function environmentOf({ hub, downloads }: KserveSettings, plan: DownloadPlan, job: string) {
  const { repository, revision = '', directory, bytesTotal } = plan;
  const values = {
    MM_SRC: `hf://${repository}${revision && `:${revision}`}`,
    MM_DST: `${cacheRoot}/${directory}`,
    MM_DIRNAME: directory,
    MM_MARKER: `${cacheRoot}/${markerFolder}/${directory}.json`,
    MM_MODEL: repository,
    MM_REVISION: revision,
    MM_BYTES: bytesTotal === undefined ? '' : String(bytesTotal),
    MM_JOB: job,
    MM_STALL_SECONDS: String(secondsOf(downloads.stallTimeout)),
    HF_HOME: '/tmp/hf',
    // Its transfers stop without a word, and nothing notices.
    HF_HUB_DISABLE_XET: '1',
    HF_HUB_ENABLE_HF_TRANSFER: '1',
    ...(hub.endpoint !== usualHub && { HF_ENDPOINT: hub.endpoint }),
    ...(downloads.ignorePatterns.length > 0 && { STORAGE_IGNORE_PATTERNS: JSON.stringify(downloads.ignorePatterns) }),
  };
  const { tokenSecret } = hub;
  return [
    ...Object.entries(values).map(([name, value]) => ({ name, value })),
    ...(tokenSecret ? [{ name: 'HF_TOKEN', valueFrom: { secretKeyRef: { ...tokenSecret, optional: true } } }] : []),
  ];
}

const secondsOf = (ms: number) => Math.max(1, Math.round(ms / 1000));

/** What a Job says that it downloads, by its annotations; undefined when it names no model. */
export function plannedBy({ annotations }: Pick<JobView, 'annotations'>): DownloadPlan | undefined {
  const said = (name: string) => textOf(annotations[name]);
  const repository = said(modelAnnotation);
  if (repository === undefined) return undefined;
  const bytes = said(annotationNames.bytesTotal) ?? '';
  return {
    repository,
    revision: said(annotationNames.revision),
    directory: said(annotationNames.directory) ?? '',
    preset: said(annotationNames.preset),
    node: said(annotationNames.node),
    bytesTotal: /^\d{1,15}$/.test(bytes) ? Number(bytes) : undefined,
  };
}
