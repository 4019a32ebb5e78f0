import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from 'graphql';
import type { FaceMarks } from '../resolvers/builder.ts';

/** The shape of an answer as the old faces write it: what a selection and the marks of its fields come to. */
export type Shape = LeafShape | ListShape | KeyedShape | ObjectShape;

interface LeafShape {
  readonly kind: 'leaf';
  readonly schema: JsonSchema;
}
interface ListShape {
  readonly kind: 'list';
  readonly item: Shape;
}
/** A list written as an object: one property an entry. */
interface KeyedShape {
  readonly kind: 'keyed';
  readonly key: string;
  readonly value: string;
  readonly schema: JsonSchema;
}
export interface ObjectShape {
  readonly kind: 'object';
  /** The fragment it comes from, when it is just that. */
  readonly name: string | undefined;
  readonly description: string | undefined;
  readonly fields: readonly ShapeField[];
}
export interface ShapeField {
  readonly key: string;
  readonly shape: Shape;
  /** May be null in the graph. */
  readonly nullable: boolean;
  readonly description: string | undefined;
  readonly marks: FaceMarks;
}

export type JsonSchema = { readonly [key: string]: unknown };

/** The JSON of a scalar. Enums are written as their contract words. */
const scalarSchemas: Record<string, JsonSchema> = {
  String: { type: 'string' },
  ID: { type: 'string' },
  Boolean: { type: 'boolean' },
  Int: { type: 'integer' },
  Float: { type: 'number' },
  Bytes: { type: 'integer', format: 'int64' },
  Revision: { type: 'integer', format: 'int64' },
  DateTime: { type: 'string', format: 'date-time' },
  Manifest: { type: 'object', additionalProperties: true },
};

export function leafSchema(type: GraphQLOutputType): JsonSchema {
  const named = getNamedType(type);
  if (isEnumType(named)) return { type: 'string', enum: named.getValues().map(({ value }) => value) };
  const schema = scalarSchemas[named.name];
  if (!schema) throw new Error(`the scalar ${named.name} has no JSON schema`);
  // One of its own for each place: YAML would write a shared one as an alias, which not every reader follows.
  return { ...schema };
}

/** Whether an answer of this shape has a value that the graph spells in its own way. */
export function hasEnum(shape: Shape): boolean {
  switch (shape.kind) {
    case 'list':
      return hasEnum(shape.item);
    case 'object':
      return shape.fields.some(field => hasEnum(field.shape));
    default:
      return 'enum' in shape.schema;
  }
}

interface Scope {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
}

export function fragmentsOf(document: DocumentNode): ReadonlyMap<string, FragmentDefinitionNode> {
  const fragments = document.definitions.filter(definition => definition.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map(fragment => [fragment.name.value, fragment]));
}

/** The shape of what `type` gives under a selection. */
export function shapeOf(scope: Scope, type: GraphQLOutputType, selection: SelectionSetNode | undefined): Shape {
  if (isNonNullType(type)) return shapeOf(scope, type.ofType, selection);
  if (isListType(type)) return { kind: 'list', item: shapeOf(scope, type.ofType, selection) };
  if (isLeafType(type)) return { kind: 'leaf', schema: leafSchema(type) };
  if (!isObjectType(type) || !selection) throw new Error(`${type.name} cannot be written by a stored operation`);
  return {
    kind: 'object',
    name: onlyFragment(selection),
    description: type.description ?? undefined,
    fields: [...fieldsOf(scope, type.getFields(), selection)],
  };
}

/** The name of the fragment when the selection is that fragment and nothing else. */
function onlyFragment({ selections }: SelectionSetNode): string | undefined {
  const [only, second] = selections;
  return second === undefined && only?.kind === Kind.FRAGMENT_SPREAD ? only.name.value : undefined;
}

function* fieldsOf(
  scope: Scope,
  fields: Record<string, GraphQLField<unknown, unknown>>,
  { selections }: SelectionSetNode,
): Generator<ShapeField> {
  for (const selection of selections) {
    if (selection.directives?.length) throw new Error('a stored operation selects the same fields every time');
    if (selection.kind === Kind.FRAGMENT_SPREAD) {
      const fragment = scope.fragments.get(selection.name.value) as FragmentDefinitionNode;
      yield* fieldsOf(scope, fields, fragment.selectionSet);
    } else if (selection.kind === Kind.INLINE_FRAGMENT) {
      yield* fieldsOf(scope, fields, selection.selectionSet);
    } else {
      const field = fields[selection.name.value] as GraphQLField<unknown, unknown>;
      const marks = (field.extensions.faces ?? {}) as FaceMarks;
      const shape = shapeOf(scope, field.type, selection.selectionSet);
      yield {
        key: (selection.alias ?? selection.name).value,
        shape: marks.keyed ? keyedShape(marks.keyed, shape) : shape,
        nullable: !isNonNullType(field.type),
        description: field.description ?? undefined,
        marks,
      };
    }
  }
}

function keyedShape({ key, value }: NonNullable<FaceMarks['keyed']>, list: Shape): KeyedShape {
  const fields = list.kind === 'list' && list.item.kind === 'object' ? list.item.fields : [];
  const shape = fields.find(field => field.key === value)?.shape;
  if (shape?.kind !== 'leaf' || !fields.some(field => field.key === key)) {
    throw new Error(`a list keyed by ${key} must select ${key} and ${value}`);
  }
  return { kind: 'keyed', key, value, schema: { type: 'object', additionalProperties: shape.schema } };
}

/** The JSON schema of a shape. `refer` gives the reference for a named object, or nothing to write it out. */
export function jsonSchemaOf(shape: Shape, refer: (shape: ObjectShape) => JsonSchema | undefined): JsonSchema {
  switch (shape.kind) {
    case 'leaf':
    case 'keyed':
      return shape.schema;
    case 'list':
      return { type: 'array', items: jsonSchemaOf(shape.item, refer) };
    case 'object':
      return refer(shape) ?? objectSchema(shape, refer);
  }
}

export function objectSchema(shape: ObjectShape, refer: (shape: ObjectShape) => JsonSchema | undefined): JsonSchema {
  const required = shape.fields.filter(isAlwaysWritten).map(field => field.key);
  return {
    type: 'object',
    ...(shape.description && { description: shape.description }),
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(
      shape.fields.map(({ key, shape: value, description, marks }) => {
        const one = jsonSchemaOf(value, refer);
        const schema = marks.whenNull === null ? { anyOf: [one, { type: 'null' }] } : one;
        return [key, description && !schema.$ref ? { ...schema, description } : schema];
      }),
    ),
  };
}

function isAlwaysWritten({ nullable, marks }: ShapeField): boolean {
  return marks.whenNull !== undefined || (!nullable && !marks.omitZero && !marks.omitFalse);
}
