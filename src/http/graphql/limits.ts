import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';

/** What a document may ask for at most. Checked before it is validated, in time linear in its size. */
export interface DocumentLimits {
  readonly tokens: number;
  readonly depth: number;
  readonly aliases: number;
  readonly rootFields: number;
  /** Fields selected, every use of a fragment counted. */
  readonly fields: number;
}

/** Rows of an answer at most, all its lists together. */
export const maxRows = 25_000;

/** From the limits the field recommends for public GraphQL servers: far above what our own clients ask. */
export const documentLimits: DocumentLimits = {
  tokens: 2_000,
  depth: 10,
  aliases: 30,
  rootFields: 10,
  fields: 500,
};

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
export function checkLimits(document: DocumentNode, limits: DocumentLimits = documentLimits): void {
  const operations = document.definitions.filter(node => node.kind === Kind.OPERATION_DEFINITION);
  for (const operation of operations) {
    const { depth, aliases, rootFields, fields } = measure(operation, document);
    refuseAbove('DEPTH_LIMIT', 'levels of fields', depth, limits.depth);
    refuseAbove('ALIAS_LIMIT', 'aliases', aliases, limits.aliases);
    refuseAbove('ROOT_FIELD_LIMIT', 'root fields', rootFields, limits.rootFields);
    refuseAbove('COST_LIMIT', 'fields', fields, limits.fields);
  }
}

export class LimitError extends GraphQLError {}

function refusal(code: string, has: number | string, what: string, limit: number): LimitError {
  return new LimitError(`invalid request: the document has ${has} ${what}, ${limit} are allowed`, {
    extensions: { code, http: { status: 400 } },
  });
}

function refuseAbove(code: string, what: string, count: number, limit: number): void {
  if (count > limit) throw refusal(code, count, what, limit);
}

export const tooManyRows = () =>
  new LimitError(
    `invalid request: the answer has more than ${maxRows} rows; ask for fewer lists in lists, or in pages`,
    {
      extensions: { code: 'COST_LIMIT', http: { status: 400 } },
    },
  );

/** The refusal that a syntax error stands for when the parser gave up counting tokens. */
export function tokenRefusal({ message }: GraphQLError): LimitError | undefined {
  const [, limit] = /^Syntax Error: Document contains more tha[nt] (\d+) tokens\b/.exec(message) ?? [];
  return limit === undefined ? undefined : refusal('TOKEN_LIMIT', `more than ${limit}`, 'tokens', Number(limit));
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
