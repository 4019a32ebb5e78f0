import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { AuditFile } from '../audit/file.ts';
import type { ListenAddress } from '../config/values.ts';
import type { ErrorCode } from '../errors.ts';
import type { Identity } from '../identity/identity.ts';
import type { KeysState } from '../identity/keys.ts';
import { type TokenProblem, tokenProblems } from '../identity/token.ts';
import type { Gateway } from '../resolvers/builder.ts';
import { buckets, type Edges, prefix } from './edges.ts';
import type { OnOperation, RejectionReason } from './graphql/engine.ts';
import { closeReasons, type GroupHooks } from './graphql/groups.ts';
import { listen } from './listen.ts';
import { type OnRefused, refusalReasons } from './refusals.ts';
import { knownMethods } from './traces.ts';

/** What the process counts, and where Prometheus reads it. */
export interface Metrics {
  onRequest(request: MeasuredRequest): void;
  readonly onOperation: OnOperation;
  onRejected(reason: RejectionReason): void;
  onToolCall(tool: string, code: ErrorCode | undefined, seconds: number): void;
  readonly onRefused: OnRefused;
  onTokenRefused(problem: TokenProblem): void;
  readonly groupHooks: GroupHooks;
  /** All of it as Prometheus reads it. */
  metrics(): Promise<string>;
  /** Each metric of ours as a row of Markdown. */
  table(): string;
  /** Serves `/metrics` on an address of its own. Resolves to how to close it. */
  serve(address: ListenAddress): Promise<{ close(): void }>;
}

interface MeasuredRequest {
  readonly surface: string;
  /** As it is documented; `other` for a path that is not. */
  readonly route: string;
  readonly req: Pick<IncomingMessage, 'method'>;
  readonly res: Pick<ServerResponse, 'once' | 'statusCode'>;
}

/** What the metrics are read from, where there is any. */
interface Measured {
  readonly audit?: Pick<AuditFile, 'lost'> | undefined;
  readonly identity?: Identity | undefined;
  readonly edges?: Pick<Edges, 'registry'> | undefined;
}

/** Base units, bounded labels: no user, model, path or error text ever becomes one. */
export function createMetrics(gateway: Gateway, { audit, identity, edges }: Measured = {}): Metrics {
  const register = new Registry();
  collectDefaultMetrics({ register });
  const registers = [register];

  const build = new Gauge({
    name: `${prefix}build_info`,
    help: 'What runs here; always 1.',
    labelNames: ['version', 'commit'],
    registers,
  });
  build.set({ version: gateway.build.version, commit: gateway.build.commit }, 1);

  const requests = new Counter({
    name: `${prefix}http_requests_total`,
    help: 'Answered requests.',
    labelNames: ['surface', 'route', 'method', 'code'],
    registers,
  });
  const durations = new Histogram({
    name: `${prefix}http_request_duration_seconds`,
    help: 'From the request to the end of its answer; streams count until they close.',
    labelNames: ['surface'],
    buckets,
    registers,
  });
  const toolCalls = new Counter({
    name: `${prefix}mcp_tool_calls_total`,
    help: 'Calls of tools; `code` is ok or the code of the refusal.',
    labelNames: ['tool', 'code'],
    registers,
  });
  const toolDurations = new Histogram({
    name: `${prefix}mcp_tool_duration_seconds`,
    help: 'Duration of tool calls.',
    labelNames: ['tool'],
    buckets,
    registers,
  });
  const subscriptions = new Gauge({
    name: `${prefix}subscriptions`,
    help: 'Subscribers at present.',
    labelNames: ['transport', 'field'],
    registers,
  });
  const closed = new Counter({
    name: `${prefix}subscription_closed_total`,
    help: 'Subscriptions that are over: their client left (or its token expired), they ended, failed, or we stopped.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of closeReasons) closed.inc({ reason }, 0);
  const graphqlOperations = new Counter({
    name: `${prefix}graphql_operations_total`,
    help: 'Operations of GraphQL; `name` is that of a stored operation, else other; `outcome` is failed when there is an error.',
    labelNames: ['type', 'name', 'outcome'],
    registers,
  });
  const graphqlDurations = new Histogram({
    name: `${prefix}graphql_operation_duration_seconds`,
    help: 'Execution of queries and mutations.',
    labelNames: ['type', 'name'],
    buckets,
    registers,
  });
  const graphqlRejected = new Counter({
    name: `${prefix}graphql_rejected_total`,
    help: 'GraphQL documents that were not executed or not answered, by the limit that they passed; invalid for other faults.',
    labelNames: ['reason'],
    registers,
  });
  const events = new Counter({
    name: `${prefix}subscription_events_total`,
    help: 'Events that groups of subscribers were given.',
    registers,
  });
  const coalesced = new Counter({
    name: `${prefix}subscription_coalesced_total`,
    help: 'Times a slow subscriber was given the newest state after missing others.',
    registers,
  });
  if (audit) {
    new Counter({
      name: `${prefix}audit_write_failures_total`,
      help: 'Audit entries that could not be written to their file; the log has them.',
      registers,
      collect() {
        this.reset();
        this.inc(audit.lost);
      },
    });
  }
  const refusals = new Counter({
    name: `${prefix}refusals_total`,
    help: 'What was refused because it passed a limit, by the limit.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of refusalReasons) refusals.inc({ reason }, 0);
  const tokenRefusals = new Counter({
    name: `${prefix}auth_failures_total`,
    help: 'Requests and WebSockets whose token was not taken, by why.',
    labelNames: ['reason'],
    registers,
  });
  if (identity) for (const reason of tokenProblems) tokenRefusals.inc({ reason }, 0);
  new Gauge({
    name: `${prefix}backend_up`,
    help: 'Whether a backend was healthy when last looked at; absent before the first look, and where only callers look.',
    labelNames: ['backend'],
    registers,
    collect() {
      this.reset();
      for (const { name, status } of gateway.registry.backends.filter(({ isEverybodys }) => isEverybodys)) {
        const seen = status.current;
        if (seen) this.set({ backend: name }, !seen.error && seen.value?.healthy ? 1 : 0);
      }
    },
  });
  new Gauge({
    name: `${prefix}jobs`,
    help: 'Jobs that are kept, by where they are.',
    labelNames: ['backend', 'type', 'phase'],
    registers,
    collect() {
      this.reset();
      for (const { backend, type, phase } of gateway.jobs.store.list()) this.inc({ backend, type, phase });
    },
  });

  if (identity) {
    const { issuer } = identity.settings;
    const ofKeys = (name: string, help: string, read: (state: KeysState) => number | undefined) =>
      new Gauge({
        name: `${prefix}jwks_${name}`,
        help,
        labelNames: ['issuer'],
        registers,
        collect() {
          const value = read(identity.keys());
          if (value === undefined) this.remove({ issuer });
          else this.set({ issuer }, value);
        },
      });
    ofKeys(
      'up',
      'Whether the keys of the identity provider could be read when that was last tried; absent before.',
      ({ up }) => (up === undefined ? undefined : Number(up)),
    );
    ofKeys(
      'age_seconds',
      'Since they were read; they are read again for a token that comes when they are ten minutes old.',
      ({ age }) => (age === undefined ? undefined : age / 1000),
    );
  }

  const served = edges ? Registry.merge([register, edges.registry]) : register;

  return {
    metrics: () => served.metrics(),
    table: () => tableOf(served),
    onRequest({ surface, route, req: { method = '' }, res }) {
      const end = durations.startTimer({ surface });
      res.once('close', () => {
        end();
        requests.inc({ surface, route, method: knownMethods.has(method) ? method : 'other', code: res.statusCode });
      });
    },
    onOperation(type, name, outcome, seconds) {
      graphqlOperations.inc({ type, name, outcome });
      if (seconds !== undefined) graphqlDurations.observe({ type, name }, seconds);
    },
    onRejected: reason => graphqlRejected.inc({ reason }),
    onToolCall(tool, code, seconds) {
      toolCalls.inc({ tool, code: code ?? 'ok' });
      toolDurations.observe({ tool }, seconds);
    },
    onRefused: reason => refusals.inc({ reason }),
    onTokenRefused: reason => tokenRefusals.inc({ reason }),
    groupHooks: {
      onMember: (field, transport, change) => subscriptions.inc({ transport, field }, change),
      onClosed: reason => closed.inc({ reason }),
      onEvent: () => events.inc(),
      onCoalesced: () => coalesced.inc(),
    },
    async serve(address) {
      const server = createServer(async (req, res) => {
        if (req.url?.split('?')[0] !== '/metrics') return void res.writeHead(404).end();
        res.setHeader('content-type', register.contentType);
        res.end(await served.metrics());
      });
      await listen(server, address);
      return {
        close() {
          server.close();
          server.closeAllConnections();
        },
      };
    },
  };
}

interface Described {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** prom-client keeps them where its types do not show it. */
  readonly labelNames?: readonly string[];
}

function tableOf(register: Registry): string {
  const ours = (register.getMetricsAsArray() as unknown as Described[]).filter(({ name }) => name.startsWith(prefix));
  const rows = ours
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, help, type, labelNames = [] }) => {
      const labels = labelNames.map(label => `\`${label}\``).join(', ') || '–';
      return `| \`${name}\` | ${type} | ${labels} | ${help} |`;
    });
  return ['| Metric | Type | Labels | Meaning |', '| --- | --- | --- | --- |', ...rows].join('\n');
}
