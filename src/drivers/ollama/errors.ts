import { backendError, type GatewayError, invalidRequest, modelNotFound } from '../../errors.ts';
import { answerWords, documentIn, type HttpAnswer, isRedirect, oneLine, redirectAdvice } from '../http.ts';

/** What was asked, for the message and for what an answer can mean. */
export interface Question {
  readonly method: string;
  readonly path: string;
  /** As the gateway dials it. */
  readonly endpoint: string;
  /** The reference the question is about; absent for the lists. */
  readonly model?: string | undefined;
}

/** The Ollama release that brought an endpoint, where a server in use may be older. */
const since: Readonly<Record<string, string>> = { '/api/ps': '0.1.38', '/api/embed': '0.2.6' };

/** Ollama's own error text: `{"error": "<text>"}`. Other products nest an object there. */
export function errorTextIn(answer: HttpAnswer): string | undefined {
  const document = documentIn(answer) as { error?: unknown } | null | undefined;
  return typeof document?.error === 'string' && document.error !== '' ? document.error : undefined;
}

/** The failure a status outside 200–299 stands for. */
export function refusal(question: Question, answer: HttpAnswer): GatewayError {
  const { status } = answer;
  const text = errorTextIn(answer);
  if (text !== undefined) return refusalInWords(question, status, text, 'signin_url' in (documentIn(answer) as object));

  const what = `ollama: ${question.method} ${question.path}: `;
  const found = `${answerWords(answer)} (HTTP ${status})`;
  if (isRedirect(status)) return backendError(`${what}${found}; ${redirectAdvice}`);
  // Ollama's router answers in plain text; a missing model would be JSON.
  if (status === 404 || status === 405) return backendError(`${what}${missing(question)}: ${found}`);
  if (status === 403 && answer.text.trim() === '')
    return backendError(
      `${what}refused without a word (HTTP 403); an Ollama bound to loopback does that when the Host it is asked for is ` +
        'not a local name: let the proxy in between send "Host: localhost", or set OLLAMA_HOST=0.0.0.0 on the host',
    );
  if (status === 401 || status === 403 || status === 407)
    return backendError(`${what}${found}; something in front of Ollama asks for credentials, and the gateway has none`);
  return backendError(`${what}${found}`);
}

function refusalInWords({ model }: Question, status: number, text: string, signIn: boolean): GatewayError {
  const words = `ollama: ${oneLine(text)} (HTTP ${status})`;
  // A list has no model that could be missing, and `tensor … not found` is about the inside of one that is there.
  if (model !== undefined && (status === 404 || isUnknownModel(text))) return modelNotFound(words);
  if (model !== undefined && status === 400) return invalidRequest(words);
  return backendError(signIn ? `${words}; sign the host in with "ollama signin"` : words);
}

function missing({ path, endpoint }: Question): string {
  const release = since[path];
  return release
    ? `${endpoint} has no such endpoint; it came with Ollama ${release}, so this server is older or another product`
    : `${endpoint} has no such endpoint; is this the root address of an Ollama server?`;
}

/** The failure of an answer that has the status of a success and is not what Ollama would send. */
export function notOllama({ method, path, endpoint }: Question, answer: HttpAnswer): GatewayError {
  const error = errorTextIn(answer);
  const lmStudio = error !== undefined && /unexpected endpoint or method/i.test(error);
  const found = lmStudio
    ? `is LM Studio ("${oneLine(error, 200)}"); configure it as an lmstudio backend`
    : `did not answer like Ollama but with ${error ? `the error "${oneLine(error)}"` : answerWords(answer)}`;
  return backendError(`ollama: ${method} ${path}: ${endpoint} ${found} (HTTP ${answer.status})`);
}

/** The failure of a server that speaks Ollama's language and is none. */
export const lemonadeFound = (endpoint: string) =>
  backendError(
    `ollama: GET /api/tags: ${endpoint} is a Lemonade Server (the digests of its models are all zero); ` +
      'configure it as a lemonade backend',
  );

/** The failure an `error` line of a pull stands for; the HTTP status was 200 all along. */
export function pullRefusal(text: string): GatewayError {
  const words = `ollama: ${oneLine(text)}`;
  if (isUnknownModel(text)) return modelNotFound(words);
  // What current servers make of Hugging Face's 401 for a repository that does not exist.
  if (/^pull model manifest: realm host "huggingface\.co"/.test(text))
    return backendError(`${words}; the repository does not exist on Hugging Face, or it is private`);
  return backendError(words);
}

/** Only Ollama's own sentences, from their beginning: the same words occur inside other failures. */
function isUnknownModel(text: string): boolean {
  return (
    /^model ['"`].*['"`] not found/s.test(text) ||
    /^pull model manifest: (?!Get ")(?:\d+: )?.*(?:file does not exist|not found)/is.test(text)
  );
}
