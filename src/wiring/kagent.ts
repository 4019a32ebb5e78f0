import type { Logger } from 'pino';
import { type Call, type Caller, createCall } from '../call.ts';
import type { KubernetesClient } from '../kubernetes/client.ts';
import type { Use } from '../kubernetes/permissions.ts';
import { createReviews } from '../kubernetes/reviews.ts';
import type { Watches } from '../kubernetes/watches.ts';
import { watchKnown, watchState } from './kagent/known.ts';
import { look } from './kagent/look.ts';
import { isOn, referenceOf } from './kagent/match.ts';
import { nameOf } from './kagent/names.ts';
import { previewUnwire, previewWire } from './kagent/preview.ts';
import { unwire } from './kagent/unwire.ts';
import { usesOfUnwire, usesOfWire } from './kagent/uses.ts';
import { createVersions } from './kagent/versions.ts';
import { wire } from './kagent/wire.ts';
import type { WiringTarget } from './wiring.ts';

export interface KagentOptions {
  readonly client: KubernetesClient;
  readonly watches: Watches;
  /** Where kagent reads its ModelConfigs. */
  readonly namespace: string;
  /** Version of them, such as `v1alpha3`; `auto`: what the API server prefers. */
  readonly apiVersion: string;
  /** Begins every name; '' is none. */
  readonly prefix: string;
  readonly autoWire: boolean;
  readonly log: Logger;
  /** As whom to watch; the gateway itself when absent. */
  readonly caller?: Caller | undefined;
}

/**
 * Agents of kagent know a model by a ModelConfig. What is there is watched for readers; who writes looks at the API server
 * first, as the one who calls.
 */
export function createKagent(options: KagentOptions): WiringTarget {
  const { client, watches, namespace, apiVersion, prefix, autoWire, log, caller } = options;
  const versions = createVersions(client, apiVersion);
  const place = { client, versions, namespace, prefix };
  const reviews = createReviews(client);
  const permit = (call: Call, uses: readonly Use[]) =>
    reviews.permit(
      call,
      uses.map(use => ({ use, namespace })),
    );
  const objects = watches.of(createCall({ log, ...(caller && { caller }) }), versions, { namespace });

  /** All there are; none where there is no kagent. */
  const rowsNow = async (call: Call) => (await look(place, call))?.index.rows ?? [];

  return {
    get info() {
      return { namespace, apiVersion: versions.current.version, autoWire };
    },
    state: watchState(objects),
    known: watchKnown(objects, { versions, namespace, prefix }),

    async wire(call, model, apiKey) {
      const { row, written } = await wire(place, call, model, apiKey);
      if (written) await untilLeft(objects.seen(written, call.signal));
      return row.ref;
    },

    plan: (call, model) => previewWire(place, call, model),
    planUnwire: (call, backend, reference) => previewUnwire(place, call, backend, reference),

    mayWire: (call, model, known) => permit(call, usesOfWire(model, known)),
    mayUnwire: (call, known) => permit(call, usesOfUnwire(known)),

    async unwire(call, backend, reference) {
      const removed = await unwire(place, call, backend, reference);
      await untilLeft(Promise.all(removed.map(each => objects.gone(each, call.signal))));
    },

    async wiredOn(call, backend) {
      const rows = (await rowsNow(call)).filter(row => isOn(row, backend));
      return [...new Set(rows.map(referenceOf))];
    },

    async backendsOf(call, reference) {
      const name = nameOf(reference, prefix);
      const rows = (await rowsNow(call)).filter(
        row =>
          row.ref.managed && (referenceOf(row) === reference || (row.annotated === undefined && row.ref.name === name)),
      );
      return [...new Set(rows.map(({ ref }) => ref.backend))];
    },
  };
}

/** Who leaves, or whose time is up, while readers are brought up to date has what was asked for: it is done. */
const untilLeft = (echo: Promise<unknown>) => echo.catch(() => {});
