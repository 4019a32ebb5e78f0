/** A graph of its own for tests of shapes and projections: every kind of field, with every mark. */
import {
  GraphQLBoolean,
  GraphQLEnumType,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  Kind,
  type OperationDefinitionNode,
  parse,
} from 'graphql';
import { fragmentsOf, type ObjectShape, shapeOf } from '../../src/operations/shape.ts';
import { type FaceMarks, faces } from '../../src/resolvers/builder.ts';

const marked = (marks: FaceMarks) => ({ extensions: faces(marks) });
const phase = new GraphQLEnumType({
  name: 'Phase',
  values: { RUNNING: { value: 'running' }, CLUSTER_MANAGER: { value: 'cluster-manager' } },
});
const bytes = new GraphQLScalarType<number>({ name: 'Bytes' });
const dateTime = new GraphQLScalarType<Date>({ name: 'DateTime' });
const odd = new GraphQLScalarType({ name: 'Odd' });

const failure = new GraphQLObjectType({
  name: 'Failure',
  fields: {
    backend: { type: new GraphQLNonNull(GraphQLString) },
    code: { type: new GraphQLNonNull(GraphQLString) },
    message: { type: new GraphQLNonNull(GraphQLString) },
  },
});

const thing: GraphQLObjectType = new GraphQLObjectType({
  name: 'Thing',
  description: 'Something.',
  fields: () => ({
    id: { type: new GraphQLNonNull(GraphQLID) },
    name: { type: new GraphQLNonNull(GraphQLString), description: 'Its name.' },
    note: { type: GraphQLString },
    count: { type: GraphQLInt },
    share: { type: GraphQLFloat },
    done: { type: GraphQLBoolean },
    size: { type: bytes, ...marked({ whenNull: 0 }) },
    shared: { type: GraphQLBoolean, ...marked({ whenNull: false }) },
    vram: { type: bytes, ...marked({ omitZero: true }) },
    used: { type: new GraphQLNonNull(bytes), ...marked({ omitZero: true }) },
    at: { type: dateTime },
    phase: { type: new GraphQLNonNull(phase) },
    phases: { type: new GraphQLList(new GraphQLNonNull(phase)) },
    tags: { type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(GraphQLString))) },
    parent: { type: thing },
    parts: { type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(thing))) },
    errors: {
      type: new GraphQLList(new GraphQLNonNull(failure)),
      ...marked({ keyed: { key: 'backend', value: 'message' } }),
    },
    odd: { type: odd },
  }),
});

export const thingSchema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: 'Query', fields: { thing: { type: thing } } }),
});

/** The shape of a thing under a selection. */
export function shapeOfThing(selection: string, fragments = ''): ObjectShape {
  const document = parse(`query { thing ${selection} } ${fragments}`);
  const operation = document.definitions.find(
    (node): node is OperationDefinitionNode => node.kind === Kind.OPERATION_DEFINITION,
  );
  const [root] = operation?.selectionSet.selections ?? [];
  if (root?.kind !== Kind.FIELD) throw new Error('not a selection');
  return shapeOf({ schema: thingSchema, fragments: fragmentsOf(document) }, thing, root.selectionSet) as ObjectShape;
}
