import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parse, stringify } from 'yaml';
import {
  changesBetween,
  factsAt,
  parseRecording,
  printRecording,
  stateAt,
} from '../../../src/drivers/kserve/recording.ts';
import { recordingNames, recordingOf, recordingText } from './recordings.ts';

for (const name of recordingNames) {
  test(`${name} is read as it is written, and written as it is read`, () => {
    const recording = recordingOf(name);
    assert.equal(printRecording(recording), recordingText(name));
    const again = parseRecording(printRecording(recording));
    assert.deepEqual(again, { value: recording });
  });

  test(`${name} holds no more than its changes`, () => {
    const { instants } = recordingOf(name);
    for (const [index, instant] of instants.entries()) {
      const before = index === 0 ? undefined : stateAt({ instants }, index - 1);
      const { objects = [], gone = [], denied, log } = changesBetween(before, stateAt({ instants }, index)) ?? {};
      assert.deepEqual({ objects, gone, denied, log }, pick(instant));
    }
  });
}

const pick = ({ objects, gone, denied, log }: ReturnType<typeof recordingOf>['instants'][number]) => ({
  objects,
  gone,
  denied,
  log,
});

test('what an instant does not say is as it was before', () => {
  const first = recordingOf('crash-loop').instants[0];
  assert.ok(first);
  const object = first.objects.find(({ kind }) => kind === 'LLMInferenceService');
  assert.ok(object);
  const base = { object: 'nova-4b', namespace: 'model-serving', settings: { gpuResource: 'g', scaleUpTimeout: 0 } };
  const denied = [{ resource: 'events', namespace: 'default', message: 'no' }];
  const log = { container: 'main', previous: false, text: 'boom' };
  const nothing = { objects: [], gone: [] };
  const instants = [
    { at: 0, objects: [object], gone: [], denied, log },
    { at: 1, ...nothing },
    { at: 2, ...nothing, denied: [], log: null },
  ];
  const read = parseRecording(printRecording({ ...base, instants }));
  assert.ok('value' in read, JSON.stringify(read));
  const facts = instants.map((_, index) => factsAt(read.value, index));
  assert.deepEqual(
    facts.map(({ karpenterEvents }) => karpenterEvents),
    [{ problem: 'no' }, { problem: 'no' }, { value: [] }],
  );
  assert.deepEqual(
    facts.map(({ log }) => log),
    [{ value: 'boom' }, { value: 'boom' }, { value: '' }],
  );
  assert.ok(
    facts.every(({ events }) => 'value' in events),
    'events elsewhere are not refused',
  );
});

type Written = Record<string, unknown> & { settings: Record<string, unknown>; instants: Record<string, unknown>[] };

type Case = [what: string, change: (written: Written) => void, words: RegExp, near: string];
type OddObject = Record<string, unknown> & { metadata: Record<string, unknown> };

/** One more object of the first instant, for a test to spoil. */
function oddObject({ instants }: Written): OddObject {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'odd', namespace: 'model-serving' } };
  (instants[0] as { objects: object[] }).objects.push(pod);
  return pod;
}

const text = recordingText('cached-weights');
const lineWith = (text: string, words: string) => text.split('\n').findIndex(line => line.includes(words)) + 1;

test('a broken file is told by its line, its field and the way out', () => {
  const table: Case[] = [
    ['kind', written => Object.assign(written, { kind: 'Pod' }), /: kind must be ServeRecording/, 'kind: Pod'],
    [
      'version',
      written => Object.assign(written, { version: 2 }),
      /: version must be 1: another version/,
      'version: 2',
    ],
    ['unknown', written => Object.assign(written, { speed: 2 }), /: unknown field "speed"/, 'speed: 2'],
    [
      'name',
      written => Object.assign(written, { object: 'No' }),
      /: object must be the name of an object/,
      'object: No',
    ],
    ['none', written => Object.assign(written, { instants: [] }), /: instants must have at least one/, 'instants: []'],
    [
      'duration',
      written => Object.assign(written.settings, { scaleUpTimeout: 'soon' }),
      /: settings\.scaleUpTimeout must be a duration such as 10m or 0s, got "soon"/,
      'soon',
    ],
    [
      'bytes',
      written => Object.assign(written.settings, { weightsBytes: '8' }),
      /: settings\.weightsBytes must be a number, got "8"/,
      'weightsBytes',
    ],
    [
      'time',
      written => Object.assign(written.instants[2] ?? {}, { at: 'noon' }),
      /: instants\[2\]\.at must be a time such as 2026-10-05T08:00:00Z, got "noon"/,
      'noon',
    ],
    [
      'order',
      written => Object.assign(written.instants[2] ?? {}, { at: '2020-01-01T00:00:00Z' }),
      /: instants\[2\]\.at must not be before the instant above it/,
      '2020-01-01',
    ],
    [
      'gone',
      written => Object.assign(written.instants[1] ?? {}, { gone: ['Pod a/b'] }),
      /: instants\[1\]\.gone\[0\] names "Pod a\/b", which was not there/,
      'Pod a/b',
    ],
    [
      'subject',
      written => Object.assign(written, { object: 'another' }),
      /: instants\[0\] must have the object "LLMInferenceService model-serving\/another"/,
      '',
    ],
    [
      'object',
      written => Object.assign((written.instants[0] as { objects: object[] }).objects[0] ?? {}, { metadata: {} }),
      /: instants\[0\]\.objects\[0\]\.metadata\.name must be a string, got nothing/,
      'metadata: {}',
    ],
    ...(
      [
        ['uid', pod => Object.assign(pod.metadata, { uid: 7 }), /\.metadata\.uid must be a string, got 7/],
        ['labels', pod => Object.assign(pod.metadata, { labels: null }), /\.metadata\.labels must be a mapping/],
        ['finalizers', pod => Object.assign(pod.metadata, { finalizers: 'x' }), /\.finalizers must be a list, got "x"/],
        [
          'made',
          pod => Object.assign(pod.metadata, { creationTimestamp: '5' }),
          /creationTimestamp must be a time such/,
        ],
        ['placed', pod => delete pod.metadata.namespace, /\.metadata\.namespace must be given: a Pod has one/],
        ['place', pod => Object.assign(pod, { kind: 'Node' }), /\.namespace must be left out: a Node has none/],
        ['kind', pod => Object.assign(pod, { kind: 'Secret' }), /\.kind must be one of LLMInferenceService, Pod, /],
        ['version', pod => Object.assign(pod, { apiVersion: 'a/b/c' }), /\.apiVersion must be an API version such/],
        ['data', pod => Object.assign(pod, { kind: 'ConfigMap', data: 5 }), /\.data must be a mapping of texts/],
      ] as [string, (pod: OddObject) => unknown, RegExp][]
    ).map(([what, change, words]): Case => [what, written => change(oddObject(written)), words, '']),
    [
      'denied',
      written => Object.assign(written.instants[0] ?? {}, { denied: [{ resource: 'pods' }] }),
      /: instants\[0\]\.denied\[0\]\.message must be a string/,
      '- resource: pods',
    ],
  ];
  for (const [what, change, words, near] of table) {
    const written = parse(text) as Written;
    change(written);
    const broken = stringify(written, { lineWidth: 0 });
    const read = parseRecording(broken);
    assert.ok('problem' in read, what);
    assert.match(read.problem, words);
    const line = Number(/^line (\d+): /.exec(read.problem)?.[1]);
    if (near) assert.equal(line, lineWith(broken, near), `${what}: ${read.problem}`);
  }
});

test('what is no YAML, or no end of it, is a problem too', () => {
  const table: [string, RegExp][] = [
    ['a: [', /^line 1: is no YAML there/],
    [`${text}\n\tx: {`, /^line \d+: is no YAML there/],
    ['', /^line 1: the whole must be a mapping, got null/],
    [`kind: ServeRecording\nversion: 1\nobject: ${'['.repeat(20_000)}`, /nested too deeply|no YAML/],
    ['a: &a [x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c]', /./],
  ];
  for (const [broken, words] of table) {
    const read = parseRecording(broken);
    assert.ok('problem' in read);
    assert.match(read.problem, words);
  }
});

test('the example in the documentation is a recording', () => {
  const documentation = readFileSync(new URL('../../../docs/recordings.md', import.meta.url), 'utf8');
  const [, example = ''] = /```yaml\n([\s\S]*?)```/.exec(documentation) ?? [];
  const read = parseRecording(example);
  assert.ok('value' in read, JSON.stringify(read));
  assert.deepEqual(factsAt(read.value, 1).nodes, { problem: 'nodes is forbidden' });
});
