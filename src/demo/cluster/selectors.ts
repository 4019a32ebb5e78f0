/** Label and field selectors, as the API server reads them: what they pick, and its words for those it cannot read. */

/** A selector that cannot be read. The API server answers 400 `BadRequest` with this message. */
export class SelectorError extends Error {}

type Labels = Readonly<Record<string, string>>;

/** Whether the labels of an object are picked. */
export type LabelTest = (labels: Labels) => boolean;

/** Whether an object is picked. */
export type FieldTest = (object: object) => boolean;

/**
 * Reads `a=b,c==d,e!=f,g in (h,i),j notin (k),l,!m`; an empty text picks everything. As everywhere in Kubernetes an object
 * without the label passes `!=` and `notin`. Throws a `SelectorError`.
 */
export function labelSelector(text: string): LabelTest {
  const tests = requirements(tokensOf(text));
  return labels => tests.every(test => test(labels));
}

/**
 * Reads `metadata.name=a,spec.nodeName!=b`; a backslash escapes `,`, `=` and itself. What is absent counts as ''. Throws a
 * `SelectorError`, also for a path that the resource does not `support`.
 */
export function fieldSelector(text: string, supports: (path: string) => boolean = () => true): FieldTest {
  const tests = split(text)
    .filter(part => part !== '')
    .map(part => {
      const match = /^((?:[^\\=!]|\\.|!(?!=))*)(!=|==|=)(.*)$/s.exec(part);
      if (!match) throw new SelectorError(`invalid selector: '${text}'; can't understand '${part}'`);
      const [, path = '', operator, escaped = ''] = match;
      if (/^(?:[^\\=]|\\.)*=/s.test(escaped)) {
        throw new SelectorError('invalid field selector: unescaped character in value: 61');
      }
      if (!supports(path)) throw new SelectorError(`field label not supported: ${path}`);
      const wanted = escaped.replace(/\\(.)/gs, '$1');
      return (object: object) => (textAt(object, path) === wanted) === (operator !== '!=');
    });
  return object => tests.every(test => test(object));
}

/** The parts between commas that are not escaped. */
const split = (text: string): readonly string[] => text.match(/(?:[^\\,]|\\.)+/gs) ?? [];

function textAt(object: object, path: string): string {
  let value: unknown = object;
  for (const name of path.split('.')) value = (value as Record<string, unknown> | null | undefined)?.[name];
  return value === undefined || value === null ? '' : String(value);
}

type Token =
  | { readonly kind: 'word'; readonly text: string }
  | { readonly kind: '=' | '==' | '!=' | '!' | ',' | '(' | ')' | 'end'; readonly text: string };

const symbols = new Set(['=', '==', '!=', '!', ',', '(', ')']);

function tokensOf(text: string): readonly Token[] {
  const words = text.match(/!=|==|[=!,()]|[^\s=!,()]+/g) ?? [];
  const tokens = words.map(word => ({ kind: symbols.has(word) ? word : 'word', text: word }) as Token);
  return [...tokens, { kind: 'end', text: '' }];
}

/** What the grammar takes where a word that does not fit stands. */
const unexpected = (token: Token, wanted: string, comma = ',') =>
  new SelectorError(`found '${token.text}'${comma} expected: ${wanted}`);

function requirements(tokens: readonly Token[]): readonly LabelTest[] {
  const tests: LabelTest[] = [];
  let place = 0;
  const peek = () => tokens[place] ?? { kind: 'end' as const, text: '' };
  const next = () => {
    const token = peek();
    place++;
    return token;
  };

  function list(key: string): readonly string[] {
    const open = next();
    if (open.kind !== '(') throw unexpected(open, "'('", '');
    const values: string[] = [];
    let value = '';
    for (;;) {
      const token = next();
      if (token.kind === 'word') value = token.text;
      else if (token.kind === ',' || token.kind === ')') {
        values.push(checkedValue(key, value, values.length));
        if (token.kind === ')') return values;
        value = '';
      } else throw unexpected(token, "',', ')' or identifier");
      if (token.kind === 'word' && peek().kind !== ',' && peek().kind !== ')') throw unexpected(peek(), "',' or ')'");
    }
  }

  function requirement(): LabelTest {
    const absent = peek().kind === '!';
    if (absent) next();
    const token = next();
    if (token.kind !== 'word') throw unexpected(token, 'identifier');
    const key = checkedKey(token.text);
    if (absent) return labels => labels[key] === undefined;
    if (peek().kind === 'end' || peek().kind === ',') return labels => labels[key] !== undefined;
    const operator = next();
    switch (operator.text) {
      case 'in':
      case 'notin': {
        const values = list(key);
        const wanted = operator.text === 'in';
        return labels => (labels[key] !== undefined && values.includes(labels[key])) === wanted;
      }
      case '=':
      case '==':
      case '!=': {
        const isEmpty = peek().kind === 'end' || peek().kind === ',';
        const token = isEmpty ? peek() : next();
        if (!isEmpty && token.kind !== 'word') throw unexpected(token, 'identifier');
        const value = checkedValue(key, isEmpty ? '' : token.text);
        return labels => (labels[key] === value) === (operator.text !== '!=');
      }
      default:
        throw unexpected(operator, 'in, notin, =, ==, !=, gt, lt');
    }
  }

  while (peek().kind !== 'end') {
    if (peek().kind !== 'word' && peek().kind !== '!') throw unexpected(peek(), "!, identifier, or 'end of string'");
    tests.push(unableToParse(requirement));
    const after = next();
    if (after.kind === 'end') return tests;
    if (after.kind !== ',') throw unexpected(after, "',' or 'end of string'");
    if (peek().kind !== 'word' && peek().kind !== '!') throw unexpected(peek(), "identifier after ','");
  }
  return tests;
}

/** Errors within a requirement are told as such. */
function unableToParse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SelectorError)) throw error;
    throw new SelectorError(`unable to parse requirement: ${error.message}`);
  }
}

const nameRule =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const qualifiedRule =
  `a valid label key ${nameRule.slice('name part '.length)} with an optional DNS subdomain prefix and '/' ` +
  "(e.g. 'example.com/MyName')";
const prefixRule =
  "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must " +
  "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const valueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end " +
  "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const name = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const subdomain = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/** All that is wrong with the key of a label, in the API server's words. */
function keyFaults(key: string): readonly string[] {
  const parts = key.split('/');
  if (parts.length > 2) return [qualifiedRule];
  const [prefix, last = ''] = parts.length === 2 ? parts : [undefined, key];
  return [
    ...(prefix === '' ? ['prefix part must be non-empty'] : []),
    ...(prefix && !subdomain.test(prefix) ? [prefixRule] : []),
    ...(last === '' ? ['name part must be non-empty'] : []),
    ...(last.length > 63 ? ['name part must be no more than 63 bytes'] : []),
    ...(name.test(last) ? [] : [nameRule]),
  ];
}

const valueFaults = (value: string): readonly string[] => [
  ...(value.length > 63 ? ['must be no more than 63 bytes'] : []),
  ...(value === '' || name.test(value) ? [] : [valueRule]),
];

function checkedKey(key: string): string {
  const faults = keyFaults(key);
  if (faults.length > 0) throw new SelectorError(`<nil>: Invalid value: "${key}": ${faults.join('; ')}`);
  return key;
}

function checkedValue(key: string, value: string, place = 0): string {
  const faults = valueFaults(value);
  if (faults.length === 0) return value;
  throw new SelectorError(`values[${place}][${key}]: Invalid value: "${value}": ${faults.join('; ')}`);
}
