/** The Hub client on an emulated Hub, over real sockets. */
import type { TestContext } from 'node:test';
import { type Logger, pino } from 'pino';
import { type EmulatedHub, type HubModel, type HubOptions, library, startHub } from '../../../src/demo/hub.ts';
import { createHub, type Hub } from '../../../src/drivers/kserve/hub.ts';

export const silent = pino({ level: 'silent' });

export interface LabOptions extends HubOptions {
  token?(): Promise<string | undefined>;
  readonly timeoutMs?: number;
  readonly log?: Logger;
  now?(): number;
  /** Below the root of the emulated Hub. */
  readonly path?: string;
}

export interface Lab {
  readonly server: EmulatedHub;
  readonly hub: Hub;
  /** Paths that were asked for so far, in order. */
  asked(): string[];
}

export async function startLab(t: TestContext, options: LabOptions = {}): Promise<Lab> {
  const { token = async () => undefined, timeoutMs = 4_000, log = silent, now, path = '', ...hubOptions } = options;
  const server = await startHub({ models: library, ...hubOptions });
  t.after(() => server.close());
  const hub = createHub({ endpoint: server.url + path, token, timeoutMs, log, ...(now && { now }) });
  return { server, hub, asked: () => server.requests.map(request => request.path) };
}

/** A model of a few bytes, one file of which an index names. */
export const tiny = (id: string, more: Partial<HubModel> = {}): HubModel => ({
  id,
  files: [
    { path: 'config.json', text: '{}' },
    { path: 'model-00001-of-00001.safetensors', bytes: 1_000 },
    {
      path: 'model.safetensors.index.json',
      text: '{"metadata":{"total_size":995},"weight_map":{"a":"model-00001-of-00001.safetensors"}}',
    },
  ],
  ...more,
});

/** Lines that a logger of `level` has written so far, parsed. */
export function recording(level = 'debug') {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}
