import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { examples, ofKind, readChart, render, skip, theOne } from './helm.ts';

/** Names of metrics, from the table that the program makes of its own. */
const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const [, table = ''] = /<!-- metrics -->\n([\s\S]*?)\n?<!-- \/metrics -->/.exec(readme) ?? [];
const known = new Set([...table.matchAll(/^\| `(model_manager_\w+)`/gm)].map(([, name]) => name ?? ''));

const namesIn = (text: string) =>
  new Set([...text.matchAll(/model_manager_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, '')));

for (const file of ['files/alerts.yaml', 'files/dashboard.json']) {
  test(`${file} asks for metrics that there are`, () => {
    const names = namesIn(readChart(file));
    assert.ok(names.size >= 3);
    assert.deepEqual(
      [...names].filter(name => !known.has(name)),
      [],
    );
  });
}

interface Rules {
  readonly spec: {
    readonly groups: readonly {
      readonly rules: readonly { readonly alert: string; readonly annotations: Readonly<Record<string, string>> }[];
    }[];
  };
}

test('alerts reach Prometheus as they are, with the names that it fills in', { skip }, () => {
  const { spec, metadata } = theOne<Rules>(render(examples.muster), 'PrometheusRule');
  assert.equal(metadata.labels.release, 'prometheus');
  const rules = spec.groups.flatMap(group => group.rules);
  assert.ok(rules.some(({ annotations }) => annotations.summary?.includes('{{ $labels.backend }}')));
  for (const { alert, annotations } of rules) assert.ok(annotations.summary && annotations.description, alert);
});

test('the dashboard is JSON in a ConfigMap that Grafana finds', { skip }, () => {
  const configMaps = ofKind<{ data: Readonly<Record<string, string>> }>(render(examples.muster), 'ConfigMap');
  const found = configMaps.find(({ metadata }) => metadata.name === 'model-manager-dashboard');
  assert.equal(found?.metadata.labels.grafana_dashboard, '1');
  const { panels } = JSON.parse(found?.data['model-manager.json'] ?? '');
  assert.ok(panels.length > 5);
  assert.deepEqual(ofKind(render(), 'ConfigMap'), []);
});
