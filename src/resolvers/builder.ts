import SchemaBuilder from '@pothos/core';
import RelayPlugin, { decodeGlobalID } from '@pothos/plugin-relay';
import ValidationPlugin from '@pothos/plugin-validation';
import { GraphQLError } from 'graphql';
import type { Face } from '../audit/entry.ts';
import type { Actions } from '../backends/actions.ts';
import type { Call } from '../call.ts';
import type { Manifest } from '../domain.ts';
import { type GatewayError, invalidRequest, quoted } from '../errors.ts';
import type { Source } from '../live/source.ts';
import type { RowBudget } from './rowBudget.ts';

/** What every resolver works on: the backends, the jobs, and what this build is. */
export interface Gateway extends Actions {
  readonly build: Build;
  /** Names of the MCP tools, in the order of the tool list. */
  readonly tools: readonly string[];
}

export interface Build {
  readonly version: string;
  readonly commit: string;
  /** RFC 3339, or `unknown`. */
  readonly built: string;
}

/** What a resolver is given: the gateway and the call it works for. */
export interface Context {
  readonly gateway: Gateway;
  readonly call: Call;
  /** Whose question it is. */
  readonly face: Face;
  /**
   * For those who keep answers: the sources an answer is a pure function of, each with its revision before it was read. An
   * answer that depends on anything else notes none.
   */
  readonly reads?: Map<Source<unknown>, number>;
  /** What any change that the caller asks for now is refused with; absent in events, which are for many. */
  readonly refusal?: () => GatewayError | undefined;
  /** Bounds the answer, where clients choose what they ask for. */
  readonly rows?: RowBudget;
}

/**
 * How REST and MCP write a field that GraphQL leaves null or zero. Both old faces leave out what is null; these are the
 * exceptions their contract makes.
 */
export interface FaceMarks {
  /** Written in place of null, or that null is written. */
  readonly whenNull?: 0 | false | string | null;
  /** Left out when it is 0. */
  readonly omitZero?: true;
  /** Left out when it is false. */
  readonly omitFalse?: true;
  /** A list written as an object: the entry's `key` field names the property, its `value` field is the value. */
  readonly keyed?: { readonly key: string; readonly value: string };
}

/** Marks a field for the old faces: `extensions: faces({ whenNull: 0 })`. */
export const faces = (marks: FaceMarks) => ({ faces: marks });

export interface SchemaShape {
  Context: Context;
  DefaultFieldNullability: false;
  DefaultInputFieldRequiredness: false;
  Scalars: {
    DateTime: { Input: Date; Output: Date };
    Bytes: { Input: number; Output: number };
    Revision: { Input: number; Output: number };
    Manifest: { Input: Manifest; Output: Manifest };
  };
}

/** The types whose things have ids. */
const identified = ['Backend', 'Job', 'LoadedModel', 'Model', 'NodeInfo', 'Preset'];

/** Takes apart an id that a client gave. */
function parseGlobalId(text: string): { typename: string; id: string } {
  try {
    const parsed = decodeGlobalID(text);
    if (identified.includes(parsed.typename)) return parsed;
  } catch {}
  throw invalidRequest(`"id" is ${quoted(text)}, which is no id of anything here; take it from an "id" field`);
}

export const builder = new SchemaBuilder<SchemaShape>({
  plugins: [RelayPlugin, ValidationPlugin],
  defaultFieldNullability: false,
  relay: {
    // `nodes` are machines here.
    nodesQueryOptions: false,
    decodeGlobalID: parseGlobalId,
    nodeQueryOptions: { description: 'Anything that has an id, by it.' },
    nodeTypeOptions: { description: 'Anything a client can keep and ask for again by its id.' },
  },
  validation: {
    validationError: failure => invalidRequest(failure.issues.map(issue => issue.message).join('; ')),
  },
});

builder.queryType({ description: 'What there is, as it is now.' });
builder.mutationType({ description: 'What can be done.' });
builder.subscriptionType({
  description: [
    'What there is, as it changes. The first event of every subscription is the whole state; later events carry whole',
    'objects that changed. A client that reconnects subscribes again and has missed nothing.',
  ].join('\n'),
});

/** Writing a date is the dearest part of a row, and a row that did not change keeps its dates. */
const written = new WeakMap<Date, string>();

function isoOf(date: Date): string {
  let text = written.get(date);
  if (text === undefined) {
    text = date.toISOString();
    written.set(date, text);
  }
  return text;
}

builder.scalarType('DateTime', {
  description: 'A moment in RFC 3339, in UTC.',
  serialize: isoOf,
  parseValue: value => {
    const date = new Date(String(value));
    if (Number.isNaN(date.getTime())) throw new GraphQLError(`"${value}" is not a date in RFC 3339`);
    return date;
  },
});

const integerScalar = (what: string) => ({
  description: `${what}, as an integer up to 2^53.`,
  serialize: (value: number) => {
    if (!Number.isSafeInteger(value)) throw new GraphQLError(`${value} is not an integer up to 2^53`);
    return value;
  },
  parseValue: (value: unknown) => {
    if (!Number.isSafeInteger(value)) throw new GraphQLError(`"${value}" is not an integer up to 2^53`);
    return value as number;
  },
});
builder.scalarType('Bytes', integerScalar('A number of bytes'));
builder.scalarType(
  'Revision',
  integerScalar('A number that grows with every change of what is subscribed to, across restarts too'),
);

builder.scalarType('Manifest', {
  description: 'A Kubernetes object as it would be written, in JSON. Only in answers.',
  serialize: manifest => manifest,
  parseValue: () => {
    throw new GraphQLError('a manifest is only answered, never given');
  },
});

/** The values of an enum whose contract words are these: `IN_PROGRESS` is `inProgress`. */
export function enumValues<W extends string>(
  words: readonly W[],
  meanings?: Readonly<Partial<Record<W, string>>>,
): Record<string, { value: W; description?: string }> {
  const nameOf = (word: string) =>
    word
      .replace(/([a-z])(?=[A-Z])/g, '$1_')
      .replace(/[ -]/g, '_')
      .toUpperCase();
  return Object.fromEntries(
    words.map(word => {
      const description = meanings?.[word];
      return [nameOf(word), { value: word, ...(description !== undefined && { description }) }];
    }),
  );
}
