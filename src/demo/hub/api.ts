import type { Clock } from '../host/clock.ts';
import { document, type Reply, text } from '../host/reply.ts';
import { decoded, type Incoming } from '../host/server.ts';
import { checkReading, HubRefusal, type Tokens, type Visitor, visible, visitorOf } from './access.ts';
import { cached, resolve } from './files.ts';
import { type Commit, matching, type Repo, treeOf } from './models.ts';
import { forever, type UsedLine } from './sending.ts';
import { repositoryDocument, searchRow, treeRow } from './wire.ts';

/** What is wrong with the whole Hub. */
export type Trouble =
  /** Requests are taken and never answered. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'slow'; readonly ms: number }
  /** A page in place of every answer, as a proxy with a login has. */
  | { readonly kind: 'page' }
  /** Too many requests; `seconds` until there may be more, in a header of the usual sort, or in the Hub's own. */
  | { readonly kind: 'limited'; readonly seconds?: number; readonly header?: 'retry-after' | 'ratelimit' };

/** The Hub as its handlers see it. */
export interface Machine {
  /** By id in lower case. */
  readonly repos: ReadonlyMap<string, Repo>;
  readonly tokens: Tokens;
  /** Former ids of repositories, in lower case, with the ones they have now. */
  readonly renamed: ReadonlyMap<string, string>;
  /** Entries on one page of a list. */
  readonly pageEntries: number;
  readonly clock: Clock;
  readonly line: UsedLine;
  readonly trouble: Trouble | undefined;
  cdnUrl(): string;
}

/** The answer to a request, which may be a refusal. */
export async function answerTo(incoming: Incoming, machine: Machine, gone: AbortSignal): Promise<Reply> {
  const { trouble, clock } = machine;
  if (trouble?.kind === 'silent') return forever(gone);
  if (trouble?.kind === 'slow') await clock.sleep(trouble.ms, gone);
  if (trouble?.kind === 'page')
    return text('<!doctype html><title>Sign in to the network</title>', 200, { 'content-type': 'text/html' });
  if (trouble?.kind === 'limited') return limited(trouble);
  try {
    return route(incoming, machine, gone);
  } catch (error) {
    if (!(error instanceof HubRefusal)) throw error;
    const reply = json(error.body, error.status);
    return { ...reply, headers: { ...reply.headers, ...error.headers } };
  }
}

function limited({ seconds, header = 'retry-after' }: Trouble & { kind: 'limited' }): Reply {
  const value = header === 'ratelimit' ? `"api";r=0;t=${seconds}` : String(seconds);
  const reply = json({ error: 'We had to rate limit you. Retry later.' }, 429);
  return seconds === undefined ? reply : { ...reply, headers: { ...reply.headers, [header]: value } };
}

const json = (value: unknown, status = 200): Reply => document(value, status, 'application/json; charset=utf-8');

const noPage = () => new HubRefusal(404, "Sorry, we can't find the page you are looking for.");

function route(incoming: Incoming, machine: Machine, gone: AbortSignal): Reply {
  if (incoming.method !== 'GET' && incoming.method !== 'HEAD') throw noPage();
  const visitor = visitorOf(incoming, machine.tokens);
  const parts = incoming.path.split('/').slice(1).map(decoded);
  if (parts[0] !== 'api') {
    const [owner, name, verb, revision = '', ...path] = parts;
    if (verb !== 'resolve' || path.length === 0) throw noPage();
    return at(incoming, machine, visitor, `${owner}/${name}`, repo => {
      checkReading(repo, visitor);
      return resolve(incoming, machine, repo, commitOf(repo, revision), path.join('/'), gone);
    });
  }
  if (parts[1] === 'resolve-cache' && parts[2] === 'models') {
    const [owner, name, sha = '', ...path] = parts.slice(3);
    const repo = visible(machine.repos.get(`${owner}/${name}`.toLowerCase()), visitor);
    checkReading(repo, visitor);
    return cached(incoming, machine, commitOf(repo, sha), path.join('/'), gone);
  }
  if (parts[1] !== 'models') throw noPage();
  const [owner, name, verb = 'revision', revision = 'main', ...path] = parts.slice(2);
  if (owner === undefined) return search(incoming, machine, visitor);
  return at(incoming, machine, visitor, `${owner}/${name}`, repo => {
    const commit = commitOf(repo, revision);
    if (verb === 'tree') return tree(incoming, machine, commit, path.join('/'));
    if (verb !== 'revision' || path.length > 0) throw noPage();
    return json(repositoryDocument(repo, commit, incoming.query.get('blobs') === 'true'));
  });
}

/** The answer for a repository under the name it has; under another one, where that is. */
function at(
  { path, query }: Incoming,
  { repos, renamed }: Machine,
  visitor: Visitor,
  id: string,
  answer: (repo: Repo) => Reply,
): Reply {
  const now = renamed.get(id.toLowerCase()) ?? id;
  const repo = visible(repos.get(now.toLowerCase()), visitor);
  const { model } = repo;
  if (model.id === id) return answer(repo);
  const search = query.size > 0 ? `?${query}` : '';
  const location = path.replace(id, model.id) + search;
  return text(`Temporary Redirect. Redirecting to ${location}`, 307, { location });
}

function commitOf(repo: Repo, revision: string): Commit {
  const commit = repo.commits.get(revision);
  if (!commit) throw new HubRefusal(404, `Invalid rev id: ${revision}`, 'RevisionNotFound');
  return commit;
}

function search(incoming: Incoming, machine: Machine, { opens }: Visitor): Reply {
  const { query } = incoming;
  const seen = [...machine.repos.values()].filter(({ model }) => !model.private || opens.includes(model.id));
  const found = matching(seen, query.get('search') ?? '', query.get('sort'));
  const limit = Number(query.get('limit') ?? machine.pageEntries);
  if (!(limit >= 1)) throw new HubRefusal(400, '"limit" must be greater than or equal to 1');
  return page(incoming, found, limit, repo => searchRow(repo, query.get('full') === 'true'));
}

function tree(incoming: Incoming, machine: Machine, commit: Commit, directory: string): Reply {
  const entries = treeOf(commit, directory, incoming.query.get('recursive') === 'true');
  if (entries.length === 0 && directory !== '')
    throw new HubRefusal(404, `${directory} does not exist on "${commit.sha}"`, 'EntryNotFound');
  return page(incoming, entries, machine.pageEntries, treeRow);
}

/** A part of a list, with the address of the next one in a header. */
function page<T>({ path, query, headers }: Incoming, all: readonly T[], size: number, row: (item: T) => object): Reply {
  const start = Number(Buffer.from(query.get('cursor') ?? '', 'base64url').toString() || 0);
  const end = start + size;
  const reply = json(all.slice(start, end).map(row));
  if (end >= all.length) return reply;
  const next = new URLSearchParams(query);
  next.set('cursor', Buffer.from(String(end)).toString('base64url'));
  return { ...reply, headers: { ...reply.headers, link: `<http://${headers.host}${path}?${next}>; rel="next"` } };
}
