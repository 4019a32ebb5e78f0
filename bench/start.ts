import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { startOllama } from '../src/demo/ollama.ts';
import { ask, type RequestOptions } from './load.ts';
import { median } from './measure.ts';
import type { Row } from './table.ts';

const starts = 5;
/** A process counts as idle after this, in milliseconds. */
const idleMs = 1_000;

/** What is installed: the built program. From source Node also keeps what strips the types, 25 MB of it. */
const main = new URL('../dist/main.js', import.meta.url).pathname;
const plain = `
  const server = require('node:http').createServer((req, res) => res.end(JSON.stringify({ backends: [] })));
  server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: 'http://127.0.0.1:' + server.address().port })));`;

const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_models', arguments: {} } };
const first: RequestOptions = { path: '/api/v1/backends' };
/** What people and programs ask in turn. */
const requests: readonly RequestOptions[] = [
  first,
  { path: '/api/v1/models' },
  { path: '/graphql', body: { query: '{ models { items { name sizeBytes loaded } } }' } },
  { path: '/mcp', headers: { accept: 'application/json, text/event-stream' }, body: message },
];
const requestCount = 100;

/** From the command line to the first answer, and what the process holds then. */
export async function start(): Promise<Row[]> {
  await using ollama = await startOllama({ models: [{ name: 'qwen3:8b' }, { name: 'bge-m3:latest' }] });
  const flags = ['--listen', '127.0.0.1:0', '--log-format', 'json', '--backend', 'ollama'];
  const ours = [main, 'serve', ...flags, '--ollama-endpoint', ollama.url];
  const runs: { ours: Started; reference: Started }[] = [];
  for (let run = 0; run < starts; run++) {
    runs.push({ ours: await startOnce(ours), reference: await startOnce(['-e', plain]) });
  }
  const figure = (side: 'ours' | 'reference', name: keyof Started) => median(runs.map(each => each[side][name]));
  const row = (what: string, unit: Row['unit'], name: keyof Started, most: number): Row => ({
    what,
    unit,
    ours: figure('ours', name),
    reference: figure('reference', name),
    ratio: undefined,
    goal: { figure: 'ours', most },
  });
  return [
    row('start to first answer', 'ms', 'ms', 1_000),
    row('memory, idle after the start', 'MB', 'idle', 120),
    row(`memory, idle after ${requestCount} requests`, 'MB', 'used', 120),
  ];
}

interface Started {
  readonly ms: number;
  /** Megabytes resident. */
  readonly idle: number;
  readonly used: number;
}

async function startOnce(args: readonly string[]): Promise<Started> {
  const began = performance.now();
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const port = await portOf(child.stdout);
    await ask(port, first);
    const ms = performance.now() - began;
    await sleep(idleMs);
    const idle = residentOf(child);
    for (let index = 0; index < requestCount; index++) {
      await ask(port, requests[index % requests.length] as RequestOptions);
    }
    await sleep(idleMs);
    return { ms, idle, used: residentOf(child) };
  } finally {
    child.kill();
    await once(child, 'exit');
  }
}

/** The port that a server logs the URL of. */
async function portOf(output: Readable): Promise<number> {
  for await (const line of createInterface(output)) {
    const { url } = JSON.parse(line) as { url?: string };
    if (url) return Number(new URL(url).port);
  }
  throw new Error('the server ended before it listened');
}

function residentOf({ pid }: ChildProcess): number {
  return (Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)])) * 1024) / 1e6;
}
