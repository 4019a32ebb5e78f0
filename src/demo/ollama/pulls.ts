import type { Clock } from '../host/clock.ts';
import { completedAt, endsAt, type Transfer } from '../host/transfer.ts';
import type { Features } from './features.ts';
import { findPublished, type Published, pruneBlobs, type State, type StoredLayer, store } from './models.ts';
import { display, type Name } from './names.ts';

/** One layer, or what is fetched as one, on its way. */
export interface Download extends Transfer {
  /** What it ends with, if not with its last byte. */
  readonly error?: string | undefined;
  /** Pulls that wait for it. */
  watchers: number;
}

export interface PullTimings {
  /** Between two progress lines. */
  readonly tickMs: number;
  /** Until the first byte of a layer moves. */
  readonly firstByteMs: number;
  readonly manifestMs: number;
  /** All layers, where the model does not say. */
  readonly pullMs: number;
  /** No line is sent meanwhile. */
  readonly verifyMs: number;
}

export interface Puller {
  readonly state: State;
  readonly clock: Clock;
  readonly features: Features;
  readonly timings: PullTimings;
}

export type PullLine =
  | { readonly status: string; readonly digest?: string; readonly total?: number; readonly completed?: number }
  | { readonly error: string };

/** What is fetched and reported as one: a layer, or all layers of a tensor model. */
interface Part {
  readonly key: string;
  readonly status: string;
  readonly digest: string;
  readonly bytes: number;
  readonly layers: readonly StoredLayer[];
  /** Bytes of the parts before it. */
  readonly offset: number;
}

/** The lines of one pull, in their time. Ends early when the signal aborts; the bytes so far stay for the next pull. */
export async function* pull(puller: Puller, name: Name, signal: AbortSignal): AsyncGenerator<PullLine> {
  const { state, clock, features, timings } = puller;
  yield { status: 'pulling manifest' };
  await clock.sleep(timings.manifestMs, signal);

  const published = findPublished(state, name);
  if (!published) return yield { error: missing(name) };
  if (fails(published, 'manifest')) return yield { error: failing(published) };

  const parts = partsOf(published, features);
  for (const part of parts) {
    const error = yield* fetchPart(puller, published, part, signal);
    if (error !== undefined) return yield { error };
  }

  if (!isTensor(published, features)) {
    yield { status: 'verifying sha256 digest' };
    await clock.sleep(timings.verifyMs, signal);
    if (fails(published, 'verify')) {
      const bad = published.model.layers[0];
      if (bad) state.blobs.delete(bad.digest);
      return yield { error: failing(published, mismatch(bad?.digest ?? '')) };
    }
  }

  yield { status: 'writing manifest' };
  const shown = display(name);
  const before = state.models.get(shown)?.layers ?? [];
  const after = new Set(published.model.layers.map(layer => layer.digest));
  store(state, { ...published.model, name, shown, modifiedAt: clock.now() });
  if (before.some(layer => !after.has(layer.digest))) {
    yield { status: features.shortPruneStatus ? 'removing unused layers' : 'removing any unused layers' };
    pruneBlobs(state);
  }
  yield { status: 'success' };
}

/** Reports a part until it is there; returns the error it ends with, if it does. */
async function* fetchPart(
  puller: Puller,
  published: Published,
  part: Part,
  signal: AbortSignal,
): AsyncGenerator<PullLine, string | undefined> {
  const { state, clock, timings } = puller;
  const line = (completed: number) => ({
    status: part.status,
    digest: part.digest,
    ...(part.bytes > 0 ? { total: part.bytes } : {}),
    ...(completed > 0 ? { completed } : {}),
  });
  if (part.layers.every(layer => state.blobs.has(layer.digest))) {
    yield line(part.bytes);
    return undefined;
  }

  const download = state.downloads.get(part.key) ?? begin(puller, published, part);
  download.watchers++;
  try {
    for (;;) {
      const left = endsAt(download) - clock.now();
      await clock.sleep(Math.min(left, timings.tickMs), signal);
      if (clock.now() >= endsAt(download)) return finish(state, published, part, download);
      yield line(completedAt(download, clock.now()));
    }
  } finally {
    download.watchers--;
    if (download.watchers === 0) interrupt(state, part, download, clock.now());
  }
}

function begin({ state, clock, timings }: Puller, published: Published, part: Part): Download {
  const { pullMs = timings.pullMs, stall, failure, model } = published;
  const from = state.partials.get(part.key) ?? 0;
  const stallAt = stall && stall.at - part.offset;
  const failAt = typeof failure?.at === 'number' && isDue(published) ? failure.at - part.offset : undefined;
  const within = (at: number | undefined): at is number => at !== undefined && at >= 0 && at < part.bytes;
  const download: Download = {
    bytes: part.bytes,
    from,
    startedAt: clock.now(),
    firstByteMs: timings.firstByteMs,
    msPerByte: model.bytes > 0 ? pullMs / model.bytes : 0,
    stall: stall && within(stallAt) && stallAt > from ? { at: stallAt, ms: stall.ms } : undefined,
    ...(within(failAt) && { endsEarly: Math.max(failAt, from), error: failure?.error ?? 'unexpected EOF' }),
    watchers: 0,
  };
  state.downloads.set(part.key, download);
  return download;
}

/** The end of a download, which the first of its watchers to wake up brings about for all. */
function finish(state: State, published: Published, part: Part, download: Download): string | undefined {
  if (state.downloads.get(part.key) === download) {
    state.downloads.delete(part.key);
    if (download.endsEarly !== undefined) {
      state.partials.set(part.key, download.endsEarly);
      published.failed++;
    } else {
      state.partials.delete(part.key);
      for (const layer of part.layers) state.blobs.set(layer.digest, layer.bytes);
    }
  }
  return download.error;
}

/** Nobody waits for it any more. A download that is over, or that a restart has thrown away, is not listed. */
function interrupt(state: State, part: Part, download: Download, now: number): void {
  if (state.downloads.get(part.key) !== download) return;
  state.downloads.delete(part.key);
  state.partials.set(part.key, completedAt(download, now));
}

const isTensor = ({ model }: Published, features: Features) =>
  features.tensorPull && model.facts.format === 'safetensors';

function partsOf(published: Published, features: Features): Part[] {
  const { model } = published;
  if (isTensor(published, features)) {
    const digest = 'sha256:model';
    return [{ key: model.shown, status: 'pulling model', digest, bytes: model.bytes, layers: model.layers, offset: 0 }];
  }
  let offset = 0;
  return model.layers.map(layer => {
    const { digest, bytes } = layer;
    const part = { key: digest, status: `pulling ${digest.slice(7, 19)}`, digest, bytes, layers: [layer], offset };
    offset += bytes;
    return part;
  });
}

const isDue = ({ failure, failed }: Published) => failed < (failure?.times ?? Number.POSITIVE_INFINITY);

const fails = (published: Published, at: 'manifest' | 'verify') => published.failure?.at === at && isDue(published);

function failing(published: Published, error = 'pull model manifest: file does not exist'): string {
  published.failed++;
  return published.failure?.error ?? error;
}

function missing({ host }: Name): string {
  // Hugging Face answers on another host than the one that was asked, and the server takes offence at that.
  if (host === 'hf.co') {
    return 'pull model manifest: realm host "huggingface.co" does not match original host "hf.co"';
  }
  return 'pull model manifest: file does not exist';
}

const mismatch = (digest: string) =>
  `digest mismatch, file must be downloaded again: want ${digest}, got sha256:${[...digest.slice(7)].reverse().join('')}`;
