/** The real tools of Kubernetes, which are not among the dependencies. */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where `npm run tools` puts what it fetches. */
const fetched = new URL('../../node_modules/.cache/kubernetes-tools/', import.meta.url).pathname;

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What its variable names (`KUBECTL`), else what was fetched, else what is on the path. */
export function findTool(name: string): string | undefined {
  const { [name.toUpperCase()]: named, PATH = '' } = process.env;
  if (named) return named;
  return [fetched, ...PATH.split(delimiter)].map(folder => join(folder, name)).find(isExecutable);
}

/** Where `npm run tools` put it; undefined when it is not there. */
export const fetchedTool = (name: string) => [join(fetched, name)].find(isExecutable);

/** Why a test with it cannot run here; false when it can. */
export const skipWithout = (name: string, path: string | undefined) =>
  path === undefined && `there is no ${name} here: \`npm run tools\` fetches one, ${name.toUpperCase()} can name one`;
