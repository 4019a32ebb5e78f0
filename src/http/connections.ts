/** How long and how much a client may write before it has asked anything. */
import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Limits } from '../config/limits.ts';
import type { OnRefused, RefusalReason } from './refusals.ts';

/** The head of a request has this long at most, in milliseconds. */
const headersMs = 10_000;
/** How often connections are looked at, in milliseconds: one that is late is cut off so much later at most. */
const checkMs = 1_000;

export const connectionsOf = ({ headers, requestTimeout }: Limits): ServerOptions => ({
  maxHeaderSize: headers,
  headersTimeout: Math.min(headersMs, requestTimeout),
  requestTimeout,
  connectionsCheckingInterval: checkMs,
  keepAliveTimeout: 120_000,
});

const refusals: Readonly<Record<string, { readonly status: string; readonly reason: RefusalReason }>> = {
  HPE_HEADER_OVERFLOW: { status: '431 Request Header Fields Too Large', reason: 'headers' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: '408 Request Timeout', reason: 'request_timeout' },
};

/** Answers what is no request, and what is none in time, and ends its connection. */
export const refuseBroken =
  (onRefused: OnRefused | undefined) =>
  (error: NodeJS.ErrnoException, socket: Duplex): void => {
    const { status, reason } = refusals[error.code ?? ''] ?? { status: '400 Bad Request' };
    if (reason) onRefused?.(reason);
    // After the beginning of an answer this would be read as the rest of it.
    if (socket.writable && (socket as Socket).bytesWritten === 0)
      socket.write(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`);
    socket.destroy();
  };
