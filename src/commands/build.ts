import { readFileSync } from 'node:fs';
import type { Build } from '../resolvers/builder.ts';

/** What this build is. The image sets the commit and the time; a checkout knows neither. */
export function readBuild(env: NodeJS.ProcessEnv): Build {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as Build;
  return {
    version,
    commit: env.MODEL_MANAGER_COMMIT || 'unknown',
    built: env.MODEL_MANAGER_BUILT || 'unknown',
  };
}
