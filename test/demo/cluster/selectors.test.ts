import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldSelector, labelSelector, SelectorError } from '../../../src/demo/cluster/selectors.ts';

const objects: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  none: {},
  web: { app: 'web', 'example.com/tier': 'front' },
  api: { app: 'api', 'example.com/tier': 'back', canary: '' },
};
const picked = (text: string) => Object.keys(objects).filter(name => labelSelector(text)(objects[name] ?? {}));

const labels: Readonly<Record<string, readonly string[]>> = {
  '': ['none', 'web', 'api'],
  ' ': ['none', 'web', 'api'],
  'app=web': ['web'],
  'app == web': ['web'],
  'app!=web': ['none', 'api'],
  'app in (web, api)': ['web', 'api'],
  'app in (web,)': ['web'],
  'app notin (web)': ['none', 'api'],
  app: ['web', 'api'],
  '!app': ['none'],
  '! app': ['none'],
  'canary=': ['api'],
  'canary=,app=api': ['api'],
  'app,example.com/tier!=back': ['web'],
  'app=web,app=api': [],
};
for (const [text, names] of Object.entries(labels)) {
  test(`labels: '${text}' picks ${names.join(', ') || 'nothing'}`, () => assert.deepEqual(picked(text), names));
}

const unreadable: Readonly<Record<string, string>> = {
  'a=b=c': "found '=', expected: ',' or 'end of string'",
  'a b': "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
  'a in b': "unable to parse requirement: found 'b' expected: '('",
  'a in (b': "unable to parse requirement: found '', expected: ',' or ')'",
  'a=!': "unable to parse requirement: found '!', expected: identifier",
  'a,': "found '', expected: identifier after ','",
  ',a': "found ',', expected: !, identifier, or 'end of string'",
  '!': "unable to parse requirement: found '', expected: identifier",
};
for (const [text, message] of Object.entries(unreadable)) {
  test(`labels: '${text}' is refused`, () => {
    assert.throws(() => labelSelector(text), new SelectorError(message));
  });
}

test('labels: keys and values must be ones that an object can have', () => {
  assert.throws(
    () => labelSelector('a=-'),
    /^Error: unable to parse requirement: values\[0\]\[a\]: Invalid value: "-": a valid/,
  );
  assert.throws(() => labelSelector(`a=${'x'.repeat(64)}`), /must be no more than 63 bytes/);
  assert.throws(() => labelSelector('a/b/c=d'), /<nil>: Invalid value: "a\/b\/c": a valid label key must consist/);
  assert.throws(() => labelSelector('Exa_mple/b=d'), /prefix part a lowercase RFC 1123 subdomain/);
});

const pod = {
  metadata: { name: 'a,b', namespace: 'x' },
  spec: { replicas: 2, nodeName: null },
  status: { phase: 'Running' },
};
const fields: Readonly<Record<string, boolean>> = {
  '': true,
  'metadata.namespace=x': true,
  'metadata.namespace==y': false,
  'metadata.namespace!=y,status.phase=Running': true,
  'metadata.namespace!=y,status.phase=Pending': false,
  'spec.replicas=2': true,
  'spec.nodeName=': true,
  'spec.a.b.c!=d': true,
  'metadata.name=a\\,b': true,
};
for (const [text, expected] of Object.entries(fields)) {
  test(`fields: '${text}' ${expected ? 'picks' : 'leaves out'} the pod`, () => {
    assert.equal(fieldSelector(text)(pod), expected);
  });
}

test('fields: what cannot be read, and what the resource does not support, is refused', () => {
  assert.throws(
    () => fieldSelector('a=b=c'),
    new SelectorError('invalid field selector: unescaped character in value: 61'),
  );
  assert.throws(() => fieldSelector('a'), new SelectorError("invalid selector: 'a'; can't understand 'a'"));
  assert.throws(
    () => fieldSelector('spec.x=1', path => path.startsWith('metadata.')),
    new SelectorError('field label not supported: spec.x'),
  );
});
