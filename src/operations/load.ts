import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  type ArgumentNode,
  concatAST,
  type DocumentNode,
  extendSchema,
  type FieldNode,
  type GraphQLArgument,
  type GraphQLInputType,
  type GraphQLSchema,
  getDirectiveValues,
  isNonNullType,
  Kind,
  NoUnusedFragmentsRule,
  type OperationDefinitionNode,
  type OperationTypeNode,
  parse,
  print,
  Source,
  specifiedRules,
  typeFromAST,
  validate,
  valueFromASTUntyped,
} from 'graphql';
import { dryRunName } from './dryRun.ts';
import { fragmentsOf, type ObjectShape, shapeOf } from './shape.ts';

/** One stored operation: a file of `schema/operations/`, checked against the graph and ready to be a route and a tool. */
export interface Operation {
  readonly name: string;
  readonly type: OperationTypeNode;
  /** First paragraph of the file's comment: one sentence or two. */
  readonly summary: string;
  /** The whole comment. */
  readonly description: string;
  /** The document as a client sends it: no directives of ours, the fragments it uses included. */
  readonly text: string;
  readonly document: DocumentNode;
  readonly variables: readonly Variable[];
  readonly rest: RestRoute | undefined;
  readonly tool: ToolFacts | undefined;
  /** Name of the root field in the result, and the shape of its value: the answer. */
  readonly rootKey: string;
  readonly answer: ObjectShape;
}

export interface Variable {
  readonly name: string;
  /** Its name in REST and as a tool's argument, where they differ. */
  readonly restName: string;
  readonly toolName: string;
  readonly type: GraphQLInputType;
  readonly required: boolean;
  readonly defaultValue: unknown;
  /** The arguments it is given to: their description and check describe it. */
  readonly argument: GraphQLArgument;
}

/** What both faces may have: a query with the same variables that answers in the place of a mutation, for dry runs. */
interface WithDryRun {
  readonly dryRun?: Operation | undefined;
}

export interface RestRoute extends WithDryRun {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly status: number;
  /** Body fields of which one must not be blank. */
  readonly oneOf: readonly string[];
}

export interface ToolFacts extends WithDryRun {
  readonly name: string;
  readonly destructive: boolean;
  readonly idempotent: boolean;
  /** Arguments that the tool list calls required; the operation itself refuses a call without them. */
  readonly required: readonly string[];
}

const ownFolder = new URL('../../schema/operations/', import.meta.url);
/** Files of the folder that are no operations. */
const sharedFiles = ['directives.graphql', 'fragments.graphql'];

const rules = specifiedRules.filter(rule => rule !== NoUnusedFragmentsRule);

/** Every stored operation of a folder, by file name. Throws when one of them does not fit the graph. */
export function loadOperations(schema: GraphQLSchema, folder = ownFolder): readonly Operation[] {
  const read = (file: string) => parse(new Source(readFileSync(fileURLToPath(new URL(file, folder)), 'utf8'), file));
  const extended = extendSchema(schema, read('directives.graphql'));
  const fragments = read('fragments.graphql');
  const files = readdirSync(folder)
    .filter(file => file.endsWith('.graphql') && !sharedFiles.includes(file))
    .sort();
  const each = <T>(work: (file: string, index: number) => T) =>
    files.map((file, index) => {
      try {
        return work(file, index);
      } catch (error) {
        throw new Error(`schema/operations/${file}: ${(error as Error).message}`, { cause: error });
      }
    });
  const documents = each(file => named(read(file)));
  // All at once: what they share is looked at once.
  const [problem] = validate(extended, concatAST([...documents, fragments]), rules);
  if (problem) throw new Error(`schema/operations/${problem.source?.name}: ${problem.message}`, { cause: problem });
  const parsed = each((_, index) => toOperation(schema, extended, fragments, documents[index] as DocumentNode));
  const operations = each((_, index) => withDryRuns(parsed[index] as Read, parsed));
  for (const [what, names] of Object.entries({
    operations: operations.map(({ name }) => name),
    tools: operations.flatMap(({ tool }) => tool?.name ?? []),
    routes: operations.flatMap(({ rest }) => (rest ? `${rest.method} ${rest.path}` : [])),
  })) {
    const twice = names.find((name, index) => names.indexOf(name) < index);
    if (twice) throw new Error(`schema/operations: two ${what} are ${twice}`);
  }
  return operations;
}

/** An operation by itself: the one for its dry runs is a name yet. */
interface Read extends Omit<Operation, 'rest' | 'tool'> {
  readonly rest: Named<RestRoute> | undefined;
  readonly tool: Named<ToolFacts> | undefined;
}
type Named<T extends WithDryRun> = Omit<T, 'dryRun'> & { readonly dryRun?: string | undefined };

/** The operation with those for its dry runs. One that has none stays the object it is: it may be one. */
function withDryRuns(operation: Read, all: readonly Read[]): Operation {
  const linked = <T extends WithDryRun>(face: Named<T> | undefined) =>
    face?.dryRun === undefined ? face : { ...face, dryRun: dryRunOf(operation, face.dryRun, all) };
  const [rest, tool] = [linked(operation.rest), linked(operation.tool)];
  return (rest === operation.rest && tool === operation.tool ? operation : { ...operation, rest, tool }) as Operation;
}

/** The query of that name. Throws when it cannot answer in the place of the operation. */
function dryRunOf(operation: Read, name: string, all: readonly Read[]): Operation {
  const found = all.find(each => each.name === name);
  const refuse = (why: string) => new Error(`its dryRun ${name} ${why}`);
  if (!found) throw refuse('is no stored operation');
  if (found.type !== 'query') throw refuse(`is a ${found.type}, it must be a query`);
  if (found.rest || found.tool) throw refuse('is a route or a tool of its own');
  const signature = ({ variables }: Read) =>
    variables.map(
      ({ name, type, defaultValue }) =>
        `$${name}: ${type}${defaultValue === undefined ? '' : ` = ${JSON.stringify(defaultValue)}`}`,
    );
  const [wanted, has] = [operation, found].map(each => signature(each).sort().join(', '));
  if (wanted !== has) throw refuse(`takes (${has}), it must take (${wanted})`);
  const taken = operation.variables.find(variable => [variable.restName, variable.toolName].includes(dryRunName));
  if (taken) throw refuse(`is asked for by ${dryRunName}, and $${taken.name} has that name`);
  return found as Operation;
}

const operationIn = (document: DocumentNode) =>
  document.definitions.find(node => node.kind === Kind.OPERATION_DEFINITION) as OperationDefinitionNode;

/** The document, which has an operation with a name. */
function named(document: DocumentNode): DocumentNode {
  if (!operationIn(document)?.name) throw new Error('has no named operation');
  return document;
}

function toOperation(schema: GraphQLSchema, extended: GraphQLSchema, shared: DocumentNode, own: DocumentNode): Read {
  const all = concatAST([own, shared]);
  const definition = operationIn(own);
  const [root, second] = definition.selectionSet.selections;
  if (root?.kind !== Kind.FIELD || second) throw new Error('must select one root field: it is the answer');

  const rootType = schema.getRootType(definition.operation);
  const field = rootType?.getFields()[root.name.value];
  if (!field) throw new Error(`has no root field ${root.name.value}`);
  const fragments = fragmentsOf(all);
  const answer = shapeOf({ schema, fragments }, field.type, root.selectionSet);
  if (answer.kind !== 'object') throw new Error('must answer an object');

  const document = withoutDirectives(definition, all);
  const description = commentOf(own.loc?.source.body ?? '');
  return {
    name: definition.name?.value as string,
    type: definition.operation,
    summary: description.split('\n', 1)[0] ?? '',
    description,
    text: print(document),
    document,
    variables: (definition.variableDefinitions ?? []).map(variable => {
      const name = variable.variable.name.value;
      const type = typeFromAST(schema, variable.type) as GraphQLInputType;
      const named = getDirectiveValues(extended.getDirective('named') as never, variable) ?? {};
      return {
        name,
        restName: (named.rest as string | undefined) ?? name,
        toolName: (named.tool as string | undefined) ?? name,
        type,
        required: isNonNullType(type),
        defaultValue: variable.defaultValue && valueFromASTUntyped(variable.defaultValue),
        argument: argumentOf(name, root, field.args),
      };
    }),
    rest: directive<Named<RestRoute>>(extended, definition, 'rest', { oneOf: [] }),
    tool: directive<Named<ToolFacts>>(extended, definition, 'tool', { required: [] }),
    rootKey: (root.alias ?? root.name).value,
    answer,
  };
}

function directive<T>(schema: GraphQLSchema, node: OperationDefinitionNode, name: string, defaults: Partial<T>) {
  const values = getDirectiveValues(schema.getDirective(name) as never, node);
  return values && ({ ...defaults, ...values } as T);
}

/** The argument of the root field that a variable is given to. */
function argumentOf(name: string, root: FieldNode, args: readonly GraphQLArgument[]): GraphQLArgument {
  const given = (node: ArgumentNode) => node.value.kind === Kind.VARIABLE && node.value.name.value === name;
  const node = root.arguments?.find(given);
  const argument = args.find(arg => arg.name === node?.name.value);
  if (!argument) throw new Error(`$${name} must be given to an argument of the root field`);
  return argument;
}

/** The operation with the fragments it uses, without the directives of this folder. */
function withoutDirectives(definition: OperationDefinitionNode, all: DocumentNode): DocumentNode {
  const operation: OperationDefinitionNode = {
    ...definition,
    directives: [],
    variableDefinitions: definition.variableDefinitions?.map(variable => ({ ...variable, directives: [] })),
  };
  const fragments = fragmentsOf(all);
  const used = new Set<string>();
  const collect = (text: string) => {
    for (const [, name] of text.matchAll(/\.\.\.(\w+)/g)) {
      const fragment = fragments.get(name as string);
      if (!fragment || used.has(name as string)) continue;
      used.add(name as string);
      collect(print(fragment));
    }
  };
  collect(print(operation));
  const definitions = [...used].map(name => fragments.get(name)).filter(node => node !== undefined);
  return { kind: Kind.DOCUMENT, definitions: [operation, ...definitions] };
}

/** The comment an operation file begins with, one line a paragraph. */
function commentOf(source: string): string {
  const lines = source.split('\n');
  const end = lines.findIndex(line => !line.startsWith('#'));
  const comment = lines.slice(0, end).map(line => line.replace(/^# ?/, ''));
  if (comment.length === 0) throw new Error('must begin with a comment: it describes the route and the tool');
  return comment
    .join('\n')
    .trim()
    .replace(/(?<!\n)\n(?!\n)/g, ' ');
}
