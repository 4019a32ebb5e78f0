import { type Child, startChild } from './child.ts';
import { Crowd, eventStream } from './crowd.ts';
import { ask, createLoad, type RequestOptions, requestOf } from './load.ts';
import { compare } from './measure.ts';
import { type Row, rowOf } from './table.ts';

const rounds = 15;
const list: RequestOptions = { path: '/api/v1/models' };

/** 500 models of 20 fields, in every way they can be asked for. */
export async function modelList(): Promise<Row[]> {
  await using gateway = await startChild('gateway');
  await using reference = await startChild('reference');
  const port = await gateway.ask<number>('port');
  const plainPort = await reference.ask<number>('port');

  /** Requests to us beside the same bytes from the reference. */
  async function row(what: string, most: number, requests: readonly RequestOptions[], status = 200): Promise<Row> {
    const [first] = requests as [RequestOptions];
    const { headers, ...whole } = first;
    await reference.ask('answer', (await ask(port, whole)).text);
    using ours = await createLoad(gateway, port, requests.map(requestOf), status);
    using plain = await createLoad(reference, plainPort, [requestOf(whole)]);
    return rowOf(`500 models, ${what}`, await compare(ours.measure, plain.measure, rounds), { figure: 'wall', most });
  }

  const stored = await gateway.ask<string>('operation', 'listModels');
  const rows = [
    await row('REST, answer made anew', 1.5, spellings()),
    await row('REST, view warm', 1.5, [list]),
    await row('REST, If-None-Match', 1, [{ ...list, headers: { 'if-none-match': await tagOf(port) } }], 304),
    await row('/graphql, stored text', 1.6, [{ path: '/graphql', body: { query: stored } }]),
    await row('/graphql, free text', 4, [{ path: '/graphql', body: { query: asFreeText(stored) } }]),
  ];
  using _live = await watchModels(gateway, port);
  return [...rows, await row('REST, live view standing', 1, [list])];
}

/**
 * The same question in more spellings than answers are kept, so that none is answered from what is kept: a name of a
 * backend is the same with blanks after it.
 */
function spellings(): RequestOptions[] {
  const blanks = Array.from({ length: 100 }, (_, count) => '+'.repeat(count));
  return blanks.map(blank => ({ path: `${list.path}?backend=ollama${blank}` }));
}

async function tagOf(port: number): Promise<string> {
  const { headers } = await ask(port, list);
  return headers.get('etag') as string;
}

/** The document of a client that wrote it for itself. */
const asFreeText = (stored: string) => stored.replace('query listModels', 'query Mine');

async function watchModels(gateway: Child, port: number): Promise<Crowd> {
  const crowd = new Crowd(port, eventStream(await gateway.ask<string>('operation', 'watchModels')));
  await crowd.grow(1);
  return crowd;
}
