import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Answer, configMap, configMaps, lab, namespace, widget, widgets } from './lab.ts';

const bounded = { timeout: 10_000 };
const namesOf = ({ body }: Answer) => body.items.map(({ metadata }) => metadata.name);

const pod = (name: string, spec: object, status: object) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', labels: { app: name } },
  spec,
  status,
});

const event = (name: string, involvedObject: object, reason: string, type = 'Normal') => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name, namespace: 'default' },
  involvedObject,
  reason,
  type,
  message: `${reason} happened`,
  count: 2,
  lastTimestamp: '2026-08-22T07:59:00Z',
});

describe('a list', bounded, () => {
  test('has the objects of a namespace or of all, in order, at a version', async t => {
    const objects = [namespace('n'), configMap('b'), configMap('a'), configMap('a', {}, { namespace: 'n' })];
    const { ask } = await lab(t, { objects });
    const { body } = await ask('GET', '/api/v1/configmaps');
    assert.deepEqual([body.kind, body.apiVersion], ['ConfigMapList', 'v1']);
    assert.deepEqual(
      body.items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
      ['default/a', 'default/b', 'n/a'],
    );
    assert.ok(Number(body.metadata.resourceVersion) >= Number(body.items[2]?.metadata.resourceVersion));
    assert.deepEqual(namesOf(await ask('GET', '/api/v1/namespaces/n/configmaps')), ['a']);
    assert.deepEqual(namesOf(await ask('GET', '/api/v1/namespaces/none/configmaps')), []);
  });

  test('is selected by labels and by fields', async t => {
    const objects = [
      pod('a', { nodeName: 'one' }, { phase: 'Running' }),
      pod('b', { nodeName: 'two' }, { phase: 'Running' }),
      pod('c', {}, { phase: 'Pending' }),
    ];
    const { ask } = await lab(t, { objects });
    const pods = async (query: Record<string, string>) =>
      namesOf(await ask('GET', `/api/v1/pods?${new URLSearchParams(query)}`));
    assert.deepEqual(await pods({ labelSelector: 'app in (a,c)' }), ['a', 'c']);
    assert.deepEqual(await pods({ fieldSelector: 'spec.nodeName=two' }), ['b']);
    assert.deepEqual(await pods({ fieldSelector: 'spec.nodeName=' }), ['c']);
    assert.deepEqual(await pods({ fieldSelector: 'status.phase!=Pending,metadata.name!=a' }), ['b']);
    assert.deepEqual(await pods({ fieldSelector: 'status.phase=Running', labelSelector: 'app=a' }), ['a']);
  });

  test('of events is selected by what they are about', async t => {
    const about = (name: string) => ({ kind: 'Pod', name, namespace: 'default', uid: name });
    const objects = [event('x', about('a'), 'Pulled'), event('y', about('b'), 'Failed', 'Warning')];
    const { ask } = await lab(t, { objects });
    const events = async (selector: string) =>
      namesOf(await ask('GET', `/api/v1/events?fieldSelector=${encodeURIComponent(selector)}`));
    assert.deepEqual(await events('involvedObject.name=a,involvedObject.kind=Pod'), ['x']);
    assert.deepEqual(await events('type=Warning'), ['y']);
    assert.deepEqual(await events('reason=Pulled'), ['x']);
  });

  test('of events is the same in both of their groups', async t => {
    const { ask, cluster } = await lab(t, { objects: [event('x', { kind: 'Pod', name: 'a' }, 'Pulled')] });
    const newer = '/apis/events.k8s.io/v1/namespaces/default/events';
    const { body } = await ask('GET', `${newer}/x`);
    assert.deepEqual(
      [body.apiVersion, body.regarding, body.note, body.deprecatedCount, body.involvedObject],
      ['events.k8s.io/v1', { kind: 'Pod', name: 'a' }, 'Pulled happened', 2, undefined],
    );
    await ask('POST', newer, { metadata: { name: 'y' }, regarding: { kind: 'Pod', name: 'b' }, note: 'hello' });
    const kept = cluster.get('events', 'y', 'default');
    assert.deepEqual([kept?.involvedObject, kept?.message], [{ kind: 'Pod', name: 'b' }, 'hello']);
  });

  test('is refused for what cannot be selected by', async t => {
    const { ask } = await lab(t, { objects: [widgets()] });
    for (const [query, words] of [
      ['fieldSelector=spec.model%3Dx', /field label not supported: spec.model/],
      ['labelSelector=a%20in%20b', /./],
      ['continue=nonsense', /continue key is not valid/],
      ['resourceVersion=x', /invalid syntax/],
    ] as const) {
      const { status, body } = await ask('GET', `/apis/x.dev/v1/widgets?${query}`);
      assert.deepEqual([status, body.reason], [400, 'BadRequest'], query);
      assert.match(body.message, words);
    }
  });

  test('comes in pages that belong together', async t => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const { ask, cluster } = await lab(t, { objects: names.map(name => configMap(name)) });
    const first = await ask('GET', `${configMaps}?limit=2`);
    assert.deepEqual(namesOf(first), ['a', 'b']);
    assert.equal(first.body.metadata.remainingItemCount, 3);
    // What happens between two pages is in neither.
    cluster.remove('configmaps', 'c', 'default');
    cluster.put(configMap('cc'));
    cluster.put(configMap('d', { x: '1' }));
    const second = await ask('GET', `${configMaps}?limit=2&continue=${first.body.metadata.continue}`);
    assert.deepEqual(namesOf(second), ['c', 'd']);
    assert.deepEqual(second.body.items[1]?.data, {});
    assert.equal(second.body.metadata.resourceVersion, first.body.metadata.resourceVersion);
    const third = await ask('GET', `${configMaps}?limit=2&continue=${second.body.metadata.continue}`);
    assert.deepEqual(namesOf(third), ['e']);
    assert.equal(third.body.metadata.continue, undefined);
  });

  test('of pages that are forgotten has to begin again', async t => {
    const { ask, cluster } = await lab(t, { objects: [configMap('a'), configMap('b')] });
    const first = await ask('GET', `${configMaps}?limit=1`);
    cluster.put(configMap('c'));
    cluster.compact();
    const { status, body } = await ask('GET', `${configMaps}?limit=1&continue=${first.body.metadata.continue}`);
    assert.deepEqual([status, body.reason], [410, 'Expired']);
    assert.match(body.message, /continue parameter is too old/);
  });

  test('of the future is not there yet', async t => {
    const { ask } = await lab(t);
    const { status, body, headers } = await ask('GET', `${configMaps}?resourceVersion=100000`);
    assert.deepEqual([status, body.reason, headers.get('retry-after')], [504, 'Timeout', '1']);
    assert.match(body.message, /^Too large resource version: 100000, current: \d+$/);
  });

  test('of the past is as it was', async t => {
    const { ask, cluster } = await lab(t, { objects: [configMap('a')] });
    const { body } = await ask('GET', configMaps);
    cluster.remove('configmaps', 'a', 'default');
    const query = `resourceVersion=${body.metadata.resourceVersion}&resourceVersionMatch=Exact`;
    assert.deepEqual(namesOf(await ask('GET', `${configMaps}?${query}`)), ['a']);
  });
});

describe('a table', bounded, () => {
  const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
  interface Table {
    readonly kind: string;
    readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
    readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: { readonly kind: string } }[];
  }
  const tableOf = ({ body }: Answer) => body as unknown as Table;

  test('has the columns a definition asks for', async t => {
    const additionalPrinterColumns = [
      { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
      { name: 'Host', type: 'string', jsonPath: '.metadata.annotations.x\\.dev/host', priority: 1 },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ];
    const ready = {
      conditions: [
        { type: 'Other', status: 'False' },
        { type: 'Ready', status: 'True' },
      ],
    };
    const objects = [
      widgets({ additionalPrinterColumns }),
      widget('a', { status: ready }, { annotations: { 'x.dev/host': 'h' }, creationTimestamp: '2026-08-22T05:30:00Z' }),
      widget('b'),
    ];
    const { ask } = await lab(t, { objects });
    const { kind, columnDefinitions, rows } = tableOf(
      await ask('GET', '/apis/x.dev/v1/widgets', undefined, { accept }),
    );
    assert.equal(kind, 'Table');
    assert.deepEqual(
      columnDefinitions.map(({ name, priority }) => `${name} ${priority}`),
      ['Name 0', 'Ready 0', 'Host 1', 'Age 0'],
    );
    assert.deepEqual(
      rows.map(({ cells }) => cells),
      [
        ['a', 'True', 'h', '150m'],
        ['b', null, null, '0s'],
      ],
    );
    assert.equal(rows[0]?.object.kind, 'PartialObjectMetadata');
  });

  const states: Readonly<Record<string, object>> = {
    Pending: { phase: 'Pending' },
    Running: { phase: 'Running', containerStatuses: [{ ready: true, restartCount: 0, state: { running: {} } }] },
    CrashLoopBackOff: {
      phase: 'Running',
      containerStatuses: [{ restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } } }],
    },
    OOMKilled: {
      phase: 'Failed',
      containerStatuses: [{ state: { terminated: { reason: 'OOMKilled', exitCode: 137 } } }],
    },
    'Init:0/1': { phase: 'Pending', initContainerStatuses: [{ state: { running: {} } }] },
    'Init:ErrImagePull': {
      phase: 'Pending',
      initContainerStatuses: [{ state: { waiting: { reason: 'ErrImagePull' } } }],
    },
    Evicted: { phase: 'Failed', reason: 'Evicted' },
  };
  for (const [expected, status] of Object.entries(states)) {
    test(`says what ails a pod: ${expected}`, async t => {
      const spec = { containers: [{ name: 'c' }], initContainers: [{ name: 'i' }] };
      const { ask } = await lab(t, { objects: [pod('p', spec, status)] });
      const { rows } = tableOf(await ask('GET', '/api/v1/pods', undefined, { accept }));
      assert.equal(rows[0]?.cells[2], expected);
    });
  }

  test('tells ages in two units while the first is small', async t => {
    const ages = {
      '119s': 119,
      '2m': 120,
      '9m59s': 599,
      '10m': 605,
      '179m': 10_799,
      '3h': 10_800,
      '5h10m': 18_600,
      '47h': 169_300,
      '2d1h': 176_500,
      '8d': 700_000,
    };
    const objects = Object.entries(ages).map(([name, seconds]) =>
      configMap(
        name,
        {},
        { creationTimestamp: new Date(Date.parse('2026-08-22T08:00:00Z') - seconds * 1000).toISOString() },
      ),
    );
    const { ask } = await lab(t, { objects });
    const { rows } = tableOf(await ask('GET', configMaps, undefined, { accept }));
    assert.equal(rows.length, objects.length);
    for (const { cells } of rows) assert.equal(cells[2], cells[0]);
  });
});
