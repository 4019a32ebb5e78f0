import type { Tool } from '@modelcontextprotocol/server';
import { dryRunName, dryRunSchema } from '../operations/dryRun.ts';
import { inputSchemaOf } from '../operations/input.ts';
import type { Operation, ToolFacts, Variable } from '../operations/load.ts';
import { type JsonSchema, jsonSchemaOf, type ObjectShape } from '../operations/shape.ts';

/** An operation that answers as a tool. */
export type ToolOperation = Operation & { readonly tool: ToolFacts };

/** The operations that are tools, in the order of the tool list: by name. */
export function toolOperationsOf(operations: readonly Operation[]): readonly ToolOperation[] {
  return operations
    .filter((operation): operation is ToolOperation => operation.tool !== undefined)
    .sort((a, b) => (a.tool.name < b.tool.name ? -1 : 1));
}

/** Names of the tools, in the order of the tool list. */
export function toolNamesOf(operations: readonly Operation[]): readonly string[] {
  return toolOperationsOf(operations).map(({ tool }) => tool.name);
}

/** A tool as the tool list shows it. */
export function toolOf({ tool, type, description, variables, answer }: ToolOperation): Tool {
  const title = titleOf(tool.name);
  const isRequired = (variable: Variable) => variable.required || tool.required.includes(variable.toolName);
  const required = variables.filter(isRequired).map(variable => variable.toolName);
  const isQuery = type === 'query';
  return {
    name: tool.name,
    title,
    description,
    inputSchema: {
      type: 'object',
      properties: {
        ...Object.fromEntries(variables.map(variable => [variable.toolName, inputSchemaOf(variable)])),
        ...(tool.dryRun && { [dryRunName]: dryRunSchema() }),
      },
      ...(required.length > 0 && { required }),
    } as Tool['inputSchema'],
    // Written out in full: not every client follows references.
    outputSchema: outputSchemaOf(answer, tool.dryRun?.answer) as Tool['outputSchema'],
    annotations: {
      title,
      readOnlyHint: isQuery,
      destructiveHint: !isQuery && tool.destructive,
      idempotentHint: isQuery || tool.idempotent,
      // Backends are machines of their own; what they do is not ours alone to decide.
      openWorldHint: true,
    },
  };
}

interface Described extends JsonSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Described>>;
  readonly items?: Described;
}

/** Whatever a tool answers is an object; with a dry run it is one of two, and the root has to say so for both. */
function outputSchemaOf(answer: ObjectShape, plan: ObjectShape | undefined): JsonSchema {
  const [first, ...others] = [answer, ...(plan ? [plan] : [])].map(shape =>
    briefly(jsonSchemaOf(shape, () => undefined)),
  );
  return others.length === 0 ? (first as JsonSchema) : { type: 'object', anyOf: [first, ...others] };
}

/**
 * The schema of an answer with words for its own fields, and none for what is inside of these: every agent reads the list
 * of tools. The words for the rows of a list are with the tool that answers one such row.
 */
function briefly({ properties = {}, ...rest }: Described): Described {
  const inside = (field: Described) => ({
    ...wordless(field),
    ...(field.description !== undefined && { description: field.description }),
  });
  return { ...rest, properties: mapped(properties, inside) };
}

function wordless({ description, properties, items, ...rest }: Described): Described {
  return {
    ...rest,
    ...(properties && { properties: mapped(properties, wordless) }),
    ...(items && { items: wordless(items) }),
  };
}

const mapped = <T>(record: Readonly<Record<string, T>>, change: (value: T) => T): Record<string, T> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));

/** `list_loaded_models` → `List loaded models`. */
function titleOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}
