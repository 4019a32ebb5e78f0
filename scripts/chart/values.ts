/** Reads the chart's values with the comments that say what they are. */
import { isMap, isScalar, type Node, type Pair, parseDocument, type Scalar, type YAMLMap } from 'yaml';

export interface Value {
  /** `oauth.dex.clientID` */
  readonly path: string;
  readonly key: string;
  readonly description: string;
  /** What narrows its JSON schema. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** As in the file. */
  readonly default: unknown;
  /** The keys below it that have a meaning of their own; undefined for a value that is taken as a whole. */
  readonly children?: readonly Value[];
}

/** The values under one heading. */
export interface Section {
  readonly heading: string;
  readonly values: readonly Value[];
}

/** @throws an `Error` that names the key that has no comment. */
export function readValues(text: string): readonly Section[] {
  const document = parseDocument(text);
  if (!isMap(document.contents)) throw new Error('the values are no map');
  const sections: { heading: string; values: Value[] }[] = [];
  for (const { key, comment, value } of entriesOf(document.contents)) {
    const heading = /^# (.+)$/m.exec(comment)?.[1];
    if (heading !== undefined) sections.push({ heading, values: [] });
    const section = sections.at(-1);
    if (!section) throw new Error(`${key} is above the first heading`);
    section.values.push(readValue(key, key, comment, value));
  }
  return sections;
}

interface Entry {
  readonly key: string;
  readonly comment: string;
  readonly value: Node;
}

/** The parser gives the comment above the first key of a map to the map. */
const entriesOf = (map: YAMLMap): Entry[] =>
  (map.items as Pair<Scalar<string>, Node>[]).map(({ key, value }, index) => ({
    key: key.value,
    comment: (index === 0 && map.commentBefore) || key.commentBefore || '',
    value: value as Node,
  }));

function readValue(path: string, key: string, comment: string, node: Node): Value {
  const own = afterHeading(comment);
  const description = own
    .filter(line => !line.startsWith('@schema '))
    .join(' ')
    .trim();
  const schema = JSON.parse(own.find(line => line.startsWith('@schema '))?.slice('@schema '.length) ?? '{}');
  const entries = isMap(node) ? entriesOf(node) : [];
  const value = { path, key, description, schema, default: isScalar(node) ? node.value : node.toJSON() };
  // What a whole is made of needs no words of its own, as that of a securityContext.
  if (entries.some(entry => entry.comment !== '') || (description === '' && entries.length > 0)) {
    return {
      ...value,
      children: entries.map(entry => readValue(`${path}.${entry.key}`, entry.key, entry.comment, entry.value)),
    };
  }
  if (description === '') throw new Error(`${path} has no comment that says what it is`);
  return value;
}

/** The lines of a comment below the last heading or empty line, without their margin. */
function afterHeading(comment: string): string[] {
  const lines = comment.split('\n');
  const start = lines.findLastIndex(line => line === '' || line.startsWith('#')) + 1;
  return lines.slice(start).map(line => line.trim());
}
