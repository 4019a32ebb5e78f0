import type { Logger } from 'pino';
import { wantsTraces } from '../config/traces.ts';
import type { Traces } from '../http/traces.ts';

/** What traces go to, where the environment asks for them. The SDK is imported for nobody else. */
export async function openTraces(env: NodeJS.ProcessEnv, version: string, log: Logger): Promise<Traces | undefined> {
  const wanted = wantsTraces(env);
  if ('problem' in wanted) log.warn(`nothing is traced: ${wanted.problem}`);
  if (!('value' in wanted) || !wanted.value) return undefined;
  const { createTraces } = await import('../http/openTelemetry.ts');
  return createTraces(version, log);
}
