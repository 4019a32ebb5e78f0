/** The memory a model needs: its weights as the Hub counts them, or as its preset declares them, and what comes on top. */
import { invalidRequest } from '../../../errors.ts';
import { type HubFacts, hubError, type Miss } from '../hub/facts.ts';
import { formatBytes, formatDuration } from '../units.ts';
import type { FitQuestion } from './question.ts';

export interface Need {
  readonly weightsBytes: number;
  /** What the weights were counted by. */
  readonly weightsSource: string;
  readonly declaredWeightsBytes: number | undefined;
  readonly overheadBytes: number;
  readonly requiredBytes: number;
  readonly downloadBytes: number | undefined;
  readonly gated: boolean;
  readonly private: boolean;
  /** `7.5 GiB weights (tree) + 12.0 GiB overhead = 19.5 GiB` */
  readonly text: string;
  /** Why it is the preset's word that counts, as the end of a reason; '' when it is not, or the Hub had none. */
  readonly fallback: string;
}

/**
 * Throws the Hub's failure where no preset stands in for it, and `invalid_request` when nobody knows what the model
 * weighs.
 */
export function needOf({ repository, preset }: FitQuestion, hub: HubFacts, defaultOverheadBytes: number): Need {
  const declared = preset?.weightsBytes;
  const { miss } = hub;
  if (miss && declared === undefined) throw hubError(miss);
  const weights = miss ? undefined : hub.weights;
  const weightsBytes = weights?.bytes ?? declared;
  if (weightsBytes === undefined) {
    throw invalidRequest(
      `cannot determine the weight size of ${repository}: it has no files of weights on the hub, and no preset declares it`,
    );
  }
  const weightsSource = weights?.source ?? 'preset';
  const overheadBytes = preset?.overheadBytes ?? defaultOverheadBytes;
  const requiredBytes = weightsBytes + overheadBytes;
  return {
    weightsBytes,
    weightsSource,
    declaredWeightsBytes: declared,
    overheadBytes,
    requiredBytes,
    downloadBytes: hub.downloadBytes,
    gated: hub.repository?.gated ?? miss?.why === 'refused',
    private: hub.repository?.private ?? false,
    text: `${formatBytes(weightsBytes)} weights (${weightsSource}) + ${formatBytes(overheadBytes)} overhead = ${formatBytes(requiredBytes)}`,
    fallback: miss ? `; weights from the preset's requirements: ${missInWords(miss)}` : '',
  };
}

function missInWords({ why, words, withinMs }: Miss): string {
  if (why === 'timeout' && withinMs !== undefined) {
    return `the Hugging Face Hub did not answer within ${formatDuration(Math.round(withinMs))}`;
  }
  return why === 'refused'
    ? 'the Hugging Face Hub refused the repository metadata (gated or private)'
    : `the Hugging Face Hub lookup failed (${words})`;
}

/** That the Hub has more than the preset declares, as the end of a reason. */
export function declarationClause({ weightsBytes, declaredWeightsBytes }: Need, fits: boolean): string {
  if (declaredWeightsBytes === undefined || weightsBytes <= declaredWeightsBytes) return '';
  const declared = `; the preset declares ${formatBytes(declaredWeightsBytes)} of weights`;
  const held = `the Hub holds ${formatBytes(weightsBytes)}`;
  return fits ? `${declared}, ${held}` : `${declared}; ${held}, which is what does not fit — correct the preset`;
}
