/** What everything is held against: `JSON.stringify` over plain `node:http`, and plain writes to sockets. */
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { answerParent } from '../child.ts';

let answer: unknown;
let indent: number | undefined;

async function respond(req: IncomingMessage, res: ServerResponse): Promise<void> {
  if (req.method === 'POST') {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    JSON.parse(Buffer.concat(chunks).toString());
  }
  const body = JSON.stringify(answer, undefined, indent) + (indent ? '\n' : '');
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  res.end(body);
}

let message: Buffer = Buffer.alloc(0);
const sockets = new Set<Socket>();

function greet(socket: Socket): void {
  sockets.add(socket);
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('close', () => sockets.delete(socket));
  socket.write(message);
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const port = await listen(createHttpServer((req, res) => void respond(req, res)));
const socketPort = await listen(createServer(greet));

answerParent({
  port: () => port,
  /** What every request is answered with from now on, written like this text. */
  answer(text: string) {
    answer = JSON.parse(text);
    indent = text.startsWith('{\n') ? 2 : undefined;
  },
  socketPort: () => socketPort,
  /** What every socket is sent when it connects, and at each `change`. */
  message(base64: string) {
    message = Buffer.from(base64, 'base64');
  },
  change() {
    for (const socket of sockets) socket.write(message);
  },
});
