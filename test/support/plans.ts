/** A dry run on all faces. */
import assert from 'node:assert/strict';
import type { Operation } from '../../src/operations/load.ts';
import { callTool } from '../mcp/muster.ts';
import { restRequestOf, toolArgumentsOf } from './cases.ts';
import type { Faces } from './faces.ts';
import { refusalOf } from './rest.ts';
import { ask, operations } from './server.ts';

type Variables = Readonly<Record<string, unknown>>;
export type Action = 'pull' | 'load' | 'unload' | 'delete';

const named = (name: string) => operations.find(each => each.name === name) as Operation;
const mutationOf = (action: Action) => named(`${action}Model`);

/** The same names for what is made up anew for each plan. */
const settled = (value: unknown) =>
  JSON.parse(JSON.stringify(value).replaceAll(/"mm-rm-([^"]*)-[a-z0-9]{5}"/g, '"mm-rm-$1"'));

/** The plan as REST and MCP write it, which is the same; GraphQL has the same facts. Fails when it is refused. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export async function planOn({ rest }: Faces, action: Action, asks: Variables): Promise<any> {
  const operation = mutationOf(action);
  const { line, body } = dryRequestOf(operation, asks);
  const answer = await rest.send(line, body);
  assert.equal(answer.status, 200, `${line}: ${answer.text}`);
  const args = { ...toolArgumentsOf(operation, asks), dryRun: true };
  const reply = await callTool(`${rest.url}/mcp`, operation.tool?.name ?? '', args);
  assert.equal(reply.isError, false, reply.text);
  const plan = settled(answer.json);
  assert.deepEqual(settled(reply.data), plan);
  assert.deepEqual(settled(reply.structuredContent), plan);
  const { text, rootKey } = planOperation(operation);
  const graph = await ask(rest.server, text, asks);
  assert.equal(graph.json.errors, undefined, graph.text);
  const { manifests, model, backend, dryRun, present = null } = settled(graph.json.data[rootKey]);
  assert.deepEqual([manifests, model, backend, dryRun], [plan.manifests, plan.model, plan.backend, true]);
  assert.equal(present, plan.present ?? null);
  return plan;
}

/** How a dry run is refused, as `code: message`: the same on every face. `how` is how often each face is asked, once. */
export async function planRefusal({ rest, toolRefusal }: Faces, action: Action, asks: Variables): Promise<string> {
  const operation = mutationOf(action);
  const { json } = await ask(rest.server, planOperation(operation).text, asks);
  const [error] = json.errors ?? [{ message: 'refused', extensions: { code: 'not' } }];
  const words = `${error.extensions.code}: ${error.message}`;
  const args = { ...toolArgumentsOf(operation, asks), dryRun: true };
  assert.equal(await toolRefusal(operation.tool?.name ?? '', args), words);
  const { line, body } = dryRequestOf(operation, asks);
  assert.equal(refusalOf(await rest.send(line, body)), `${error.extensions.http.status} ${words}`);
  return words;
}

const planOperation = ({ rest }: Operation) => rest?.dryRun ?? assert.fail('it has no dry run');

/** As a request for the thing itself, with `dryRun`. */
function dryRequestOf(operation: Operation, asks: Variables): { line: string; body?: object } {
  const { line, body } = restRequestOf(operation, asks);
  if (body) return { line, body: { ...body, dryRun: true } };
  return { line: `${line}${line.includes('?') ? '&' : '?'}dryRun=true` };
}
