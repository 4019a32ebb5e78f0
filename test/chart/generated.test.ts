import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { chartFiles } from '../../scripts/chart/files.ts';
import { readValues } from '../../scripts/chart/values.ts';
import { permissions } from '../../src/kubernetes/permissions.ts';
import { examples, readChart } from './helm.ts';

for (const [path, text] of Object.entries(chartFiles(readChart('values.yaml')))) {
  test(`${path} of the chart is what its values and the code say`, () => {
    assert.ok(readChart(path) === text, 'it is stale: run `npm run chart` and commit the file');
  });
}

test('the chart has the version of the program', () => {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const { version, appVersion } = parse(readChart('Chart.yaml'));
  assert.deepEqual([version, appVersion], [manifest.version, manifest.version]);
});

test('the schema takes the values and the examples', () => {
  const ajv = new Ajv({ allErrors: true, strict: false });
  const check = ajv.compile(JSON.parse(readChart('values.schema.json')));
  for (const values of [parse(readChart('values.yaml')), ...Object.values(examples)]) {
    check(values);
    assert.deepEqual(check.errors ?? [], []);
  }
});

test('a value without a comment is not documented, and says so', () => {
  assert.throws(
    () => readValues('## Names\n\n# Its name.\na: 1\nb: 2\n'),
    /^Error: b has no comment that says what it is$/,
  );
  assert.throws(() => readValues('# Its name.\na: 1\n'), /^Error: a is above the first heading$/);
});

test('a row of the table either reads or writes, so that the rows that only read can be told', () => {
  const reading = ['get', 'list', 'watch'];
  const mixed = permissions
    .filter(({ scope, only }) => scope === 'own' && !only)
    .filter(({ verbs }) => verbs.some(verb => reading.includes(verb)) && !verbs.every(verb => reading.includes(verb)));
  assert.deepEqual(mixed, []);
});
