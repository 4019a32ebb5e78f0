import { backendError, conflict, type GatewayError, invalidRequest, modelNotFound } from '../../errors.ts';
import { answerWords, documentIn, type HttpAnswer, isRedirect, oneLine, redirectAdvice } from '../http.ts';

/** What was asked, for the message and for what an answer can mean. */
export interface Question {
  readonly method: string;
  readonly path: string;
  /** As the gateway dials it. */
  readonly endpoint: string;
  /** The model the question is about; absent for the lists. */
  readonly model?: string | undefined;
}

/** A failure in Lemonade's words. */
export interface Refused {
  readonly text: string;
  readonly code?: string | undefined;
  /** It is the path that is unknown, not the model. */
  readonly noSuchPath?: boolean;
}

/**
 * The failure a document tells of, if it does. Four shapes are in use: `{"error": "text"}`, `{"error": {"message", "code",
 * "type", "path"}}`, `{"code", "error": "text"}` and `{"status": "error", "message"}`.
 */
export function refusedIn(document: unknown): Refused | undefined {
  if (!isObject(document)) return undefined;
  const { error, code, status, message } = document;
  if (isObject(error)) {
    const own = textIn(error.code);
    return {
      text: textIn(error.message) ?? JSON.stringify(error),
      code: own ?? (error.type === 'model_not_found' ? error.type : undefined),
      noSuchPath: own === undefined && (error.path !== undefined || /endpoint/i.test(textIn(error.message) ?? '')),
    };
  }
  if (textIn(error) !== undefined) return { text: textIn(error) as string, code: textIn(code) };
  const failed = typeof status === 'string' && status.toLowerCase() === 'error';
  return failed ? { text: textIn(message) ?? 'it reports an error without words', code: textIn(code) } : undefined;
}

/** The failure a status outside 200–299 stands for. */
export function refusal(question: Question, answer: HttpAnswer): GatewayError {
  const { status } = answer;
  const refused = isRedirect(status) ? undefined : refusedIn(documentIn(answer));
  if (refused && !refused.noSuchPath && status !== 405) return refusalInWords(question, status, refused);

  const what = `lemonade: ${question.method} ${question.path}: `;
  const found = `${refused ? oneLine(refused.text) : answerWords(answer)} (HTTP ${status})`;
  if (isRedirect(status)) return backendError(`${what}${found}; ${redirectAdvice}`);
  if (isMissingPath(status))
    return backendError(
      `${what}${question.endpoint} has no such endpoint; is this the root address of a Lemonade Server, and is the server ` +
        `up to date?: ${found}`,
    );
  if (status === 401 || status === 403 || status === 407)
    return backendError(
      `${what}${found}; something in front of Lemonade asks for credentials, and the gateway has none`,
    );
  return backendError(`${what}${found}`);
}

export const isMissingPath = (status: number) => status === 404 || status === 405;

/** Codes that say that a model is unknown, or not for this machine. */
const unknown = new Set(['model_not_found', 'model_not_supported', 'unknown_model', 'not_found']);

/**
 * Code and status decide. The text counts only where there is nothing else: "not found" occurs in the failures of models that
 * are there, such as a library that one needs.
 */
function refusalInWords({ model }: Question, status: number, refused: Refused): GatewayError {
  const { text, code } = refused;
  const words = `lemonade: ${oneLine(text)} (HTTP ${status})`;
  if (status === 401)
    return backendError(`${words}; the server wants an API key (LEMONADE_API_KEY), and the gateway has none for it`);
  if (status === 403) return backendError(`${words}; the server, or a proxy before it, does not let the gateway in`);
  if (status === 409) return conflict(words);
  // A list has no model that could be missing or badly named.
  if (model === undefined) return backendError(words);
  if (isUnknownModel(refused) || status === 404) return modelNotFound(wordsFor(model, refused, words));
  if (code === 'lemond_offline') return backendError(words);
  if (status === 422 && code === undefined && /not found/i.test(text)) return modelNotFound(words);
  return status === 400 || status === 422 ? invalidRequest(words) : backendError(words);
}

const isUnknownModel = ({ code }: Refused) => code !== undefined && unknown.has(code);

/** The words of a refusal, unless the server speaks of registering models, which is not what was asked for. */
function wordsFor(model: string, { code }: Refused, words: string): string {
  return code === 'unknown_model'
    ? `lemonade: ${oneLine(model, 200)} is not in the catalog of the server; names differ by case, and models of your own ` +
        'have to be registered there first'
    : words;
}

/** The failure an `error` event of a pull stands for; the HTTP status was 200 all along. */
export function pullRefusal(model: string, refused: Refused): GatewayError {
  const words = `lemonade: ${oneLine(refused.text)}`;
  // Only the server's own sentences, from their beginning: the same words occur inside other failures.
  const ownWords =
    /^(?:Hugging Face repository not found\b|Model not found: |Model '.*' (?:was not found|is not available on this system))/s;
  const missing = isUnknownModel(refused) || (refused.code === undefined && ownWords.test(refused.text));
  return missing ? modelNotFound(wordsFor(model, refused, words)) : backendError(words);
}

/** The failure of an answer that has the status of a success and is not one, or is not what Lemonade would send. */
export function notLemonade(question: Question, answer: HttpAnswer): GatewayError {
  const { method, path, endpoint } = question;
  const document = documentIn(answer);
  const refused = refusedIn(document);
  const itsOwn = refused?.code !== undefined || (isObject(document) && typeof document.status === 'string');
  if (refused && itsOwn) return refusalInWords(question, answer.status, refused);
  const error = refused && oneLine(refused.text, 200);
  const lmStudio =
    (error !== undefined && /unexpected endpoint or method/i.test(error)) ||
    // The same path has a list of another shape there.
    (path === '/api/v1/models' && isObject(document) && Array.isArray(document.models));
  const found = lmStudio
    ? `is LM Studio${error ? ` ("${error}")` : ''}; configure it as an lmstudio backend`
    : `did not answer like Lemonade but with ${error ? `the error "${error}"` : answerWords(answer)}`;
  return backendError(`lemonade: ${method} ${path}: ${endpoint} ${found} (HTTP ${answer.status})`);
}

/** The failure of an Ollama that was configured as a Lemonade. */
export const ollamaFound = ({ method, path, endpoint }: Question, version: string) =>
  backendError(
    `lemonade: ${method} ${path}: ${endpoint} is Ollama ${oneLine(version, 40)}; configure it as an ollama backend`,
  );

const textIn = (value: unknown) => (typeof value === 'string' && value.trim() !== '' ? value : undefined);
export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
