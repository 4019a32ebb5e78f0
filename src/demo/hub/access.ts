import { Refusal } from '../host/reply.ts';
import type { Incoming } from '../host/server.ts';
import type { Repo } from './models.ts';

/** What a refusal of the Hub is called in its header. */
type Code = 'RepoNotFound' | 'RevisionNotFound' | 'EntryNotFound' | 'GatedRepo';

/** A refusal as the Hub words it: the same words in a header. */
export class HubRefusal extends Refusal {
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, code?: Code) {
    super(status, { error: message });
    this.headers = { 'x-error-message': message, ...(code && { 'x-error-code': code }) };
  }
}

/** Tokens, each with the gated and private repositories that it opens. */
export type Tokens = Readonly<Record<string, readonly string[]>>;

export interface Visitor {
  /** Knows a token that the Hub has issued. */
  readonly known: boolean;
  readonly opens: readonly string[];
}

/** Who asks. A token that the Hub has not issued is refused whatever it is for. */
export function visitorOf({ headers }: Incoming, tokens: Tokens): Visitor {
  const { authorization } = headers;
  if (authorization === undefined) return { known: false, opens: [] };
  const [, token = ''] = /^Bearer (.+)$/.exec(authorization) ?? [];
  if (!Object.hasOwn(tokens, token)) throw new HubRefusal(401, 'Invalid credentials in Authorization header');
  return { known: true, opens: tokens[token] ?? [] };
}

/** The repository, unless it is not for this visitor's eyes: then the Hub does not say whether there is one. */
export function visible(repo: Repo | undefined, visitor: Visitor): Repo {
  const { model } = repo ?? {};
  if (repo && (!model?.private || visitor.opens.includes(repo.model.id))) return repo;
  if (visitor.known) throw new HubRefusal(404, 'Repository not found', 'RepoNotFound');
  throw new HubRefusal(401, 'Invalid username or password.', 'RepoNotFound');
}

/** The files of a gated repository are listed for everybody, and read by who may. */
export function checkReading({ model: { id, gated } }: Repo, visitor: Visitor): void {
  if (gated === undefined || visitor.opens.includes(id)) return;
  if (visitor.known)
    throw new HubRefusal(
      403,
      `Access to model ${id} is restricted and you are not in the authorized list. Visit https://huggingface.co/${id} to ask for access.`,
      'GatedRepo',
    );
  throw new HubRefusal(
    401,
    `Access to model ${id} is restricted. You must have access to it and be authenticated to access it. Please log in.`,
    'GatedRepo',
  );
}
