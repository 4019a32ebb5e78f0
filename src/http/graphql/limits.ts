import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import type { Limits } from '../../config/limits.ts';
import type { RefusalReason } from '../refusals.ts';

/** What a document may ask for at most. Checked before it is validated, in time linear in its size. */
type DocumentLimits = Pick<Limits, 'depth' | 'aliases' | 'rootFields' | 'fields'>;

/** The word of each refusal that clients switch on: its `extensions.code`. */
const codes = {
  tokens: 'TOKEN_LIMIT',
  depth: 'DEPTH_LIMIT',
  aliases: 'ALIAS_LIMIT',
  root_fields: 'ROOT_FIELD_LIMIT',
  fields: 'COST_LIMIT',
  rows: 'COST_LIMIT',
  operations: 'OPERATION_LIMIT',
} as const satisfies Partial<Record<RefusalReason, string>>;

interface Measure {
  readonly depth: number;
  readonly aliases: number;
  readonly fields: number;
  readonly rootFields: number;
}

const nothing: Measure = { depth: 0, aliases: 0, fields: 0, rootFields: 0 };

/**
 * Throws a refusal with the limit that a document passes. Introspection may be deep, since it is how tools read the graph;
 * graphql-js bounds it. Everything else of it counts.
 */
export function checkLimits(document: DocumentNode, limits: DocumentLimits): void {
  const operations = document.definitions.filter(node => node.kind === Kind.OPERATION_DEFINITION);
  for (const operation of operations) {
    const { depth, aliases, rootFields, fields } = measure(operation, document);
    refuseAbove('depth', 'levels of fields', depth, limits.depth);
    refuseAbove('aliases', 'aliases', aliases, limits.aliases);
    refuseAbove('root_fields', 'root fields', rootFields, limits.rootFields);
    refuseAbove('fields', 'fields', fields, limits.fields);
  }
}

/** Root fields of the operation that is run, those of fragments included: of a mutation, how many it is. */
export const rootFieldsOf = (operation: OperationDefinitionNode, document: DocumentNode): number =>
  measure(operation, document).rootFields;

export class LimitError extends GraphQLError {
  readonly reason: RefusalReason;

  constructor(reason: keyof typeof codes, what: string) {
    super(`invalid request: ${what}`, { extensions: { code: codes[reason], http: { status: 400 } } });
    this.reason = reason;
  }
}

const refusal = (reason: keyof typeof codes, has: number | string, what: string, limit: number) =>
  new LimitError(reason, `the document has ${has} ${what}, ${limit} are allowed`);

function refuseAbove(reason: keyof typeof codes, what: string, count: number, limit: number): void {
  if (count > limit) throw refusal(reason, count, what, limit);
}

export const tooManyRows = (limit: number) =>
  new LimitError('rows', `the answer has more than ${limit} rows; ask for fewer lists in lists, or in pages`);

export const tooManyOperations = (limit: number) =>
  new LimitError('operations', `this socket has ${limit} operations under way; end some, or open another`);

/** The refusal that a syntax error stands for when the parser gave up counting tokens. */
export function tokenRefusal({ message }: GraphQLError): LimitError | undefined {
  const [, limit] = /^Syntax Error: Document contains more tha[nt] (\d+) tokens\b/.exec(message) ?? [];
  return limit === undefined ? undefined : refusal('tokens', `more than ${limit}`, 'tokens', Number(limit));
}

function measure(operation: OperationDefinitionNode, document: DocumentNode): Measure {
  const fragments = new Map(
    document.definitions
      .filter(node => node.kind === Kind.FRAGMENT_DEFINITION)
      .map(fragment => [fragment.name.value, fragment]),
  );
  /** Measured once each, however often they are spread. */
  const measured = new Map<string, Measure>();

  function ofFragment(fragment: FragmentDefinitionNode): Measure {
    const name = fragment.name.value;
    const known = measured.get(name);
    if (known) return known;
    // A fragment that contains itself adds nothing here; validation refuses it.
    measured.set(name, nothing);
    const result = ofSelection(fragment.selectionSet);
    measured.set(name, result);
    return result;
  }

  function ofSelection({ selections }: SelectionSetNode): Measure {
    let [depth, aliases, fields, rootFields] = [0, 0, 0, 0];
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const isIntrospection = selection.name.value.startsWith('__');
        const below = selection.selectionSet ? ofSelection(selection.selectionSet) : nothing;
        depth = Math.max(depth, isIntrospection ? 1 : below.depth + 1);
        aliases += below.aliases + (selection.alias ? 1 : 0);
        fields += below.fields + 1;
        rootFields += 1;
      } else {
        const fragment = selection.kind === Kind.FRAGMENT_SPREAD ? fragments.get(selection.name.value) : undefined;
        const inside =
          selection.kind === Kind.INLINE_FRAGMENT
            ? ofSelection(selection.selectionSet)
            : fragment
              ? ofFragment(fragment)
              : nothing;
        depth = Math.max(depth, inside.depth);
        aliases += inside.aliases;
        fields += inside.fields;
        rootFields += inside.rootFields;
      }
    }
    return { depth, aliases, fields, rootFields };
  }

  return ofSelection(operation.selectionSet);
}
