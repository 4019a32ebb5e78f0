import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Step } from '../domain.ts';
import { type OnRequest, others } from '../drivers/http.ts';
import type { RestartReason } from '../kubernetes/reflector.ts';
import type { Watches } from '../kubernetes/watches.ts';

/** What is counted where the gateway meets others: backends, the API server, and work that goes on by itself. */
export interface Edges {
  readonly registry: Registry;
  /** The hook for the requests to one backend, by its name, or to one of the `others`. */
  requestsTo(backend: string): OnRequest;
  onWatchRestart(resource: string, reason: RestartReason): void;
  /** The steps of a served model that is ready, in any order. */
  onServed(steps: readonly Step[]): void;
  /** Bytes that a job has and had not before. */
  onBytes(backend: string, more: number): void;
  /** From now on the watches that run are shown. */
  show(watches: Watches): void;
  /** From now on what a backend has counted goes with it. */
  keepOnly(isThere: (backend: string) => boolean): void;
}

export const prefix = 'model_manager_';
/** Seconds, from a kept answer to a model that takes minutes to load. */
export const buckets = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 60, 300];
/** Seconds, from a step that is over at once to half an hour of waiting for a node. */
const stepBuckets = [1, 5, 15, 30, 60, 120, 300, 600, 1200, 1800];
const lasting: ReadonlySet<string> = new Set(Object.values(others));

interface RequestLabels {
  readonly backend: string;
  readonly op: string;
  readonly outcome: string;
}

export function createEdges(): Edges {
  const registry = new Registry();
  const registers = [registry];
  /** Of each backend the series there are, so that they can go with it. */
  const series = new Map<string, Map<string, RequestLabels>>();
  let isThere: (backend: string) => boolean = () => true;
  let watches: Pick<Watches, 'states'> = { states: () => [] };

  const requests = new Counter({
    name: `${prefix}backend_requests_total`,
    help:
      'Requests to backends (a KServe of another cluster is one), and as `kubernetes`, `hub` and `cache-agents` to the API server, ' +
      'the Hugging Face Hub and the agents of the cache; `outcome` is ok, refused (it answered so) or failed.',
    labelNames: ['backend', 'op', 'outcome'],
    registers,
    collect() {
      for (const [backend, ofBackend] of series) {
        if (isThere(backend)) continue;
        for (const { op, outcome } of ofBackend.values()) {
          this.remove({ backend, op, outcome });
          durations.remove({ backend, op });
        }
        bytes.remove({ backend });
        series.delete(backend);
      }
    },
  });
  const durations = new Histogram({
    name: `${prefix}backend_request_duration_seconds`,
    help: 'From a request, counted as `backend_requests_total` says, to the end of its answer; for streams and the API server to its beginning.',
    labelNames: ['backend', 'op'],
    buckets,
    registers,
  });
  const bytes = new Counter({
    name: `${prefix}job_bytes_total`,
    help: 'Bytes that downloads reported; one that resumes reports those it has as well.',
    labelNames: ['backend'],
    registers,
  });
  const restarts = new Counter({
    name: `${prefix}watch_restarts_total`,
    help: 'Watches that were begun anew, in whichever cluster: expired, broken, or silent for too long.',
    labelNames: ['resource', 'reason'],
    registers,
  });
  const steps = new Histogram({
    name: `${prefix}serve_phase_duration_seconds`,
    help: 'Steps of served models that became ready while somebody looked: users, or the job of a load.',
    labelNames: ['phase'],
    buckets: stepBuckets,
    registers,
  });
  new Gauge({
    name: `${prefix}watch_up`,
    help: 'Whether every watch of a resource that somebody needs runs, in the cluster of the gateway.',
    labelNames: ['resource'],
    registers,
    collect() {
      this.reset();
      for (const [resource, states] of byResource(watches)) {
        this.set({ resource }, Number(states.every(({ watching }) => watching)));
      }
    },
  });
  new Gauge({
    name: `${prefix}watch_last_event_timestamp_seconds`,
    help: 'When the API server last said anything on a watch, bookmarks included; of several the one that is longest ago.',
    labelNames: ['resource'],
    registers,
    collect() {
      this.reset();
      for (const [resource, states] of byResource(watches)) {
        const times = states.flatMap(({ lastEventAt }) => lastEventAt ?? []).map(at => at.getTime());
        if (times.length > 0) this.set({ resource }, Math.min(...times) / 1000);
      }
    },
  });

  function known(backend: string): Map<string, RequestLabels> {
    const found = series.get(backend) ?? new Map<string, RequestLabels>();
    series.set(backend, found);
    return found;
  }

  return {
    registry,
    requestsTo: backend => (op, outcome, seconds) => {
      const labels = { backend, op, outcome };
      known(backend).set(`${op} ${outcome}`, labels);
      requests.inc(labels);
      durations.observe({ backend, op }, seconds);
    },
    onWatchRestart: (resource, reason) => restarts.inc({ resource, reason }),
    onServed(done) {
      for (const { name, since, finishedAt } of done) {
        if (name === 'ready' || !since || !finishedAt) continue;
        steps.observe({ phase: name }, Math.max(0, finishedAt.getTime() - since.getTime()) / 1000);
      }
    },
    onBytes(backend, more) {
      known(backend);
      bytes.inc({ backend }, more);
    },
    show(shown) {
      watches = shown;
    },
    keepOnly(check) {
      isThere = backend => lasting.has(backend) || check(backend);
    },
  };
}

const byResource = (watches: Pick<Watches, 'states'>) => Map.groupBy(watches.states(), ({ resource }) => resource);
