import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instructionsFor } from '../../src/mcp/instructions.ts';
import { toolNamesOf, toolOf, toolOperationsOf } from '../../src/mcp/tools.ts';
import { fakeDriver, hang } from '../support/gateway.ts';
import { callTool, request } from './muster.ts';
import { schemaCheck } from './schemaCheck.ts';
import { operations, serveTools } from './serving.ts';

const tools = toolOperationsOf(operations).map(toolOf);

/** R read-only, D destructive, I idempotent. */
const hints: Record<string, string> = {
  add_backend: 'DI',
  cancel_job: '',
  check_fit: 'RI',
  delete_model: 'D',
  explain_fit: 'RI',
  get_backend: 'RI',
  get_info: 'RI',
  get_job: 'RI',
  get_model: 'RI',
  list_backends: 'RI',
  list_jobs: 'RI',
  list_loaded_models: 'RI',
  list_models: 'RI',
  list_nodes: 'RI',
  list_presets: 'RI',
  load_model: 'I',
  pull_model: '',
  remove_backend: 'D',
  search_models: 'RI',
  unload_model: 'I',
  unwire_model: 'DI',
  wire_model: 'I',
};

test('the annotations tell what a tool may do', () => {
  const told = tools.map(({ name, annotations }) => {
    assert.equal(annotations?.openWorldHint, true);
    const letters = [
      annotations.readOnlyHint && 'R',
      annotations.destructiveHint && 'D',
      annotations.idempotentHint && 'I',
    ].filter(Boolean);
    return [name, letters.join('')];
  });
  assert.deepEqual(Object.fromEntries(told), hints);
});

test('the tools are listed by name, and the names are known before there is a gateway', () => {
  const names = toolNamesOf(operations);
  assert.deepEqual(names, Object.keys(hints));
  assert.deepEqual(
    names,
    tools.map(tool => tool.name),
  );
});

test('the first line of a description says what the tool is for in 120 characters, and no two say the same', () => {
  const lines = tools.map(({ description }) => description?.split('\n', 1)[0] ?? '');
  for (const line of lines) {
    assert.ok(line.length > 20 && line.length <= 120, `${line.length} characters: ${line}`);
    assert.match(line, /^[A-Z].*[.:]$/);
  }
  assert.equal(new Set(lines).size, lines.length);
});

test('every tool has a title in words', () => {
  const titles = Object.fromEntries(tools.map(({ name, title, annotations }) => [name, [title, annotations?.title]]));
  assert.deepEqual(titles.list_loaded_models, ['List loaded models', 'List loaded models']);
  assert.equal(new Set(tools.map(({ title }) => title)).size, tools.length);
});

test('input schemas name every argument, and require only what is insisted on', () => {
  const shapes = tools.map(({ name, inputSchema }) => {
    schemaCheck(inputSchema);
    for (const [argument, schema] of Object.entries(inputSchema.properties ?? {})) {
      assert.ok((schema as { description?: string }).description, `${name} describes ${argument}`);
    }
    const names = Object.keys(inputSchema.properties ?? {}).map(argument =>
      inputSchema.required?.includes(argument) ? `${argument}*` : argument,
    );
    return [name, names.join(' ')];
  });
  assert.deepEqual(Object.fromEntries(shapes), {
    add_backend:
      'kind* endpoint agentEndpoint source credentialsSecret credentialsKey cluster organization apiServer caBundle ' +
      'servingNamespace discoveryNamespace discoveryName gpuPoolTaint gpuPoolNodeSelector dryRun mode',
    cancel_job: 'id*',
    check_fit: 'model backend preset node',
    delete_model: 'model* unwire backend dryRun',
    explain_fit: 'model backend preset node',
    get_backend: 'backend',
    get_info: '',
    get_job: 'id*',
    get_model: 'model* backend',
    list_backends: '',
    list_jobs: 'backend',
    list_loaded_models: 'backend',
    list_models: 'backend',
    list_nodes: 'backend',
    list_presets: 'backend',
    load_model: 'model backend keepAlive preset node dryRun',
    pull_model: 'model* backend wire preset node dryRun',
    remove_backend: 'kind* dryRun mode',
    search_models: 'query* limit backend',
    unload_model: 'model* backend dryRun',
    unwire_model: 'model* backend',
    wire_model: 'model* backend apiKeyPassthrough apiKeySecret apiKeySecretKey',
  });
  const unwire = tools.find(({ name }) => name === 'delete_model')?.inputSchema.properties?.unwire;
  assert.deepEqual(unwire, { type: 'boolean', description: 'Remove its wiring first.', default: true });
});

test('a tool with a dry run says so, and answers one of two', () => {
  const withDryRun = tools.filter(({ outputSchema }) => outputSchema?.anyOf !== undefined);
  assert.deepEqual(
    withDryRun.map(({ name }) => name),
    ['delete_model', 'load_model', 'pull_model', 'unload_model'],
  );
  for (const { name, inputSchema, outputSchema } of withDryRun) {
    const { dryRun } = inputSchema.properties as { dryRun: { description: string } };
    assert.deepEqual({ ...dryRun, description: '' }, { type: 'boolean', default: false, description: '' }, name);
    assert.deepEqual(Object.keys(outputSchema ?? {}), ['type', 'anyOf'], 'nothing of one answer is said of both');
    const { anyOf } = outputSchema as unknown as { anyOf: { required: string[] }[] };
    const [answer, plan, ...others] = anyOf;
    assert.deepEqual(others, []);
    assert.ok(answer && !answer.required.includes('dryRun'));
    assert.deepEqual(plan?.required, ['dryRun', 'backend', 'model', 'manifests']);
  }
});

test('output schemas are objects that need nothing beside them', () => {
  for (const { outputSchema } of tools) {
    assert.equal(outputSchema?.type, 'object');
    assert.doesNotMatch(JSON.stringify(outputSchema), /\$ref/);
    schemaCheck(outputSchema);
  }
});

test('the instructions speak of no tool that is not there', () => {
  const instructions = instructionsFor(toolNamesOf(operations));
  for (const [name] of instructions.matchAll(/\b[a-z]+(_[a-z]+)+\b/g)) {
    assert.ok(name in hints || name === 'not_found', name);
  }
  assert.match(instructions, /list_backends first/);
  assert.match(instructions, /add_backend adds one/);
  const without = Object.keys(hints).filter(name => name !== 'add_backend');
  assert.doesNotMatch(instructionsFor(without), /add_backend/);
});

test('the tool list is answered without asking a backend', async t => {
  const stuck = fakeDriver();
  for (const method of ['describe', 'models', 'loaded', 'nodes'] as const) stuck.script[method] = hang().answer;
  const { url } = await serveTools(t, { drivers: [stuck] });
  for (let round = 0; round < 20; round++) {
    const { result } = await request(url, 'tools/list');
    assert.deepEqual(result.tools, JSON.parse(JSON.stringify(tools)));
  }
  assert.deepEqual(stuck.asked, []);
});

test('the gateway names the tools in the order of the list', async t => {
  const { url, mcp } = await serveTools(t);
  const { data } = await callTool(url, 'get_info');
  assert.deepEqual(data.tools, mcp.toolNames);
});
