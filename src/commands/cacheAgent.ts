import { createServer } from 'node:http';
import type { Logger } from 'pino';
import type { CacheAgentSettings } from '../config/cacheAgent.ts';
import { createCacheAgent } from '../drivers/kserve/cacheAgent.ts';
import { listen } from '../http/listen.ts';

/** Serves what is in the cache on this node. Rejects when the address cannot be had. */
export async function startCacheAgent({ root, node, ...settings }: CacheAgentSettings, log: Logger) {
  const server = createServer(createCacheAgent({ root, node, log }));
  server.headersTimeout = 10_000;
  const { port } = await listen(server, settings.listen).catch(error => {
    throw Object.assign(error as Error, { flag: '--listen' });
  });
  log.info({ port, root, node }, 'the cache agent answers');
  return {
    port,
    async stop() {
      await new Promise(resolve => {
        server.close(resolve);
        server.closeIdleConnections();
      });
      log.info('the cache agent has stopped');
    },
  };
}
