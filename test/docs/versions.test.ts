/** The table of versions on the page for operators: each cell of it is what the tests of this repository run with. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { test } from 'node:test';
import { parse } from 'yaml';
import { startCluster } from '../../src/demo/cluster.ts';
import { kagentDefinition } from '../../src/demo/kagent.ts';
import { karpenterDefinitions } from '../../src/demo/karpenter.ts';
import { kserveDefinitions } from '../../src/demo/kserve.ts';
import { readChart } from '../chart/helm.ts';
import { fetchedTool, skipWithout } from '../support/tools.ts';
import { read, rowsBelow } from './page.ts';

const rows = new Map(
  rowsBelow('## What was tested, and what was not').map(([name = '', ...cells]) => [name, cells.join(' | ')]),
);

/** Whatever of a row is a version, in its order: `v1.33.4`, `>=1.27.0-0`, `kagent.dev/v1alpha3`, `2025-11-25`. */
const versionsOf = (row: string) =>
  (rows.get(row) ?? '').match(
    /[a-z.\d]+\/v\d+(?:alpha\d+|beta\d+)?|(?:>=|v)?\d+\.\d+\.\d+(?:-\d+)?|\d{4}-\d\d-\d\d/g,
  ) ?? [];

const { devDependencies, dependencies } = JSON.parse(read('package.json'));
const { version, kubeVersion } = parse(readChart('Chart.yaml'));

/** The text of tests, which runs with what it names. */
const tests = (pattern: string) =>
  globSync(pattern, { cwd: new URL('../', import.meta.url).pathname })
    .map(path => read(`test/${path}`))
    .join('\n');

function printedBy(tool: 'kubectl' | 'helm', ...args: string[]): string {
  const path = fetchedTool(tool);
  assert.ok(path);
  const { stdout, status } = spawnSync(path, args, { encoding: 'utf8', env: {} });
  assert.equal(status, 0);
  return stdout;
}

for (const [tool, row, args] of [
  ['kubectl', 'Kubernetes', ['version', '--client', '--output', 'yaml']],
  ['helm', 'Helm', ['version', '--short']],
] as const) {
  // One that was here before, of whatever version, is not what the table speaks of.
  test(`the ${tool} of the table is that of the tests`, { skip: skipWithout(tool, fetchedTool(tool)) }, () => {
    const [found] = /v\d+\.\d+\.\d+/.exec(printedBy(tool, ...args)) ?? [];
    assert.ok(rows.get(row)?.includes(`${tool} ${found}`), found);
  });
}

test('the API server of the table is the emulated one, and the chart takes it', async () => {
  await using cluster = await startCluster();
  const { gitVersion } = (await (await fetch(`${cluster.url}/version`)).json()) as { gitVersion: string };
  const [server, , client] = versionsOf('Kubernetes');
  assert.deepEqual([server, client], [gitVersion, dependencies['@kubernetes/client-node']]);
  assert.deepEqual(versionsOf('Helm').slice(0, 2), [version, kubeVersion]);
});

interface Definition {
  readonly kind: string;
  readonly spec: { readonly group: string; readonly versions: readonly { readonly name: string }[] };
}

/** `kagent.dev/v1alpha2`, once each. */
const servedBy = (objects: readonly object[]) => [
  ...new Set(
    (objects as readonly Definition[])
      .filter(({ kind }) => kind === 'CustomResourceDefinition')
      .flatMap(({ spec }) => spec.versions.map(({ name }) => `${spec.group}/${name}`)),
  ),
];

test('kinds of others are in the versions of the table', () => {
  assert.deepEqual(versionsOf('KServe'), servedBy(kserveDefinitions('kserve')));
  assert.deepEqual(versionsOf('Karpenter'), servedBy(karpenterDefinitions()));
  assert.deepEqual(versionsOf('kagent').sort(), servedBy([kagentDefinition()]).sort());
});

test('emulated hosts have the versions of the table', () => {
  const emulated = (name: string) => /options\.version \?\? '([\d.]+)'/.exec(read(`src/demo/${name}.ts`))?.[1];
  for (const [row, name] of [
    ['Ollama', 'ollama'],
    ['LM Studio', 'lmstudio'],
    ['Lemonade', 'lemonade'],
  ] as const) {
    const [usual, ...others] = versionsOf(row);
    assert.equal(usual, emulated(name), row);
    const run = tests(`{demo,fieldCases}/*${name}*.test.ts`) + tests(`demo/${name}*.test.ts`);
    assert.deepEqual(
      others.filter(each => each !== devDependencies[name] && !run.includes(`'${each}'`)),
      [],
      row,
    );
  }
});

test('clients, providers and Node are those of the table', () => {
  assert.deepEqual(versionsOf('MCP').slice(-2), [
    devDependencies['@modelcontextprotocol/sdk'],
    devDependencies['@modelcontextprotocol/client'],
  ]);
  const revisions = versionsOf('MCP').slice(0, -2);
  assert.equal(revisions.length, 5);
  assert.deepEqual(
    revisions.filter(each => !tests('mcp/*.test.ts').includes(`'${each}'`)),
    [],
  );
  assert.deepEqual(versionsOf('muster'), [/protocolVersion = '([\d-]+)'/.exec(read('test/mcp/muster.ts'))?.[1]]);
  assert.deepEqual(versionsOf('OAuth'), [devDependencies['oidc-provider']]);
  assert.deepEqual(versionsOf('Node'), [devDependencies.node]);
  assert.equal(versionsOf('Ollama').at(-1), devDependencies.ollama);
});
