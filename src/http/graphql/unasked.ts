import {
  type DocumentNode,
  type FieldNode,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  OperationTypeNode,
  type SelectionSetNode,
  valueFromASTUntyped,
} from 'graphql';
import { hasEntry } from '../../audit/entry.ts';
import { GatewayError } from '../../errors.ts';
import { leaveRefused } from '../../resolvers/audit.ts';
import type { Context } from '../../resolvers/builder.ts';
import type { GraphqlParams } from './engine.ts';

/** What was asked: a document that parses, and what came with it. */
interface Asked {
  readonly document: DocumentNode;
  readonly params: GraphqlParams;
}

/**
 * Leaves the entries of mutations whose resolvers were never asked: where the document does not fit the graph, or its values
 * do not fit their arguments. Each kind of mutation leaves one at most, so that no document makes more lines than there are
 * mutations. What resolvers refused has left its entry there.
 */
export function leaveUnasked(
  schema: GraphQLSchema,
  { document, params }: Asked,
  errors: readonly GraphQLError[],
  contextFor: () => Context,
): void {
  const operation = getOperationAST(document, params.operationName);
  if (operation?.operation !== OperationTypeNode.MUTATION) return;
  const known = schema.getMutationType()?.getFields() ?? {};
  const fields = askedFieldsOf(operation.selectionSet, document).filter(({ name }) => Object.hasOwn(known, name.value));
  const left = new Set<string>();
  for (const error of errors) {
    const { path, message } = error;
    if (hasEntry(error.originalError ?? error) || (path?.length ?? 0) > 1) continue;
    for (const field of fields) {
      const action = field.name.value;
      const isMeant = path === undefined || path[0] === (field.alias ?? field.name).value;
      if (!isMeant || left.has(action)) continue;
      left.add(action);
      leaveRefused(contextFor(), action, argumentsOf(field, params), new GatewayError('invalid_request', message));
    }
  }
}

/** What is asked at the root. Each fragment is read once, however often it is spread: nothing has bounded the document yet. */
function askedFieldsOf(root: SelectionSetNode, document: DocumentNode): readonly FieldNode[] {
  const fragments = new Map(
    document.definitions
      .filter(node => node.kind === Kind.FRAGMENT_DEFINITION)
      .map(({ name, selectionSet }) => [name.value, selectionSet]),
  );
  const fieldsIn = ({ selections }: SelectionSetNode): readonly FieldNode[] =>
    selections.flatMap(selection => {
      if (selection.kind === Kind.FIELD) return selection;
      if (selection.kind === Kind.INLINE_FRAGMENT) return fieldsIn(selection.selectionSet);
      const name = selection.name.value;
      const fragment = fragments.get(name);
      fragments.delete(name);
      return fragment ? fieldsIn(fragment) : [];
    });
  return fieldsIn(root);
}

const argumentsOf = (field: FieldNode, { variables }: GraphqlParams): Record<string, unknown> =>
  Object.fromEntries(
    (field.arguments ?? []).map(({ name, value }) => [name.value, valueFromASTUntyped(value, variables)]),
  );
