import type { Call } from '../../call.ts';
import { backendError, type GatewayError, invalidRequest, modelNotFound } from '../../errors.ts';
import { answerWords, documentIn, type HttpAnswer, isRedirect, isSuccess, oneLine, redirectAdvice } from '../http.ts';
import { type Complaint, complaintIn } from './wire.ts';

/** What was asked, for the message and for what an answer can mean. */
export interface Question {
  readonly method: string;
  readonly path: string;
  /** As the gateway dials it. */
  readonly endpoint: string;
  /** The reference the question is about; absent where no caller named one. */
  readonly model?: string | undefined;
  /** Whether an API token was sent along. */
  readonly withToken: boolean;
}

/** The variable the operator puts the server's API token into. */
const tokenVariable = 'LMSTUDIO_API_TOKEN';
const versionNeeded = 'LM Studio 0.4.0 or newer is needed';

/** The failure an answer stands for that is not the one LM Studio gives when it does what it was asked, of any status. */
export function failureIn(question: Question, answer: HttpAnswer): GatewayError {
  const { status } = answer;
  const complaint = complaintIn(documentIn(answer));
  const what = `lmstudio: ${question.method} ${question.path}: `;
  const found = `${answerWords(answer)} (HTTP ${status})`;
  if (isRedirect(status)) return backendError(`${what}${found}; ${redirectAdvice}`);
  // Before its type, which says that the request is invalid.
  if (status === 401 || status === 403 || complaint?.code === 'invalid_api_key')
    return backendError(what + tokenWords(question, status, complaint ? oneLine(complaint.text) : answerWords(answer)));
  if (isSuccess(status))
    return backendError(`${what}${question.endpoint} ${insteadWords(question, answer, complaint)}`);
  if (complaint) return refusalInWords(question, status, complaint);
  if (status === 404 || status === 405)
    return backendError(
      `${what}${question.endpoint} has no such endpoint; is this the root address of LM Studio, 0.4.0 or newer?: ${found}`,
    );
  return backendError(what + found);
}

function tokenWords({ endpoint, withToken }: Question, status: number, words: string): string {
  const which = withToken ? `an API token other than the one in ${tokenVariable}` : 'an API token';
  return (
    `${endpoint} needs ${which}: ${words} (HTTP ${status}); make one in the server settings of LM Studio and put it ` +
    `into ${tokenVariable}`
  );
}

/** What a server did that answered with the status of a success. LM Studio itself does so for paths it does not know. */
function insteadWords(question: Question, answer: HttpAnswer, complaint: Complaint | undefined): string {
  const status = `(HTTP ${answer.status})`;
  if (complaint) {
    const said = `answered the error "${oneLine(complaint.text)}" ${status}`;
    return complaint.type === undefined ? `${said}; ${versionNeeded}${rootAdvice(question)}` : said;
  }
  const data = (documentIn(answer) as { data?: unknown } | null | undefined)?.data;
  if (!Array.isArray(data)) return `did not answer like LM Studio but with ${answerWords(answer)} ${status}`;
  if (data.some(row => row?.owned_by === 'lemonade' || typeof row?.recipe === 'string'))
    return `is a Lemonade Server; configure it as a lemonade backend ${status}`;
  return `answered with a model list of the OpenAI kind, as a Lemonade Server and others do, not with LM Studio's ${status}`;
}

function rootAdvice({ endpoint }: Question): string {
  const { pathname } = new URL(endpoint);
  return pathname === '/' ? '' : `, at its root address without ${pathname}`;
}

function refusalInWords({ model }: Question, status: number, { text, type, code }: Complaint): GatewayError {
  const words = `lmstudio: ${oneLine(text)} (HTTP ${status})`;
  const kinds = [type, code];
  if (kinds.includes('job_not_found'))
    return backendError(`${words}; LM Studio forgets its downloads when it restarts, so pull the model again`);
  // Only what a caller named can be unknown or wrong; a failure of the server may have the same words in it.
  if (model === undefined || status >= 500) return backendError(words);
  if (status === 404 || kinds.includes('model_not_found') || /not found/i.test(text)) return modelNotFound(words);
  const invalid = kinds.some(kind => kind?.startsWith('invalid_') || kind === 'not_implemented');
  return invalid || status === 400 || status === 422 ? invalidRequest(words) : backendError(words);
}

/** Whether an instance that was to be unloaded is not there, which is what was wanted. */
export function saysNotLoaded(answer: HttpAnswer): boolean {
  const complaint = complaintIn(documentIn(answer));
  if (!complaint || answer.status < 400 || answer.status >= 500) return false;
  return /\bnot loaded\b/i.test(complaint.text) || complaint.type === 'model_not_found';
}

/** The failure of a host that speaks Ollama's language. */
export const ollamaFound = (endpoint: string, version: string) =>
  backendError(
    `lmstudio: GET /api/v1/models: ${endpoint} is Ollama ${oneLine(version, 40)}; configure it as an ollama backend`,
  );

/** The failure of a caller who left while nothing was being asked. */
export function abandoned({ signal }: Call, what: string): GatewayError {
  const late = signal.reason?.name === 'TimeoutError';
  const words = late ? "not done before the request's deadline" : 'cancelled by the caller';
  return backendError(`lmstudio: ${oneLine(what, 200)}: ${words}`, { cause: signal.reason });
}
