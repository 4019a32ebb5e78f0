import type { DocumentNode } from 'graphql';

/** Documents by their text. */
export interface Documents {
  get(text: string): DocumentNode | undefined;
  set(text: string, document: DocumentNode): void;
}

/**
 * Characters of text at most. Parsed, a document takes up to 250 bytes of memory for each, so this is some 30 MB at worst; all
 * of our own operations are a tenth of it.
 */
const maxCharacters = 128 * 1024;

/** The documents used last. Bounded by their size, not their number: clients choose the texts. */
export function createDocuments(limit = maxCharacters): Documents {
  const kept = new Map<string, DocumentNode>();
  let characters = 0;
  return {
    get(text) {
      const document = kept.get(text);
      if (document) {
        kept.delete(text);
        kept.set(text, document);
      }
      return document;
    },
    set(text, document) {
      if (text.length > limit || kept.has(text)) return;
      kept.set(text, document);
      characters += text.length;
      for (const oldest of kept.keys()) {
        if (characters <= limit) break;
        kept.delete(oldest);
        characters -= oldest.length;
      }
    },
  };
}
