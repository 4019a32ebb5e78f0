/** Documents that people and charts write: YAML text to checked data, and what is wrong with one in words. */
import { parseDocument, type YAMLParseError, type YAMLWarning } from 'yaml';
import type { z } from 'zod';
import type { Read } from '../config/values.ts';
import { messageOf, quoted } from '../errors.ts';

/** Longer texts are not read, in characters: no document comes near, and reading takes time. */
const longest = 64 * 1024;

/** The data that a text is. */
export function parseYaml(yaml: string): Read<unknown> {
  if (yaml.length > longest) return { problem: `must not be longer than 64 KiB, got ${yaml.length} characters` };
  try {
    // It would print what it finds odd, and the text may hold what nobody is to read.
    const document = parseDocument(yaml, { logLevel: 'error' });
    const [problem] = [...document.errors, ...document.warnings];
    if (problem) return { problem: wordsOf(problem) };
    return { value: document.toJS() };
  } catch (error) {
    if (error instanceof RangeError) return { problem: 'is nested too deeply' };
    return { problem: messageOf(error).split('\n', 1)[0] as string };
  }
}

function wordsOf({ code, message, linePos }: YAMLParseError | YAMLWarning): string {
  const where = linePos ? ` at line ${linePos[0].line}, column ${linePos[0].col}` : '';
  if (code === 'MULTIPLE_DOCS') return `holds several documents${where}; keep the first`;
  if (code === 'TAG_RESOLVE_FAILED') return `has a tag that means nothing here${where}`;
  return message.split('\n', 1)[0] as string;
}

/** Data as a schema wants it, or the first thing that is wrong with it: `spec.model.id must be a string, got 5`. */
export function checkData<T>(data: unknown, schema: z.ZodType<T>): Read<T> {
  const { data: value, error } = schema.safeParse(data, { reportInput: true });
  return error ? { problem: issueInWords(error.issues[0] as z.core.$ZodIssue) } : { value: value as T };
}

/** `spec.kserve.gpuPool.instances[1].vcpu` */
export const pathOf = (path: readonly PropertyKey[]) =>
  path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${String(part)}`))
    .join('');

/** The issue of a check: `spec.model.id must be a string, got 5`. */
export function issueInWords(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys')
    return `unknown field ${quoted(pathOf([...issue.path, issue.keys[0] as string]))}`;
  const where = pathOf(issue.path) || 'the whole';
  // What a check says of its own is the end of a sentence.
  if (issue.code === 'custom' || issue.code === 'invalid_union') return `${where} ${issue.message}`;
  const expected = issue.code === 'invalid_type' ? withArticle[issue.expected] : undefined;
  return `${where} ${expected ? `must be ${expected}, got ${shown(issue.input)}` : 'is out of range'}`;
}

const withArticle: Record<string, string> = {
  string: 'a string',
  boolean: 'true or false',
  number: 'a number',
  int: 'an integer',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

function shown(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (value === undefined) return 'nothing';
  if (typeof value !== 'object' || value === null) return String(value);
  return Array.isArray(value) ? 'a list' : 'a mapping';
}
