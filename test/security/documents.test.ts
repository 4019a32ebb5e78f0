import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { buildClientSchema, getIntrospectionQuery, printSchema } from 'graphql';
import { introspectionOf } from '../../src/config/interfaces.ts';
import { defaultLimits } from '../../src/config/limits.ts';
import { parseServe } from '../../src/config/parse.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { usedMemory } from '../support/memory.ts';
import { ask, openSocket, send, startServer } from '../support/server.ts';
import { nested, numbered, refusal, startGuarded } from './lab.ts';

const server = await startGuarded();
after(() => server.close());
/** Tokens that are read of any document: those that are allowed, the one too many, and the end. */
const mostTokens = defaultLimits.tokens + 2;
const strict = { accept: 'application/graphql-response+json' };

type Asked = readonly (readonly [what: string, query: string, code: string])[];
/** Each is refused for the limit that it passes, though it does not fit the graph either: nothing else was looked at. */
const asked: ReadonlyArray<readonly [title: string, asked: Asked]> = [
  [
    'check 35: a document that is too deep is refused before it is executed',
    [
      ['11 levels', nested(11), 'DEPTH_LIMIT'],
      ['11 levels by fragments', `{ ...F } fragment F on Query ${nested(11)}`, 'DEPTH_LIMIT'],
      ['11 levels by inline fragments', `{ a { ... on X ${nested(10)} } }`, 'DEPTH_LIMIT'],
    ],
  ],
  [
    'check 36: a document that asks for too much is refused for no more work than the limits allow',
    [
      ['31 aliases', `{ info { ${numbered(31, i => `a${i}: version`).join(' ')} } }`, 'ALIAS_LIMIT'],
      [
        '31 aliases by a fragment',
        `{ ${'...F '.repeat(8)}} fragment F on Query { a: b c: d e: f g: h }`,
        'ALIAS_LIMIT',
      ],
      [
        '31 aliases of introspection',
        `{ __schema { ${numbered(31, i => `a${i}: types { name }`).join(' ')} } }`,
        'ALIAS_LIMIT',
      ],
      ['11 root fields', `{ ${'info '.repeat(11)}}`, 'ROOT_FIELD_LIMIT'],
      ['501 fields', `{ info { ${'version '.repeat(500)} } }`, 'COST_LIMIT'],
      ['501 fields of introspection', `{ __schema { ${'types '.repeat(500)} } }`, 'COST_LIMIT'],
      ['2,001 tokens', `{${'a '.repeat(1_999)}}`, 'TOKEN_LIMIT'],
      ['10,000 tokens', `{${'a '.repeat(10_000)}}`, 'TOKEN_LIMIT'],
    ],
  ],
  [
    'check 37: directives, variables and fragments in masses are refused as what they are',
    [
      ['5,000 directives', `{ info ${'@a '.repeat(5_000)}{ version } }`, 'TOKEN_LIMIT'],
      [
        '5,000 variables',
        `query (${numbered(5_000, i => `$v${i}: Int`).join(' ')}) { info { version } }`,
        'TOKEN_LIMIT',
      ],
      [
        'fragments that double 60 times',
        `{ ...F0 } ${numbered(60, i => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`).join(' ')} fragment F60 on Query { info { version } }`,
        'ROOT_FIELD_LIMIT',
      ],
    ],
  ],
];
for (const [title, documents] of asked) {
  for (const [what, query, code] of documents) {
    test(`${title}: ${what}: 400 ${code}`, t =>
      server.untouched(async () => {
        const before = server.refused.length;
        const refused = await refusal(t, server, query);
        assert.deepEqual([refused.status, refused.codes], [400, [code]]);
        assert.ok(refused.tokens > 10 && refused.tokens <= mostTokens, `${refused.tokens} tokens were read`);
        assert.equal(refused.nodes, 0, 'it was not even validated');
        assert.ok(server.refused.length > before, 'it is counted');
      }));
  }
}

test('check 36: a document of 1 MiB is refused with 413, unread and counted', t =>
  server.untouched(async () => {
    const before = server.refused.filter(reason => reason === 'body').length;
    const refused = await refusal(t, server, `{ ${'a '.repeat(512 * 1024)}}`);
    assert.deepEqual(refused, { status: 413, codes: [], tokens: 0, nodes: 0 });
    assert.ok(server.refused.filter(reason => reason === 'body').length > before);
  }));

test('each limit of a document is the one that is set, and counted under its name', async () => {
  await using strictly = await startServer({
    limits: { tokens: 60, depth: 2, aliases: 1, rootFields: 2, fields: 4, rows: 1, graphqlBody: 1_000 },
  });
  for (const [query, code] of [
    [`{${'a '.repeat(60)}}`, 'TOKEN_LIMIT'],
    [nested(3), 'DEPTH_LIMIT'],
    ['{ a: __typename b: __typename }', 'ALIAS_LIMIT'],
    ['{ info { version } jobs { totalCount } __typename }', 'ROOT_FIELD_LIMIT'],
    ['{ info { version version version version } }', 'COST_LIMIT'],
  ] as const) {
    const { json } = await ask(strictly, query);
    assert.equal(json.errors[0].extensions.code, code, query);
  }
  assert.equal((await ask(strictly, `{ __typename } # ${'x'.repeat(1_000)}`)).status, 413);
  assert.deepEqual(strictly.refused, ['tokens', 'depth', 'aliases', 'root_fields', 'fields', 'body']);
});

test('what is just within the limits is answered', async () => {
  const deep =
    '{ backend { models { backend { models { backend { models { backend { models { backend { name } } } } } } } } } }';
  for (const query of [
    deep,
    `{ info { ${numbered(30, i => `a${i}: version`).join(' ')} } }`,
    `{ ${'info { version } '.repeat(10)}}`,
    `{ info { ${'version '.repeat(499)} } }`,
  ]) {
    const { status, json } = await ask(server, query);
    assert.deepEqual([status, json.errors], [200, undefined]);
  }
});

test('the refusal says what the limit is', async () => {
  const { json } = await ask(server, `{${'a '.repeat(3_000)}}`);
  assert.equal(json.errors[0].message, 'invalid request: the document has more than 2000 tokens, 2000 are allowed');
  const { json: deep } = await ask(server, nested(12));
  assert.equal(deep.errors[0].message, 'invalid request: the document has 12 levels of fields, 10 are allowed');
});

test('check 37: what goes in circles, does not parse or does not fit the graph is refused with 400, for little work', t =>
  server.untouched(async () => {
    for (const query of [
      'query { ...A } fragment A on Query { ...B } fragment B on Query { ...A }',
      `{ info ${'@a '.repeat(900)}{ version } }`,
      `query (${numbered(480, i => `$v${i}: Int`).join(' ')}) { info { version } }`,
      '{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }',
      `{ info(a: ${'['.repeat(900)}${']'.repeat(900)}) { version } }`,
      '{ info { ',
      '',
      '{ nope }',
    ]) {
      const { status, codes, tokens, nodes } = await refusal(t, server, query, strict);
      assert.equal(status, 400, query.slice(0, 60));
      assert.deepEqual(new Set(codes), new Set(['invalid_request']));
      assert.ok(tokens <= mostTokens, `${query.slice(0, 60)}: ${tokens} tokens were read`);
      if (query.includes('fragment A')) assert.ok(nodes > 10, 'what is validated is counted');
      // A few walks through the document, whatever it spreads.
      assert.ok(nodes <= 4 * mostTokens, `${query.slice(0, 60)}: ${nodes} nodes were looked at`);
    }
  }));

test('check 37: 5,000 variables nobody declared, and one that is nested without end, are harmless', async () => {
  const many = Object.fromEntries(numbered(5_000, i => `v${i}`).map(name => [name, 1]));
  assert.equal((await ask(server, '{ __typename }', many)).status, 200);
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  const query = 'query ($backend: String) { models(backend: $backend) { totalCount } }';
  const body = `{"query":"${query}","variables":{"backend":${deep}}}`;
  for (const accept of ['*/*', 'text/event-stream']) {
    const { status, text } = await send(server.graphqlUrl, body, { headers: { accept } });
    assert.equal(status, 200);
    assert.match(text, /"code":"invalid_request"/);
    assert.ok(text.length < 2_000);
  }
});

test('broken documents and huge ones are not kept', async () => {
  await ask(server, '{ __typename }');
  const before = (await usedMemory()).heap;
  for (let index = 0; index < 300; index++) {
    const padding = `# ${index} ${'x'.repeat(200_000)}\n`;
    await ask(server, `${padding}{ __typename }`);
    await ask(server, `${padding}{ broken`);
  }
  const grown = (await usedMemory()).heap - before;
  assert.ok(grown < 10, `${grown} MB of 120 were kept`);
});

test('introspection gives the whole graph to the tools that ask for it', async () => {
  const query = getIntrospectionQuery({ inputValueDeprecation: true, specifiedByUrl: true, schemaDescription: true });
  const { json } = await ask(server, query);
  assert.equal(json.errors, undefined);
  assert.equal(printSchema(buildClientSchema(json.data)), printSchema(schema));
});

test('check 38: introspection that is off is refused on every transport, and nothing else is', async () => {
  await using closed = await startServer({ introspection: false });
  for (const query of [
    '{ __schema { types { name } } }',
    '{ __type(name: "Model") { name } }',
    getIntrospectionQuery(),
  ]) {
    const { json, status } = await send(closed.graphqlUrl, { query }, { headers: strict });
    assert.equal(status, 400);
    assert.equal(json.data, undefined);
    assert.match(json.errors[0].message, /introspection/i);
    assert.equal(json.errors[0].extensions.code, 'invalid_request');
  }
  const socket = await openSocket(closed.socketUrl);
  socket.send({ id: '1', type: 'subscribe', payload: { query: '{ __schema { types { name } } }' } });
  const { type, payload } = await socket.next();
  assert.equal(type, 'error');
  assert.match(payload[0].message, /introspection/i);
  assert.deepEqual((await ask(closed, '{ __typename }')).json, { data: { __typename: 'Query' } });
  socket.raw.terminate();
});

test('check 38: introspection goes with the page unless it is set', () => {
  const introspects = (...argv: string[]) => {
    const { settings } = parseServe(argv, {}, { buildable: [] });
    return introspectionOf(settings);
  };
  assert.equal(introspects(), true);
  assert.equal(introspects('--graphiql=false'), false);
  assert.equal(introspects('--graphiql=false', '--introspection', 'true'), true);
  assert.equal(introspects('--introspection', 'false'), false);
});

test('check 39: a name that is nearly right is not told what is right', async () => {
  for (const query of [
    '{ modelz { totalCount } }',
    '{ models { item { name } } }',
    '{ models(backened: "x") { totalCount } }',
    '{ __typename ... on Modle { name } }',
    'query ($x: Strin) { __typename }',
    '{ __typename @skp(if: true) }',
    '{ jobs(phase: RUNING) { totalCount } }',
    'mutation { loadModell(model: "a") { name } }',
  ]) {
    const answers = [
      await ask(server, query),
      await send(server.graphqlUrl, { query }, { headers: { accept: 'text/event-stream' } }),
    ];
    for (const { text } of answers) {
      assert.match(text, /"errors"/, query);
      assert.doesNotMatch(text, /did you mean/i, query);
    }
  }
});
