import { startChild } from './child.ts';
import { ask, createLoad, requestOf } from './load.ts';
import { compare } from './measure.ts';
import { type Row, rowOf } from './table.ts';

const rounds = 15;

const body = {
  query: 'query Small($name: String) { backend(name: $name) { name kind endpoint } }',
  variables: { name: 'ollama' },
};

/** A question that is answered from memory: what is left is our way in and out. */
export async function smallQuery(): Promise<Row[]> {
  await using gateway = await startChild('gateway');
  await using reference = await startChild('reference');
  const port = await gateway.ask<number>('port');
  const plainPort = await reference.ask<number>('port');
  const request = { path: '/graphql', body };
  await reference.ask('answer', (await ask(port, request)).text);

  using ours = await createLoad(gateway, port, [requestOf(request)]);
  using plain = await createLoad(reference, plainPort, [requestOf(request)]);
  const found = await compare(ours.measure, plain.measure, rounds);
  return [rowOf('small query, /graphql', found, { figure: 'wall', most: 3.5, aim: 2 })];
}
