import type { Features } from '../features.ts';

/** The data of an event; bytes are those of one file. */
export interface Progress {
  readonly bytes_downloaded: number;
  readonly bytes_previously_downloaded: number;
  readonly bytes_total: number;
  readonly file: string;
  readonly file_index: number;
  readonly percent: number;
  readonly total_download_size?: number;
  readonly total_files: number;
}

export type PullEvent =
  | { readonly event: 'progress' | 'complete'; readonly data: Progress }
  | { readonly event: 'error'; readonly data: { readonly code?: string; readonly error: string } };

/** Which file is meant. */
export interface Place {
  readonly file: string;
  /** From 1. */
  readonly index: number;
  readonly files: number;
  /** Of all files; 0 when the server does not say. */
  readonly size: number;
}

interface Count {
  readonly done: number;
  readonly total: number;
  /** Of these, what an earlier attempt brought. */
  readonly previous?: number;
  /** Of the file, where nothing else is said. */
  readonly percent?: number;
}

export function progressAt(features: Features, place: Place, { done, total, previous = 0, percent }: Count): Progress {
  return {
    bytes_downloaded: done,
    bytes_previously_downloaded: previous,
    bytes_total: total,
    file: place.file,
    file_index: place.index,
    percent: percent ?? (total > 0 ? Math.floor((100 * done) / total) : 0),
    ...(features.totalDownloadSize ? { total_download_size: place.size } : {}),
    total_files: place.files,
  };
}

export const progress = (features: Features, place: Place, count: Count): PullEvent => ({
  event: 'progress',
  data: progressAt(features, place, count),
});
