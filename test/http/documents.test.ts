import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'graphql';
import { createDocuments } from '../../src/http/graphql/documents.ts';

const document = parse('{ a }');

/** Which of these texts are kept, without using them. */
const keptOf = (documents: ReturnType<typeof createDocuments>, texts: string[]) =>
  texts.filter(text => documents.get(text) !== undefined);

test('documents are kept up to a number of characters, those used last', () => {
  const documents = createDocuments(30);
  for (const text of ['a'.repeat(10), 'b'.repeat(10), 'c'.repeat(10)]) documents.set(text, document);
  assert.equal(documents.get('a'.repeat(10)), document);
  documents.set('d'.repeat(5), document);
  const texts = ['a', 'b', 'c', 'd'].map(letter => letter.repeat(letter === 'd' ? 5 : 10));
  assert.deepEqual(
    keptOf(documents, texts).map(text => text[0]),
    ['a', 'c', 'd'],
  );
});

test('one that is larger than all of the room costs no other its place', () => {
  const documents = createDocuments(30);
  documents.set('a', document);
  documents.set('x'.repeat(31), document);
  assert.deepEqual(keptOf(documents, ['a', 'x'.repeat(31)]), ['a']);
});

test('keeping a document again takes no more room', () => {
  const documents = createDocuments(30);
  for (let time = 0; time < 10; time++) documents.set('a'.repeat(10), document);
  documents.set('b'.repeat(10), document);
  documents.set('c'.repeat(10), document);
  assert.equal(
    keptOf(
      documents,
      ['a', 'b', 'c'].map(letter => letter.repeat(10)),
    ).length,
    3,
  );
});
