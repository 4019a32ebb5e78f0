/** What is served to whom: the page, the tools, other origins. */
import type { Setting } from './settings.ts';
import { boolean, optionalBoolean, origins, path } from './values.ts';

export interface InterfaceSettings {
  readonly graphiql: boolean;
  /** Undefined: as `graphiql`. */
  readonly introspection: boolean | undefined;
  /** As browsers write them: `https://portal.example`. */
  readonly allowedOrigins: readonly string[];
  readonly mcpEnabled: boolean;
  readonly mcpPath: string;
}

/** Whether the graph tells what it has: where nobody said, as far as the page that needs it is served. */
export const introspectionOf = ({ introspection, graphiql }: InterfaceSettings): boolean => introspection ?? graphiql;

export const interfaceSettings: {
  readonly [Name in keyof InterfaceSettings]: Setting<InterfaceSettings[Name]>;
} = {
  graphiql: {
    group: 'Interfaces',
    flag: 'graphiql',
    variables: ['MODEL_MANAGER_GRAPHIQL'],
    kind: boolean,
    default: 'true',
    help: 'Serve the GraphiQL page to browsers at /graphql.',
  },
  introspection: {
    group: 'Interfaces',
    flag: 'introspection',
    variables: ['MODEL_MANAGER_INTROSPECTION'],
    kind: optionalBoolean,
    default: '',
    defaultMeans: 'as --graphiql',
    help: 'Answer introspection of the graph, which the GraphiQL page and other tools need.',
  },
  allowedOrigins: {
    group: 'Interfaces',
    flag: 'allowed-origins',
    variables: ['MODEL_MANAGER_ALLOWED_ORIGINS'],
    kind: origins,
    default: '',
    defaultMeans: 'its own',
    help: 'The origins whose pages may ask from a browser, separated by commas, such as https://portal.example.',
  },
  mcpEnabled: {
    group: 'Interfaces',
    flag: 'mcp-enabled',
    variables: ['MODEL_MANAGER_MCP_ENABLED'],
    kind: boolean,
    default: 'true',
    help: 'Serve the MCP tools.',
  },
  mcpPath: {
    group: 'Interfaces',
    flag: 'mcp-path',
    variables: ['MODEL_MANAGER_MCP_PATH'],
    kind: path,
    default: '/mcp',
    help: 'The path the MCP tools are served at.',
  },
};
