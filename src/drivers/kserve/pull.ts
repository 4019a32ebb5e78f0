/** Pulls: what has to be true before a download begins, in the order in which it is looked at. */
import type { Call } from '../../call.ts';
import type { PullProgress } from '../../domain.ts';
import { doesNotFit, invalidRequest } from '../../errors.ts';
import type { PullPlan, PullRequest, UnfinishedPull } from '../driver.ts';
import { endedByLeaving } from '../progress.ts';
import type { DownloadPlan } from './downloads/job.ts';
import type { Downloads } from './downloads.ts';
import { isPinned } from './nodes/cacheLocation.ts';
import { isModelImage, type ServingPreset } from './presets.ts';
import type { Questions } from './questions.ts';

interface Options {
  readonly questions: Pick<Questions, 'ask' | 'place'>;
  readonly downloads: Downloads;
}

/** Throws `invalid_request` for what is never downloaded. */
export function checkDownloaded(model: string, preset: ServingPreset | undefined): void {
  if (!preset || !isModelImage(preset)) return;
  throw invalidRequest(
    `${model} is served from an OCI model image the platform pre-pulls on its GPU nodes (preset ${preset.name}, ${preset.storageUri}); nothing to download`,
  );
}

export function createPulls({ questions, downloads }: Options) {
  /** Everything that is decided before a download. */
  async function decide(call: Call, request: PullRequest) {
    const { preset, model } = await questions.ask(call, request);
    checkDownloaded(model, preset);
    const { question, fit, isThere, location } = await questions.place(call, request, 'budget');
    if (!fit.fits) throw doesNotFit(fit.reason ?? fit.model, { details: { fit } });
    const { repository, revision, directory } = question;
    if (fit.gated && !fit.tokenConfigured) {
      throw invalidRequest(
        `${repository} is gated; configure a Hugging Face token (kserve.hf.tokenSecret) to download it`,
      );
    }
    const download: DownloadPlan = {
      repository,
      revision: revision === 'main' ? undefined : revision,
      directory,
      preset: question.preset?.name,
      // The pool may bring any node; only one that was named, or that alone has the claim, is meant.
      node: question.node ?? (isPinned(location) ? fit.node : undefined),
      bytesTotal: fit.downloadBytes,
    };
    return { fit, isThere, download };
  }

  async function* pulled(call: Call, request: PullRequest): AsyncGenerator<PullProgress> {
    const { fit, isThere, download } = await decide(call, request);
    if (!isThere) return yield* downloads.start(call, download);
    const { downloadBytes: bytes = 0 } = fit;
    const { node, preset } = download;
    yield { status: 'already cached', bytesCompleted: bytes, bytesTotal: bytes, node, preset };
  }

  return {
    pull: (call: Call, request: PullRequest) => endedByLeaving(call, bounded => pulled(bounded, request)),

    async plan(call: Call, request: PullRequest): Promise<PullPlan> {
      const { fit, isThere: present, download } = await decide(call, request);
      if (present) return { present, fit, manifests: [], deletes: [] };
      return { present, fit, ...(await downloads.plan(call, download)) };
    },

    async unfinished(call: Call): Promise<UnfinishedPull[]> {
      const running = await downloads.unfinished(call);
      return running.map(download => ({
        request: requestOf(download),
        follow: work => downloads.follow(work, download),
      }));
    },
  };
}

const requestOf = ({ repository, revision, preset, node }: DownloadPlan): PullRequest => ({
  model: revision ? `${repository}:${revision}` : repository,
  preset,
  node,
});
