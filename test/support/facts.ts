/** What all faces say of the same gateway, and what somebody who watches it has come to know. */
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { callTool } from '../mcp/muster.ts';
import { restRequestOf, toolArgumentsOf } from './cases.ts';
import { rest } from './rest.ts';
import { ask, operations, type Stream, type TestServer, textOf } from './server.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type Json = any;
export type Face = 'REST' | 'MCP' | 'GraphQL';
export const allFaces: readonly Face[] = ['REST', 'MCP', 'GraphQL'];

/** Runs a stored operation through one face: its answer, or `code: message` of its refusal. */
export async function through(face: Face, server: TestServer, name: string, asks: object = {}): Promise<Json> {
  const operation = operations.find(each => each.name === name);
  assert.ok(operation, `${name} is an operation`);
  const variables = asks as Readonly<Record<string, unknown>>;
  switch (face) {
    case 'REST': {
      assert.ok(operation.rest, `${name} is a route`);
      const { line, body } = restRequestOf(operation, variables);
      const { json } = await rest(server.url, line, body ? { body } : {});
      return json.error?.code ? `${json.error.code}: ${json.error.message}` : json;
    }
    case 'MCP': {
      assert.ok(operation.tool, `${name} is a tool`);
      const { isError, text, data } = await callTool(
        `${server.url}/mcp`,
        operation.tool.name,
        toolArgumentsOf(operation, variables),
      );
      return isError ? text : data;
    }
    case 'GraphQL': {
      const { json } = await ask(server, operation.text, asks);
      const [error] = json.errors ?? [];
      return error ? `${error.extensions.code}: ${error.message}` : json.data[operation.rootKey];
    }
  }
}

/** Of a model, in the same words whoever says it. */
const modelFacts = ({ backend, name, sizeBytes, loaded, running }: Json) => ({
  model: `${backend}/${name}`,
  sizeBytes: sizeBytes ?? 0,
  loaded,
  expiresAt: running?.expiresAt ?? null,
  pinned: running?.pinned ?? false,
});

/** Of a job. */
const jobFacts = ({ id, backend, model, phase, bytesCompleted, bytesTotal, percent }: Json) => ({
  id,
  model: `${backend}/${model}`,
  phase: String(phase).toLowerCase(),
  bytesCompleted,
  bytesTotal,
  percent,
});

export interface Facts {
  readonly models: readonly ReturnType<typeof modelFacts>[];
  readonly jobs: readonly ReturnType<typeof jobFacts>[];
}

const byModel = <F extends { readonly model: string }>(facts: readonly F[]) =>
  facts.toSorted((a, b) => (a.model < b.model ? -1 : 1));

/** What one face says now. */
export async function factsOf(face: Face, server: TestServer): Promise<Facts> {
  const { models, errors } = await through(face, server, 'listModels');
  assert.deepEqual(errors ?? {}, {}, 'every backend answers');
  const { jobs } = await through(face, server, 'listJobs');
  const { loaded } = await through(face, server, 'listLoaded');
  const facts = { models: byModel(models.map(modelFacts)), jobs: byModel(jobs.map(jobFacts)) } as Facts;
  assert.deepEqual(
    loaded.map(({ backend, name }: Json) => `${backend}/${name}`).toSorted(),
    facts.models.filter(each => each.loaded).map(({ model }) => model),
    `${face}: what is loaded is what is listed as loaded`,
  );
  return facts;
}

/** Somebody who keeps what a subscription tells them, as the graph says one should. */
export function keeper(stream: Stream, field: 'models' | 'jobs') {
  const idOf = (item: Json): string => item.globalId ?? item.id;
  let kept = new Map<string, Json>();
  return {
    /** Takes events until what is known has come to these facts. */
    async until(facts: Facts): Promise<void> {
      const known = () =>
        byModel([...kept.values()].map<{ model: string }>(field === 'models' ? modelFacts : jobFacts));
      while (!isDeepStrictEqual(known(), facts[field])) {
        const what = `an event that leads from ${JSON.stringify(known())} to ${JSON.stringify(facts[field])}`;
        const { snapshot, items, removed } = (await stream.nextPayload(what)).data[field];
        if (snapshot) kept = new Map();
        for (const item of items) kept.set(idOf(item), item);
        for (const id of removed) kept.delete(id);
      }
    },
  };
}

/** The text of the subscription that tells of a list. */
export const watching = { models: textOf('watchModels'), jobs: textOf('watchJobs') } as const;
