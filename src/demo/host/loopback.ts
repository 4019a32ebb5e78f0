import { once } from 'node:events';
import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** A server that comes and goes on one port of this machine. */
export interface Loopback {
  readonly port: number;
  start(): Promise<void>;
  /** Ends like a killed process: connections break, and then `forget` is called. */
  stop(forget?: () => void): Promise<void>;
}

/** Listens on that port, or any free one when it is 0. */
export async function listenOnLoopback(server: Server | TlsServer, wanted = 0): Promise<Loopback> {
  server.keepAliveTimeout = 0;
  server.requestTimeout = 0;
  let port = wanted;

  async function start(): Promise<void> {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  }

  await start();
  return {
    get port() {
      return port;
    },
    start,
    async stop(forget = () => {}) {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      forget();
      await closed;
    },
  };
}
