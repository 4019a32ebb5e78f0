import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ListenAddress } from '../config/values.ts';

/** Listens, and says where. Rejects when the address cannot be had. */
export async function listen(server: Server, { host, port }: ListenAddress): Promise<AddressInfo> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, host, resolve);
  await promise;
  server.off('error', reject);
  return server.address() as AddressInfo;
}
