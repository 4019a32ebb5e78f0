import { createHash } from 'node:crypto';
import { empty, type Reply, text } from '../host/reply.ts';
import type { Incoming } from '../host/server.ts';
import { HubRefusal } from './access.ts';
import type { Machine } from './api.ts';
import type { StoredFile } from './content.ts';
import type { Commit, Repo } from './models.ts';
import { contentReply } from './sending.ts';

/** For so long an address of the CDN is good. */
const signedMs = 3_600_000;

/**
 * A file where people look for it. Large ones are elsewhere; so is the cache of small ones, though on the same host, unless
 * not everybody may read them.
 */
export function resolve(
  incoming: Incoming,
  machine: Machine,
  repo: Repo,
  commit: Commit,
  path: string,
  gone: AbortSignal,
): Reply {
  const { model, key } = repo;
  const file = fileIn(commit, path);
  const about = { 'x-repo-commit': commit.sha, 'accept-ranges': 'bytes', etag: `"${file.oid}"` };
  if (file.sha256 !== undefined) {
    const location = `${machine.cdnUrl()}/${key}/${file.sha256}?${signature(file.sha256, machine.clock.now() + signedMs)}`;
    const linked = { 'x-linked-size': String(file.bytes), 'x-linked-etag': `"${file.sha256}"`, location };
    return text(`Found. Redirecting to ${location}`, 302, { ...about, ...linked });
  }
  if (model.gated === undefined && !model.private) {
    const query = `${encodeURIComponent(incoming.path)}=&etag=${encodeURIComponent(`"${file.oid}"`)}`;
    const location = `/api/resolve-cache/models/${model.id}/${commit.sha}/${encoded(path)}?${query}`;
    return text(`Temporary Redirect. Redirecting to ${location}`, 307, { ...about, location });
  }
  return cached(incoming, machine, commit, path, gone);
}

/** The same where the Hub keeps it. */
export function cached(incoming: Incoming, machine: Machine, commit: Commit, path: string, gone: AbortSignal): Reply {
  const file = fileIn(commit, path);
  const reply = contentReply(file, incoming, machine.line, machine.clock, gone);
  return { ...reply, headers: { ...reply.headers, 'x-repo-commit': commit.sha } };
}

/** What the CDN answers: a large file, to whoever has an address that the Hub has signed. */
export function answerOfCdn(incoming: Incoming, machine: Machine, gone: AbortSignal): Reply {
  const [, , sha256 = ''] = incoming.path.split('/');
  const expires = Number(incoming.query.get('X-Amz-Expires'));
  if (incoming.headers.authorization !== undefined)
    return xml(400, 'InvalidArgument', 'Only one auth mechanism allowed; the Authorization header is one too many');
  if (incoming.query.toString() !== signature(sha256, expires))
    return xml(403, 'SignatureDoesNotMatch', 'no such address');
  if (expires <= machine.clock.now()) return xml(403, 'AccessDenied', 'Request has expired');
  const file = largeFile(machine, sha256);
  return file ? contentReply(file, incoming, machine.line, machine.clock, gone) : empty(404);
}

function fileIn(commit: Commit, path: string): StoredFile {
  const file = commit.files.get(path);
  if (!file) throw new HubRefusal(404, 'Entry not found', 'EntryNotFound');
  return file;
}

function largeFile({ repos }: Machine, sha256: string): StoredFile | undefined {
  for (const { commits } of repos.values())
    for (const { files } of commits.values())
      for (const file of files.values()) if (file.sha256 === sha256) return file;
  return undefined;
}

function signature(sha256: string, expires: number): string {
  const signed = createHash('sha256').update(`${sha256} ${expires}`).digest('hex');
  return new URLSearchParams({ 'X-Amz-Expires': String(expires), 'X-Amz-Signature': signed }).toString();
}

const xml = (status: number, code: string, message: string): Reply => ({
  status,
  headers: { 'content-type': 'application/xml' },
  body: `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`,
});

const encoded = (path: string) => path.split('/').map(encodeURIComponent).join('/');
