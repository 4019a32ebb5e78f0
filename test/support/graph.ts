/** The graph asked in process, without anything around it. */
import { graphql } from 'graphql';
import { GatewayError } from '../../src/errors.ts';
import type { Gateway } from '../../src/resolvers/builder.ts';
import { schema } from '../../src/resolvers/schema.ts';
import { callOf } from './backends.ts';

export interface GraphAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly data: any;
  /** `path: code: message` of each error. */
  readonly errors: readonly string[];
}

export async function askGraph(gateway: Gateway, source: string, variables: object = {}): Promise<GraphAnswer> {
  const contextValue = { gateway, call: callOf(), face: 'graphql' };
  const { data, errors = [] } = await graphql({ schema, source, contextValue, variableValues: { ...variables } });
  return {
    data: JSON.parse(JSON.stringify(data ?? null)),
    errors: errors.map(({ path = [], message, originalError }) =>
      [path.join('.'), originalError instanceof GatewayError ? originalError.code : 'fault', message].join(': '),
    ),
  };
}
