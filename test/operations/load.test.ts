import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { parse, print, validate } from 'graphql';
import { loadOperations, type Operation } from '../../src/operations/load.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { operations } from '../support/server.ts';

const folder = mkdtempSync(join(tmpdir(), 'operations-'));
after(() => rmSync(folder, { recursive: true }));
for (const file of ['directives.graphql', 'fragments.graphql']) {
  copyFileSync(new URL(`../../schema/operations/${file}`, import.meta.url), join(folder, file));
}

/** Loads a folder whose only operation is this one. */
function load(text: string): Operation {
  const path = join(folder, 'some.graphql');
  writeFileSync(path, text);
  try {
    const [operation] = loadOperations(schema, pathToFileURL(`${folder}/`));
    return operation as Operation;
  } finally {
    rmSync(path);
  }
}

const named = (name: string) => operations.find(each => each.name === name) as Operation;

test('an operation is what its file says', () => {
  const operation = load(`# Shows one backend.
# All of it.
#
# A second paragraph.
query some($ref: String! @named(rest: "name", tool: "model"), $backend: String = "x")
@rest(method: GET, path: "/some/{name...}") @tool(name: "some_tool", destructive: true) {
  answer: model(model: $ref, backend: $backend) { name size: sizeBytes }
}
`);
  assert.equal(operation.name, 'some');
  assert.equal(operation.type, 'query');
  assert.equal(operation.summary, 'Shows one backend. All of it.');
  assert.equal(operation.description, 'Shows one backend. All of it.\n\nA second paragraph.');
  assert.equal(operation.rootKey, 'answer');
  assert.deepEqual({ ...operation.rest }, { method: 'GET', path: '/some/{name...}', status: 200, oneOf: [] });
  const { name, destructive, idempotent } = operation.tool ?? assert.fail('no tool');
  assert.deepEqual([name, destructive, idempotent], ['some_tool', true, false]);
  const [ref, backend] = operation.variables;
  assert.deepEqual(
    [ref?.name, ref?.restName, ref?.toolName, ref?.required, ref?.defaultValue, ref?.argument.name],
    ['ref', 'name', 'model', true, undefined, 'model'],
  );
  assert.deepEqual(
    [backend?.name, backend?.restName, backend?.toolName, backend?.required, backend?.defaultValue],
    ['backend', 'backend', 'backend', false, 'x'],
  );
  assert.equal(operation.text, print(operation.document));
  assert.doesNotMatch(operation.text, /@|some_tool/, 'clients send no directives of ours');
});

test('the text of an operation carries the fragments that it uses, and no others', () => {
  const { text } = named('getModel');
  const fragments = [...text.matchAll(/^fragment (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(fragments.sort(), [
    'FitResult',
    'LoadedModel',
    'Model',
    'ModelConfigRef',
    'Step',
    'Target',
    'WiringResult',
  ]);
  for (const operation of operations) {
    assert.deepEqual(validate(schema, parse(operation.text)), [], operation.name);
    assert.equal(print(parse(operation.text)), operation.text, operation.name);
  }
});

test('a file that does not fit the graph is named when loading stops', () => {
  const comment = '# Something.\n';
  const table: Record<string, [text: string, problem: RegExp]> = {
    'no GraphQL': [`${comment}query some {`, /Syntax Error: Expected Name, found <EOF>/],
    'an unknown field': [`${comment}query some { info { colour } }`, /Cannot query field "colour" on type "Info"/],
    'an unknown argument': [`${comment}query some { backend(id: "x") { name } }`, /Unknown argument "id"/],
    'an unknown directive': [`${comment}query some @route { info { version } }`, /Unknown directive "@route"/],
    'an unknown method': [`${comment}query some @rest(method: PUT, path: "/x") { info { version } }`, /"PUT"/],
    'a route without a path': [
      `${comment}query some @rest(method: GET) { info { version } }`,
      /"path" of type "String!"/,
    ],
    'an unknown fragment': [`${comment}query some { info { ...Info } }`, /Unknown fragment "Info"/],
    'a variable of the wrong type': [
      `${comment}query some($id: Int!) { job(id: $id) { jobId } }`,
      /Variable "\$id" of type "Int!" used in position expecting type "String!"/,
    ],
    'a variable that is not used': [`${comment}query some($id: String) { info { version } }`, /"\$id" is never used/],
    'no comment': ['query some { info { version } }', /must begin with a comment/],
    'no name': [`${comment}{ info { version } }`, /has no named operation/],
    'no operation': [`${comment}fragment Some on Info { version }`, /has no named operation/],
    'two root fields': [`${comment}query some { info { version } backend { name } }`, /must select one root field/],
    'no root field': [
      `${comment}query some { ...Q }\nfragment Q on Query { info { version } }`,
      /must select one root field/,
    ],
    'a selection that differs': [
      `${comment}query some($id: String!, $deep: Boolean!) { job(id: $id) { jobId error @include(if: $deep) } }`,
      /selects the same fields every time/,
    ],
    'an interface': [
      `${comment}query some($id: ID!) { node(id: $id) { id } }`,
      /Node cannot be written by a stored operation/,
    ],
    'a keyed list without its key': [
      `${comment}query some { models { errors { message } } }`,
      /keyed by backend must select/,
    ],
  };
  for (const [what, [text, problem]] of Object.entries(table)) {
    assert.throws(
      () => load(text),
      ({ message }: Error) => {
        assert.match(message, problem, what);
        assert.ok(message.startsWith('schema/operations/some.graphql: '), `${what}: ${message}`);
        return true;
      },
      what,
    );
  }
});

test('no two operations have the same name, route or tool', () => {
  const twice = (names: readonly (string | undefined)[]) =>
    names.filter((name, index) => name !== undefined && names.indexOf(name) !== index);
  assert.deepEqual(twice(operations.map(({ name }) => name)), []);
  assert.deepEqual(twice(operations.map(({ rest }) => rest && `${rest.method} ${rest.path}`)), []);
  assert.deepEqual(twice(operations.map(({ tool }) => tool?.name)), []);
});

test('a file is named like its operation', () => {
  const isDryRun = (name: string) => /^plan[A-Z]/.test(name);
  for (const { name, type, rest, tool } of operations) {
    assert.match(name, type === 'subscription' ? /^watch[A-Z]/ : /^(?!watch)[a-z]+[A-Z]/);
    assert.equal(Boolean(rest ?? tool), type !== 'subscription' && !isDryRun(name), name);
  }
});

test('the query for dry runs of a face is linked, and compiled as the operation it is', () => {
  for (const action of ['Pull', 'Load', 'Unload', 'Delete']) {
    const { rest, tool } = named(`${action.toLowerCase()}Model`);
    assert.equal(rest?.dryRun, named(`plan${action}`));
    assert.equal(tool?.dryRun, named(`plan${action}`));
  }
  assert.equal(named('wireModel').tool?.dryRun, undefined);
});

test('a dry run that could not take the place of its operation is named when loading stops', () => {
  const plan = (signature = '($model: String!)', kind = 'query', more = '', field = 'model') =>
    `# A plan.\n${kind} other${signature} ${more} { ${field}(model: $model) { ${kind === 'query' ? 'name' : 'model'} } }`;
  const table: [other: string | undefined, problem: RegExp][] = [
    [undefined, /its dryRun other is no stored operation/],
    [plan('($model: String!)', 'mutation', '', 'unloadModel'), /its dryRun other is a mutation, it must be a query/],
    [plan(undefined, undefined, '@tool(name: "other_tool")'), /its dryRun other is a route or a tool of its own/],
    [
      '# A plan.\nquery other($id: String!) { job(id: $id) { jobId } }',
      /its dryRun other takes \(\$id: String!\), it must take \(\$model: String!\)/,
    ],
    [plan('($model: String! = "x")'), /takes \(\$model: String! = "x"\), it must take \(\$model: String!\)/],
  ];
  const other = join(folder, 'other.graphql');
  for (const face of ['@rest(method: POST, path: "/x", dryRun: "other")', '@tool(name: "x", dryRun: "other")']) {
    const operation = `# Something.\nmutation some($model: String!) ${face} { unloadModel(model: $model) { model } }`;
    for (const [text, problem] of table) {
      if (text) writeFileSync(other, text);
      try {
        assert.throws(
          () => load(operation),
          ({ message }: Error) => message.startsWith('schema/operations/some.graphql: ') && problem.test(message),
          `${face} ${text}`,
        );
      } finally {
        rmSync(other, { force: true });
      }
    }
    const taken = operation.replace('$model: String!', '$model: String! @named(rest: "dryRun")');
    writeFileSync(other, plan());
    try {
      assert.throws(() => load(taken), /is asked for by dryRun, and \$model has that name/);
    } finally {
      rmSync(other);
    }
  }
});
