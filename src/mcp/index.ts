import type { CallToolResult } from '@modelcontextprotocol/server';
import { type Call, within } from '../call.ts';
import { asGatewayError, type ErrorCode, GatewayError } from '../errors.ts';
import { meansDryRun } from '../operations/dryRun.ts';
import { byVariable } from '../operations/input.ts';
import type { Operation } from '../operations/load.ts';
import type { Run } from '../operations/run.ts';
import { leaveRefused } from '../resolvers/audit.ts';
import type { Build, Context } from '../resolvers/builder.ts';
import { asksDryRun, variablesOfArguments } from './arguments.ts';
import { instructionsFor } from './instructions.ts';
import type { Protocol } from './protocol.ts';
import { type ToolOperation, toolNamesOf, toolOf, toolOperationsOf } from './tools.ts';

export { toolNamesOf } from './tools.ts';

export interface McpOptions {
  readonly operations: readonly Operation[];
  readonly run: Run;
  contextFor(call: Call): Context;
  readonly build: Build;
  /** Throws when whoever asks has asked for too many mutations. */
  admit?(call: Call): void;
  /** Told of every call of a tool there is: its name, the code of its refusal, and how long it took. */
  onCall?(tool: string, code: ErrorCode | undefined, seconds: number): void;
}

export interface Mcp extends Protocol {
  /** In the order of the tool list. */
  readonly toolNames: readonly string[];
}

/** The MCP face: every operation that is a tool, over HTTP. */
export function createMcp({ operations, run, contextFor, build, admit, onCall }: McpOptions): Mcp {
  const toolNames = toolNamesOf(operations);
  const served = toolOperationsOf(operations);
  const byName = new Map(served.map(operation => [operation.tool.name, operation]));

  async function callTool(name: string, args: Readonly<Record<string, unknown>>, asking: Call, traceparent: unknown) {
    const operation = byName.get(name);
    const span = asking.span?.begin({
      name: 'mcp.tools/call',
      kind: 'server',
      parent: traceparent,
      facts: {
        'mcp.method.name': 'tools/call',
        'gen_ai.operation.name': 'execute_tool',
        // A name that is none of ours is a client's text.
        ...(operation && { 'gen_ai.tool.name': name }),
      },
    });
    if (!operation) {
      span?.end({}, '_OTHER');
      return undefined;
    }
    const call = span ? within(asking, span) : asking;
    const began = performance.now();
    const { result, error } = await answer(operation, args, call);
    span?.end({}, error && 'tool_error');
    const seconds = (performance.now() - began) / 1000;
    const facts = { tool: name, durationMs: Math.round(seconds * 1000), code: error?.code, error: error?.message };
    call.log.debug(facts, 'tool called');
    onCall?.(name, error?.code, seconds);
    return result;
  }

  async function answer(
    operation: ToolOperation,
    args: Readonly<Record<string, unknown>>,
    call: Call,
  ): Promise<{ result: CallToolResult; error?: GatewayError }> {
    try {
      const { asked, variables } = read(operation, args, call);
      if (asked.type !== 'query' && !meansDryRun(args)) admit?.(call);
      return { result: success(await run(asked, variables, contextFor(call))) };
    } catch (thrown) {
      // What `run` throws is a refusal, and is logged; anything else is a fault of ours.
      if (!(thrown instanceof GatewayError)) call.log.error({ err: thrown }, 'unexpected error');
      const error = asGatewayError(thrown, call.requestId);
      return { result: refusal(error), error };
    }
  }

  /** What a call asks; a change that makes no sense leaves its entry in the audit trail. */
  function read(operation: ToolOperation, args: Readonly<Record<string, unknown>>, call: Call) {
    const { tool, type, variables, rootKey } = operation;
    try {
      const asked = tool.dryRun && asksDryRun(args) ? tool.dryRun : operation;
      return { asked, variables: variablesOfArguments(variables, args) };
    } catch (error) {
      if (type !== 'query' && !meansDryRun(args)) {
        leaveRefused(
          contextFor(call),
          rootKey,
          byVariable(variables, ({ toolName }) => toolName, args),
          asGatewayError(error, call.requestId),
        );
      }
      throw error;
    }
  }

  const options = {
    info: { name: 'model-manager', version: build.version },
    instructions: instructionsFor(toolNames),
    tools: served.map(toolOf),
    callTool,
  };
  // The SDK is the largest of what we load: an idle gateway does without it until somebody speaks MCP.
  let protocol: Promise<Protocol> | undefined;
  const loaded = () => {
    protocol ??= import('./protocol.ts').then(({ createProtocol }) => createProtocol(options));
    return protocol;
  };

  return {
    toolNames,
    async handle(...request) {
      await (await loaded()).handle(...request);
    },
    async close() {
      await (await protocol)?.close();
    },
  };
}

/** The answer twice: as text for agents and for gateways that pass on nothing else, and as data. */
function success(answer: unknown): CallToolResult {
  return {
    content: [{ type: 'text', text: JSON.stringify(answer, null, 2) }],
    structuredContent: answer as Record<string, unknown>,
  };
}

/** Clients read the code from the beginning of the text. */
function refusal({ code, message }: GatewayError): CallToolResult {
  return { isError: true, content: [{ type: 'text', text: `${code}: ${message}` }] };
}
