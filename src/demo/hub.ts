/**
 * An emulated Hugging Face Hub: a real HTTP server on loopback with repositories of models, and a second one that is its
 * CDN. It answers what downloaders and the gateway ask: searches, repositories, file lists in pages, and files with their
 * ranges and redirects. Sizes are claimed like those of real models; content is made while it is read.
 *
 * It is deterministic; give it a `manualClock()` and a slow line stands still until a test moves it. What goes wrong is
 * scripted: `trouble` for the whole Hub, `line` for its content, and `fault`s for single requests.
 *
 * Not emulated: uploads, accounts, pages for people, and the Xet protocol.
 */
import { type Clock, realClock } from './host/clock.ts';
import { type Host, startHost } from './host/server.ts';
import type { Tokens } from './hub/access.ts';
import { answerTo, type Machine, type Trouble } from './hub/api.ts';
import { answerOfCdn } from './hub/files.ts';
import { type HubModel, type Repo, toRepo } from './hub/models.ts';
import type { Line, UsedLine } from './hub/sending.ts';

export { manualClock } from './host/clock.ts';
export { library } from './hub/library.ts';
export type { HubModel } from './hub/models.ts';

export interface HubOptions {
  readonly models?: readonly HubModel[];
  /** Each with the gated and private repositories that it opens. */
  readonly tokens?: Tokens;
  /** Former ids of repositories. */
  readonly renamed?: Readonly<Record<string, string>>;
  /** Any free one when absent. The CDN always has a free one. */
  readonly port?: number;
  readonly clock?: Clock;
  /** Entries on one page of a list; a thousand when absent. */
  readonly pageEntries?: number;
}

export interface EmulatedHub extends Host {
  /** Where large files come from. */
  readonly cdn: Host;
  /** The commit a branch or tag of a repository is at. */
  commit(id: string, revision?: string): string;
  /** Puts a repository there, in place of one of its name. */
  publish(model: HubModel): void;
  trouble(trouble: Trouble | undefined): void;
  /** From now on content comes like this. */
  line(line: Line): void;
}

export async function startHub(options: HubOptions = {}): Promise<EmulatedHub> {
  const { clock = realClock } = options;
  const repos = new Map<string, Repo>();
  let trouble: Trouble | undefined;
  let line: UsedLine = { sentBytes: 0 };

  const machine: Machine = {
    repos,
    tokens: options.tokens ?? {},
    renamed: new Map(Object.entries(options.renamed ?? {}).map(([before, now]) => [before.toLowerCase(), now])),
    pageEntries: options.pageEntries ?? 1000,
    clock,
    get line() {
      return line;
    },
    get trouble() {
      return trouble;
    },
    cdnUrl: () => cdn.url,
  };
  const publish = (model: HubModel) => void repos.set(model.id.toLowerCase(), toRepo(model, clock.now()));
  for (const model of options.models ?? []) publish(model);

  // Neither remembers anything, and there is one version of them.
  const stateless = { clock, forget() {}, become() {} };
  const cdn = await startHost({
    ...stateless,
    answer: (incoming, { gone }) => answerOfCdn(incoming, machine, gone),
  });
  const host = await startHost({
    ...stateless,
    port: options.port,
    answer: (incoming, { gone }) => answerTo(incoming, machine, gone),
  });

  async function close(): Promise<void> {
    await Promise.all([host.close(), cdn.close()]);
  }

  return {
    ...host,
    cdn,
    commit(id, revision = 'main') {
      const commit = repos.get(id.toLowerCase())?.commits.get(revision);
      if (!commit) throw new Error(`no such revision: ${id} ${revision}`);
      return commit.sha;
    },
    publish,
    trouble(next) {
      trouble = next;
    },
    line(next) {
      line = { ...next, sentBytes: 0 };
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
