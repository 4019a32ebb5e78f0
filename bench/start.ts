import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCluster } from '../src/demo/cluster.ts';
import { kagentDefinition } from '../src/demo/kagent.ts';
import { startOllama } from '../src/demo/ollama.ts';
import { presetNamespace, servingObjects } from '../src/demo/world/serving.ts';
import { ask, type RequestOptions } from './load.ts';
import { median, spread } from './measure.ts';
import type { Row } from './table.ts';

const starts = 5;
/** A process counts as idle after this, in milliseconds. */
const idleMs = 10_000;

/** What is installed: the built program. From source Node also keeps what strips the types, 25 MB of it. */
const main = new URL('../dist/main.js', import.meta.url).pathname;
const plain = `
  const server = require('node:http').createServer((req, res) => res.end(JSON.stringify({ backends: [] })));
  server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: 'http://127.0.0.1:' + server.address().port })));`;

const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_models', arguments: {} } };
/** What people and programs ask in turn. */
const requests: readonly RequestOptions[] = [
  { path: '/api/v1/backends' },
  { path: '/api/v1/models' },
  { path: '/graphql', body: { query: '{ models { items { name sizeBytes loaded } } }' } },
  { path: '/mcp', headers: { accept: 'application/json, text/event-stream' }, body: message },
];
const requestCount = 100;

/** From the command line to being ready, and what the process holds then: with a host alone, and with KServe in a cluster beside it. */
export async function start(): Promise<Row[]> {
  await using ollama = await startOllama({ models: [{ name: 'qwen3:8b' }, { name: 'bge-m3:latest' }] });
  await using cluster = await startCluster({ objects: [...servingObjects(), kagentDefinition()] });
  await using folder = await mkdtempDisposable(join(tmpdir(), 'bench-'));
  const kubeconfig = join(folder.path, 'kubeconfig');
  await writeFile(kubeconfig, cluster.kubeconfig());
  const serve = (backends: string, ...more: string[]) => [
    ...[main, 'serve', '--listen', '127.0.0.1:0', '--log-format', 'json', '--ollama-endpoint', ollama.url],
    ...['--backends', backends, ...more],
  ];
  const programs = {
    host: serve('ollama'),
    cluster: serve(
      'ollama,kserve',
      ...['--kubeconfig', kubeconfig, '--namespace', presetNamespace, '--kserve-discovery-namespace', presetNamespace],
    ),
    reference: ['-e', plain],
  };
  const runs: Record<keyof typeof programs, Figures>[] = [];
  for (let run = 0; run < starts; run++) runs.push(await startAll(programs));

  const row = (program: 'host' | 'cluster', what: string, name: keyof Figures, most: number): Row => {
    const middle = (which: keyof typeof programs) => median(runs.map(each => each[which][name]));
    const wall = spread(runs.map(each => each[program][name] / each.reference[name]));
    return {
      what: `${what}${program === 'cluster' ? ', with Kubernetes' : ''}`,
      unit: name === 'ms' ? 'ms' : 'MB',
      ours: middle(program),
      reference: middle('reference'),
      ratio: { wall },
      goal: { figure: 'ours', most },
    };
  };
  return (['host', 'cluster'] as const).flatMap(program => {
    const memory = program === 'host' ? 120 : 200;
    return [
      row(program, 'start until /readyz answers 200', 'ms', 1_000),
      row(program, 'memory, idle after the start', 'idle', memory),
      row(program, `memory, idle after ${requestCount} requests`, 'used', memory),
    ];
  });
}

interface Figures {
  readonly ms: number;
  /** Megabytes resident. */
  readonly idle: number;
  readonly used: number;
}

/** Each is started when the one before it is ready; they idle and are asked together. */
async function startAll<Name extends string>(programs: Readonly<Record<Name, readonly string[]>>) {
  await using running = new AsyncDisposableStack();
  const found = new Map<string, { readonly child: ChildProcess; readonly port: number; readonly ms: number }>();
  for (const [name, argv] of Object.entries<readonly string[]>(programs)) {
    const began = performance.now();
    const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
    running.defer(() => stop(child));
    const port = await portOf(child.stdout);
    while ((await ask(port, { path: '/readyz' })).status !== 200);
    found.set(name, { child, port, ms: performance.now() - began });
  }
  const memory = async () => {
    await sleep(idleMs);
    return new Map([...found].map(([name, { child }]) => [name, residentOf(child)]));
  };
  const idle = await memory();
  for (const { port } of found.values()) {
    for (let index = 0; index < requestCount; index++) {
      await ask(port, requests[index % requests.length] as RequestOptions);
    }
  }
  const used = await memory();
  const figures = [...found].map(([name, { ms }]) => [name, { ms, idle: idle.get(name), used: used.get(name) }]);
  return Object.fromEntries(figures) as Record<Name, Figures>;
}

/** By the signal that is not waited after. */
async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGINT');
  await ended;
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
