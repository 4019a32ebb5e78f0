import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Operation } from '../../operations/load.ts';

/** The GraphiQL page, whole: it loads nothing from anywhere. */
export interface Page {
  readonly html: Buffer;
  readonly gzipped: Buffer;
}

/** The page is one inline script that starts its workers from blobs, and talks to nobody but us: `host`, as it was asked for. */
export function pageSecurityPolicy(host = ''): string {
  // Not every browser takes 'self' for a WebSocket, too.
  const sockets = /^[\w.:[\]-]+$/.test(host) ? `ws://${host} wss://${host}` : '';
  return [
    "default-src 'none'",
    "script-src 'unsafe-inline' blob:",
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    'worker-src blob:',
    `connect-src 'self' ${sockets}`.trim(),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Operations that open as tabs, in this order. */
const examples = ['watchJobs', 'loadModel', 'watchServe', 'watchModels', 'listModels', 'pullModel', 'listBackends'];

/** Variables that make an example useful at once, in the demo at least. */
const exampleVariables: Record<string, object> = {
  loadModel: { backend: 'kserve', preset: 'qwen2-5-7b-x2' },
  watchServe: { backend: 'kserve', model: 'qwen2-5-7b-x2' },
  pullModel: { model: 'smollm2:135m' },
};

/** What the editor of headers begins with where people have to sign in. */
const tokenHeaders = JSON.stringify({ authorization: 'Bearer PASTE-A-TOKEN' }, null, 2);

/**
 * Renders the page. The 9 MB of GraphiQL are imported on first use only. Where people have to sign in it has a place for their
 * token among its headers, which it forgets with the tab, and streams carry it: its WebSocket would not.
 */
export async function renderPage(
  operations: readonly Operation[],
  endpoint: string,
  asksToken: boolean,
): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const byName = new Map(operations.map(operation => [operation.name, operation]));
  const tabs = examples
    .map(name => byName.get(name))
    .filter(operation => operation !== undefined)
    .map(({ name, description, text }) => ({
      query: `${comment(firstParagraph(description))}${text}\n`,
      variables: JSON.stringify(exampleVariables[name] ?? {}, null, 2),
      ...(asksToken && { headers: tokenHeaders }),
    }));
  const page = renderGraphiQL({
    title: 'model-manager',
    endpoint,
    subscriptionsProtocol: asksToken ? 'SSE' : 'WS',
    ...(asksToken && { shouldPersistHeaders: false, headers: tokenHeaders }),
    defaultTabs: tabs,
    ...(tabs[0] && { defaultQuery: tabs[0].query }),
  });
  const html = Buffer.from(page.replace('<head>', `<head><style>${fixes}</style>`));
  return { html, gzipped: await promisify(gzip)(html) };
}

/**
 * Tabs that are there from the start keep the offset they came in with. GraphiQL hides that until a tab has the focus, so a
 * tab jumps away from under the first click on it. The name of the page is one word, however many tabs there are. And what its
 * editors have beyond their frames makes no scrollbars around the whole.
 */
const fixes =
  '.graphiql-tab:focus-within { transform: none !important } .graphiql-logo { white-space: nowrap } #root { position: relative; overflow: clip }';

/** What it does; what follows is for agents. */
const firstParagraph = (text: string) => text.split('\n\n', 1)[0] as string;

/** Comment lines as long as the editor shows. */
const comment = (text: string) => text.replace(/\s+/g, ' ').replace(/(.{1,48})(?: |$)/g, '# $1\n');
