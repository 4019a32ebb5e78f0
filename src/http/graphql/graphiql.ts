import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Operation } from '../../operations/load.ts';

/** The GraphiQL page, whole: it loads nothing from anywhere. */
export interface Page {
  readonly html: Buffer;
  readonly gzipped: Buffer;
}

/** The page is one inline script that starts its workers from blobs, and talks to nobody but us. */
export const pageSecurityPolicy = [
  "default-src 'self'",
  "script-src 'unsafe-inline' 'unsafe-eval' blob:",
  "style-src 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  'worker-src blob:',
  "connect-src 'self' ws: wss:",
  "frame-ancestors 'none'",
].join('; ');

/** Operations that open as tabs, in this order. */
const examples = ['watchJobs', 'watchModels', 'listModels', 'pullModel', 'listBackends'];

/** Variables that make an example useful at once. */
const exampleVariables: Record<string, object> = { pullModel: { model: 'smollm2:135m' } };

/** Renders the page. The 9 MB of GraphiQL are imported on first use only. */
export async function renderPage(operations: readonly Operation[], endpoint: string): Promise<Page> {
  const { renderGraphiQL } = await import('@graphql-yoga/render-graphiql');
  const byName = new Map(operations.map(operation => [operation.name, operation]));
  const tabs = examples
    .map(name => byName.get(name))
    .filter(operation => operation !== undefined)
    .map(({ name, description, text }) => ({
      query: `${comment(description)}${text}\n`,
      variables: JSON.stringify(exampleVariables[name] ?? {}, null, 2),
    }));
  const page = renderGraphiQL({
    title: 'model-manager',
    endpoint,
    subscriptionsProtocol: 'WS',
    defaultTabs: tabs,
    ...(tabs[0] && { defaultQuery: tabs[0].query }),
  });
  const html = Buffer.from(page);
  return { html, gzipped: await promisify(gzip)(html) };
}

const comment = (text: string) =>
  text
    .split('\n')
    .filter(line => line)
    .map(line => `# ${line}\n`)
    .join('');
