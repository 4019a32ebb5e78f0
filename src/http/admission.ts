import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { type Answer, metadataDocuments, refusalAnswer } from '../identity/challenge.ts';
import { bearerOf, type Identity, type Person, type Verdict } from '../identity/identity.ts';
import type { Refusal, TokenProblem } from '../identity/token.ts';

/** Who may come in, before any face sees them. */
export interface Admission {
  /** What everybody may ask: the answer when it is a document about signing in, else undefined. */
  document(method: string | undefined, path: string): Answer | undefined;
  /** Whose request it is, or the answer that refuses it. */
  admit(req: IncomingMessage, path: string): Promise<{ readonly person: Person } | { readonly answer: Answer }>;
  /** Whose WebSocket it is, by the payload of its `connection_init`. */
  admitSocket(payload: unknown, source: string | undefined): Promise<Verdict>;
}

export interface AdmissionOptions {
  readonly identity: Identity;
  readonly mcpPath: string | undefined;
  readonly log: Logger;
  readonly onRefused?: ((problem: TokenProblem) => void) | undefined;
}

/** Below these nothing is kept from anybody: what is not there is answered as anywhere else. */
const openPaths = /^\/($|healthz$|readyz$|backendz$|\.well-known\/|oauth\/)/;

/** Whether a path needs no token. Everything that is not named here does. */
export const isOpen = (path: string) => openPaths.test(path);

export function createAdmission({ identity, mcpPath, log, onRefused }: AdmissionOptions): Admission {
  const { baseUrl, audiences } = identity.settings;
  const documents = metadataDocuments(identity.settings, mcpPath);

  /** Counts, and says in the log who was refused for what. Never what they sent. */
  function note({ reason, message, audience, sender }: Refusal, source: string | undefined, path: string): void {
    onRefused?.(reason);
    const facts = { reason, source, path };
    if (reason !== 'audience') log.debug({ ...facts, detail: message }, 'request refused');
    else log.warn({ ...facts, caller: sender, aud: audience, trustedAudiences: audiences }, 'request refused');
  }

  return {
    document(method, path): Answer | undefined {
      const body = documents.get(path);
      if (body === undefined) return undefined;
      if (method === 'OPTIONS') {
        return { status: 200, headers: { ...readable, 'access-control-allow-headers': '*' }, body: '' };
      }
      if (method !== 'GET' && method !== 'HEAD') {
        return { status: 405, headers: { allow: 'GET, HEAD, OPTIONS' }, body: '' };
      }
      const headers = { ...readable, 'content-type': 'application/json', 'cache-control': 'public, max-age=300' };
      return { status: 200, headers, body };
    },
    async admit(req, path) {
      const verdict = await checkRequest(req, identity);
      if ('person' in verdict) return verdict;
      note(verdict.refusal, req.socket.remoteAddress, path);
      return { answer: refusalAnswer(verdict.refusal, baseUrl, path === mcpPath ? path : '') };
    },
    async admitSocket(payload, source) {
      const { Authorization, authorization } = (payload ?? {}) as Readonly<Record<string, unknown>>;
      const given = Authorization ?? authorization;
      const verdict = await identity.check(bearerOf(typeof given === 'string' ? given : undefined));
      if ('refusal' in verdict) note(verdict.refusal, source, 'connection_init');
      return verdict;
    },
  };
}

/** Public, and without credentials: a page anywhere may read it to find out how to sign in. */
const readable = { 'access-control-allow-origin': '*', 'access-control-allow-methods': 'GET, HEAD, OPTIONS' };

async function checkRequest(req: IncomingMessage, identity: Identity): Promise<Verdict> {
  const given = req.headersDistinct.authorization ?? [];
  // Which of two would be meant, nobody can say: whoever stands between may have checked the other one.
  if (given.length > 1)
    return { refusal: { reason: 'malformed', message: 'send one Authorization header, not several' } };
  return identity.check(bearerOf(given[0]));
}
