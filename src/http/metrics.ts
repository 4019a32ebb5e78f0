import { createServer, type ServerResponse } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { AuditFile } from '../audit/file.ts';
import { isEverybodys } from '../backends/backend.ts';
import type { ListenAddress } from '../config/values.ts';
import type { ErrorCode } from '../errors.ts';
import type { Identity } from '../identity/identity.ts';
import type { KeysState } from '../identity/keys.ts';
import { type TokenProblem, tokenProblems } from '../identity/token.ts';
import type { Gateway } from '../resolvers/builder.ts';
import type { GroupHooks } from './graphql/groups.ts';
import { listen } from './listen.ts';
import { type OnRefused, refusalReasons } from './refusals.ts';

/** What the process counts, and where Prometheus reads it. */
export interface Metrics {
  onRequest(surface: string, method: string, res: ServerResponse): void;
  onToolCall(tool: string, code: ErrorCode | undefined, seconds: number): void;
  readonly onRefused: OnRefused;
  onTokenRefused(problem: TokenProblem): void;
  readonly groupHooks: GroupHooks;
  /** Serves `/metrics` on an address of its own. Resolves to how to close it. */
  serve(address: ListenAddress): Promise<{ close(): void }>;
}

/** What the metrics are read from, where there is any. */
interface Measured {
  readonly audit?: Pick<AuditFile, 'lost'> | undefined;
  readonly identity?: Identity | undefined;
}

const prefix = 'model_manager_';
/** Seconds, from a kept answer to a model that takes minutes to load. */
const buckets = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 300];

/** Base units, bounded labels: no user, model, path or error text ever becomes one. */
export function createMetrics(gateway: Gateway, { audit, identity }: Measured = {}): Metrics {
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
    labelNames: ['surface', 'method', 'code'],
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
    labelNames: ['field'],
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
      for (const { name, status } of gateway.registry.backends.filter(isEverybodys)) {
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

  return {
    onRequest(surface, method, res) {
      const end = durations.startTimer({ surface });
      res.once('close', () => {
        end();
        requests.inc({ surface, method: knownMethods.has(method) ? method : 'other', code: res.statusCode });
      });
    },
    onToolCall(tool, code, seconds) {
      toolCalls.inc({ tool, code: code ?? 'ok' });
      toolDurations.observe({ tool }, seconds);
    },
    onRefused: reason => refusals.inc({ reason }),
    onTokenRefused: reason => tokenRefusals.inc({ reason }),
    groupHooks: {
      onMember: (field, change) => subscriptions.inc({ field }, change),
      onEvent: () => events.inc(),
      onCoalesced: () => coalesced.inc(),
    },
    async serve(address) {
      const server = createServer(async (req, res) => {
        if (req.url?.split('?')[0] !== '/metrics') return void res.writeHead(404).end();
        res.setHeader('content-type', register.contentType);
        res.end(await register.metrics());
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

const knownMethods = new Set(['GET', 'HEAD', 'POST', 'DELETE', 'PUT', 'PATCH', 'OPTIONS']);
