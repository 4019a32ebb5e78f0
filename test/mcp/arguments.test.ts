import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GraphQLArgument, GraphQLFloat, GraphQLInt } from 'graphql';
import { asksDryRun, variablesOfArguments } from '../../src/mcp/arguments.ts';
import type { Variable } from '../../src/operations/load.ts';
import { operations } from './serving.ts';

const variablesOf = (name: string) => operations.find(operation => operation.name === name)?.variables ?? [];
const pull = (args: Record<string, unknown>) => variablesOfArguments(variablesOf('pullModel'), args);
const remove = (args: Record<string, unknown>) => variablesOfArguments(variablesOf('deleteModel'), args);

const optional: Variable = {
  name: 'limit',
  restName: 'limit',
  toolName: 'limit',
  type: GraphQLInt,
  required: false,
  defaultValue: undefined,
  argument: {} as GraphQLArgument,
};

const refused = (message: string) => ({ name: 'GatewayError', code: 'backend_error', message });

test('a required string has to be there, and to be a string', () => {
  assert.throws(() => pull({}), refused('required argument "model" not found'));
  for (const model of [5, null, true, {}, ['a']]) {
    assert.throws(() => pull({ model }), refused('argument "model" is not a string'));
  }
});

test('an empty required string is there: whether it makes sense is for the operation to say', () => {
  assert.deepEqual(pull({ model: '' }), { model: '' });
});

test('an optional string of another type, or blank, counts as not given', () => {
  for (const backend of [5, null, {}, '', '  ']) assert.deepEqual(pull({ model: 'a', backend }), { model: 'a' });
  assert.deepEqual(pull({ model: 'a', backend: 'ollama' }), { model: 'a', backend: 'ollama' });
});

test('an optional boolean is a boolean, its word, or a number', () => {
  const cases: [unknown, boolean | undefined][] = [
    [true, true],
    [false, false],
    ['true', true],
    ['false', false],
    ['True', true],
    [1, true],
    [0, false],
    ['maybe', undefined],
    [null, undefined],
    [{}, undefined],
  ];
  for (const [unwire, meant] of cases) {
    assert.deepEqual(
      remove({ model: 'a', unwire }),
      meant === undefined ? { model: 'a' } : { model: 'a', unwire: meant },
    );
  }
});

test('an optional boolean without a default is given by real booleans only', () => {
  for (const wire of ['true', 1, 0, null]) assert.deepEqual(pull({ model: 'a', wire }), { model: 'a' });
  assert.deepEqual(pull({ model: 'a', wire: false }), { model: 'a', wire: false });
});

test('an integer is a number or a numeric string', () => {
  const cases: [unknown, number | undefined][] = [
    [20, 20],
    ['20', 20],
    [' 20 ', 20],
    [20.9, 20],
    [-1, -1],
    ['many', undefined],
    ['', undefined],
    [true, undefined],
    [1e12, undefined],
    ['Infinity', undefined],
  ];
  for (const [limit, meant] of cases) {
    assert.deepEqual(variablesOfArguments([optional], { limit }), meant === undefined ? {} : { limit: meant });
  }
  assert.deepEqual(variablesOfArguments([{ ...optional, type: GraphQLFloat }], { limit: '0.5' }), { limit: 0.5 });
  assert.throws(
    () => variablesOfArguments([{ ...optional, required: true }], { limit: 'many' }),
    refused('argument "limit" is not an integer'),
  );
});

test('an argument that no variable is named after is ignored, whatever it is called', () => {
  const args = JSON.parse('{"model":"a","colour":"red","__proto__":{"backend":"evil"},"constructor":1}');
  assert.deepEqual(pull(args), { model: 'a' });
  assert.throws(() => variablesOfArguments([{ ...optional, toolName: 'toString', required: true }], {}), {
    message: 'required argument "toString" not found',
  });
});

test('an argument goes to the variable it is another name of', () => {
  assert.deepEqual(variablesOfArguments([{ ...optional, toolName: 'max' }], { max: 3, limit: 4 }), { limit: 3 });
});

test('a dry run is asked for by a boolean, its word or a number, and by nothing else', () => {
  for (const dryRun of [true, 'true', 'True', 1]) assert.equal(asksDryRun({ dryRun }), true);
  for (const args of [{}, { dryRun: false }, { dryRun: 'false' }, { dryRun: 0 }, { dryRun: null }])
    assert.equal(asksDryRun(args), false);
  for (const dryRun of ['', 'yes', [], {}]) {
    const shown = JSON.stringify(typeof dryRun === 'string' ? dryRun : JSON.stringify(dryRun));
    const message = `invalid request: "dryRun" is ${shown}, it must be true or false`;
    assert.throws(() => asksDryRun({ dryRun }), { code: 'invalid_request', message });
  }
});
