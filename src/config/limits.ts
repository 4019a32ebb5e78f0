/** What callers may take at most: one row for each limit. */
import { z } from 'zod';
import type { Setting } from './settings.ts';
import { duration, type Kind, quote } from './values.ts';

export interface Limits {
  /** Of a GraphQL document. */
  readonly tokens: number;
  readonly depth: number;
  readonly aliases: number;
  readonly rootFields: number;
  /** Fields selected, every use of a fragment counted. */
  readonly fields: number;
  /** Of an answer, all its lists together. */
  readonly rows: number;
  /** Bytes of a GraphQL request, of an MCP message and of the head of any request. */
  readonly graphqlBody: number;
  readonly mcpBody: number;
  readonly headers: number;
  /** Milliseconds that a request may take to come. */
  readonly requestTimeout: number;
  readonly sockets: number;
  readonly socketsPerCaller: number;
  readonly operationsPerSocket: number;
  /** Bytes of a message on a WebSocket. */
  readonly message: number;
  /** Milliseconds until a socket has said `connection_init`. */
  readonly initTimeout: number;
  /** A caller's, in any minute. */
  readonly mutations: number;
}

const count: Kind<number> = {
  placeholder: 'NUMBER',
  check: z
    .string()
    .refine(text => /^[1-9]\d{0,8}$/.test(text), {
      error: issue => `${quote(issue.input)} is not a limit; write a whole number from 1 to 999999999`,
    })
    .transform(Number),
};

/** A time without which nothing would ever be cut off. */
const time: Kind<number> = {
  placeholder: duration.placeholder,
  check: duration.check.refine(ms => ms >= 1 && ms < 2 ** 31, {
    error: issue => `${quote(issue.input)} ms is no time to wait; write a duration such as 30s`,
  }),
};

/** `max-sockets` and `MODEL_MANAGER_MAX_SOCKETS` */
const row = (flag: string, standard: string, help: string, kind = count): Setting<number> => ({
  group: 'Limits',
  flag,
  variables: [`MODEL_MANAGER_${flag.toUpperCase().replaceAll('-', '_')}`],
  kind,
  default: standard,
  help,
});

/** Every limit, in the order people read them. */
export const limitSettings: { readonly [Name in keyof Limits]: Setting<Limits[Name]> } = {
  mutations: row('max-mutations-per-minute', '60', 'Mutations of one caller in a minute.'),
  tokens: row('graphql-max-tokens', '2000', 'Tokens of a GraphQL document.'),
  depth: row('graphql-max-depth', '10', 'Levels of fields in a GraphQL document; introspection may be deeper.'),
  aliases: row('graphql-max-aliases', '30', 'Aliases in a GraphQL document.'),
  rootFields: row('graphql-max-root-fields', '10', 'Root fields of a GraphQL operation.'),
  fields: row('graphql-max-fields', '500', 'Fields that a GraphQL operation selects, each use of a fragment counted.'),
  rows: row('graphql-max-rows', '25000', 'Rows of a GraphQL answer, all its lists together.'),
  graphqlBody: row('graphql-max-body-bytes', '262144', 'Bytes of a GraphQL request.'),
  mcpBody: row('mcp-max-body-bytes', '1048576', 'Bytes of an MCP message.'),
  headers: row('max-header-bytes', '16384', 'Bytes of all headers of a request.'),
  requestTimeout: row('request-timeout', '30s', 'How long a request may take to come, headers and body.', time),
  sockets: row('max-sockets', '1024', 'WebSockets at a time.'),
  socketsPerCaller: row(
    'max-sockets-per-caller',
    '16',
    'WebSockets and streams at a time of a caller who is signed in, both together.',
  ),
  operationsPerSocket: row('max-operations-per-socket', '64', 'Operations at a time on a WebSocket.'),
  message: row('max-message-bytes', '262144', 'Bytes of a message on a WebSocket.'),
  initTimeout: row('connection-init-timeout', '3s', 'How long a WebSocket may take to say connection_init.', time),
};

/** The limits where nothing else is said. */
export const defaultLimits = Object.fromEntries(
  Object.entries(limitSettings).map(([name, setting]) => [name, setting.kind.check.parse(setting.default)]),
) as unknown as Limits;
