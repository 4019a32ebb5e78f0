/** A gateway asked for the same thing on all its faces. */
import assert from 'node:assert/strict';
import type { Operation } from '../../src/operations/load.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { callTool } from '../mcp/muster.ts';
import { restRequestOf, toolArgumentsOf } from './cases.ts';
import { type TestGatewayOptions, testGateway } from './gateway.ts';
import { type RestServer, refusalOf, serveRest } from './rest.ts';
import { ask, operations } from './server.ts';

type Variables = Readonly<Record<string, unknown>>;

export interface Faces extends AsyncDisposable {
  readonly rest: RestServer;
  /** How a stored operation is refused, as `code: message`: the same on every face that it has. */
  refusal(name: string, asks?: Variables): Promise<string>;
  /** The refusal of a tool that is given these arguments, also such as no variable may have. */
  toolRefusal(tool: string, args?: object): Promise<string>;
}

export const startFaces = (options: TestGatewayOptions = {}): Promise<Faces> => facesOf(testGateway(options));

export async function facesOf(gateway: Gateway): Promise<Faces> {
  const rest = await serveRest({ gateway });
  const toolRefusal = async (tool: string, args: object = {}) => {
    const answer = await callTool(`${rest.url}/mcp`, tool, args);
    return answer.isError ? answer.text : 'not refused';
  };
  return {
    rest,
    toolRefusal,
    async refusal(name, asks = {}) {
      const operation = operations.find(each => each.name === name) as Operation;
      const { json } = await ask(rest.server, operation.text, asks);
      const [error] = json.errors ?? [{ message: 'refused', extensions: { code: 'not' } }];
      const words = `${error.extensions.code}: ${error.message}`;
      if (operation.tool) {
        const { name: tool } = operation.tool;
        assert.equal(
          await toolRefusal(tool, toolArgumentsOf(operation, asks)),
          words,
          `${tool} ${JSON.stringify(asks)}`,
        );
      }
      if (operation.rest) {
        const { line, body } = restRequestOf(operation, asks);
        const expected = `${error.extensions.http.status} ${words}`;
        assert.equal(refusalOf(await rest.send(line, body)), expected, `${line} ${JSON.stringify(body)}`);
      }
      return words;
    },
    [Symbol.asyncDispose]: () => rest[Symbol.asyncDispose](),
  };
}
