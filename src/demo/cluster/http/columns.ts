import { versionsOf } from '../store/catalogue.ts';
import { type Kind, resourceOf } from '../store/kinds.ts';
import { isRecord, type KubernetesObject, recordOf } from '../store/object.ts';

/** A column of what `kubectl get` prints. */
export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format?: string;
  /** Above 0 only with `-o wide`. */
  readonly priority?: number;
  /** `now` in milliseconds. */
  cell(object: KubernetesObject, now: number): unknown;
}

const text = (name: string, cell: Column['cell']): Column => ({ name, type: 'string', cell });
const field = (name: string, path: string): Column => text(name, object => at(object, path) ?? '');

const name: Column = { name: 'Name', type: 'string', format: 'name', cell: ({ metadata }) => metadata.name };
const age = text('Age', ({ metadata }, now) => since(metadata.creationTimestamp, now));

/** Of a kind in a version: those that Kubernetes has for its own, and those that definitions ask for. */
export function columnsOf(kind: Kind, version: string): readonly Column[] {
  if (!kind.definition) return [name, ...(ownColumns[resourceOf(kind)] ?? [age])];
  const { additionalPrinterColumns: asked } = versionsOf(kind.definition).find(each => each.name === version) ?? {};
  const printed = Array.isArray(asked) ? asked.map(recordOf).map(printerColumn) : [age];
  return [name, ...printed];
}

function printerColumn({ name, type, format, priority, jsonPath }: Readonly<Record<string, unknown>>): Column {
  const path = String(jsonPath).replace(/^\./, '');
  const isDate = type === 'date';
  return {
    name: String(name),
    type: String(type),
    ...(typeof format === 'string' && { format }),
    ...(typeof priority === 'number' && { priority }),
    cell(object, now) {
      const value = at(object, path);
      if (isDate) return value === undefined ? '<unknown>' : since(String(value), now);
      return isRecord(value) || Array.isArray(value) ? JSON.stringify(value) : (value ?? null);
    },
  };
}

/** What is at `status.conditions[?(@.type=="Ready")].status`: the first that fits. */
function at(object: object, path: string): unknown {
  let value: unknown = object;
  for (const [, field, index, key, wanted] of path.matchAll(
    /((?:[^.[\\]|\\.)+)|\[(\d+|\*)\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]/g,
  )) {
    if (field !== undefined) value = isRecord(value) ? value[field.replaceAll('\\', '')] : undefined;
    else if (!Array.isArray(value)) return undefined;
    else if (index !== undefined) value = value[index === '*' ? 0 : Number(index)];
    else value = value.find(item => isRecord(item) && String(at(item, String(key))) === wanted);
  }
  return value;
}

/** `90s`, `3m20s`, `47m`, `5h10m`, `30h`, `3d4h`, `210d`: two units while the first one is small. */
function since(time: string | undefined, now: number): string {
  const seconds = Math.max(0, Math.floor((now - Date.parse(time ?? '')) / 1000));
  if (Number.isNaN(seconds)) return '<unknown>';
  const both = (first: string, rest: number, unit: string) => (rest > 0 ? `${first}${rest}${unit}` : first);
  const [minutes, hours, days] = [60, 3_600, 86_400].map(unit => Math.floor(seconds / unit)) as [
    number,
    number,
    number,
  ];
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return both(`${minutes}m`, seconds % 60, 's');
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return both(`${hours}h`, minutes % 60, 'm');
  if (days < 2) return `${hours}h`;
  return days < 8 ? both(`${days}d`, hours % 24, 'h') : `${days}d`;
}

const list = (value: unknown) => (Array.isArray(value) ? value.map(recordOf) : []);
const size = (value: unknown) => Object.keys(recordOf(value)).length;
const of = (object: KubernetesObject, path: string) => at(object, path) ?? 0;

const ownColumns: Readonly<Record<string, readonly Column[]>> = {
  namespaces: [field('Status', 'status.phase'), age],
  nodes: [text('Status', nodeStatus), field('Version', 'status.nodeInfo.kubeletVersion'), age],
  pods: [
    text('Ready', object => {
      const statuses = list(at(object, 'status.containerStatuses'));
      return `${statuses.filter(({ ready }) => ready === true).length}/${list(at(object, 'spec.containers')).length}`;
    }),
    text('Status', podStatus),
    text('Restarts', object =>
      list(at(object, 'status.containerStatuses')).reduce(
        (sum, { restartCount }) => sum + Number(restartCount ?? 0),
        0,
      ),
    ),
    age,
  ],
  configmaps: [text('Data', ({ data, binaryData }) => size(data) + size(binaryData)), age],
  secrets: [field('Type', 'type'), text('Data', ({ data }) => size(data)), age],
  services: [
    field('Type', 'spec.type'),
    field('Cluster-IP', 'spec.clusterIP'),
    text('Port(s)', object =>
      list(at(object, 'spec.ports'))
        .map(({ port, protocol }) => `${port}/${protocol}`)
        .join(','),
    ),
    age,
  ],
  events: [
    text('Last Seen', ({ lastTimestamp, eventTime, metadata }, now) =>
      since(String(lastTimestamp ?? eventTime ?? metadata.creationTimestamp), now),
    ),
    field('Type', 'type'),
    field('Reason', 'reason'),
    text('Object', ({ involvedObject }) => {
      const { kind, name } = recordOf(involvedObject);
      return `${String(kind).toLowerCase()}/${name}`;
    }),
    text('Message', ({ message }) => String(message ?? '').trim()),
  ],
  persistentvolumeclaims: [
    field('Status', 'status.phase'),
    field('Volume', 'spec.volumeName'),
    field('Capacity', 'status.capacity.storage'),
    field('StorageClass', 'spec.storageClassName'),
    age,
  ],
  'deployments.apps': [
    text('Ready', object => `${of(object, 'status.readyReplicas')}/${of(object, 'spec.replicas')}`),
    text('Up-to-date', object => of(object, 'status.updatedReplicas')),
    text('Available', object => of(object, 'status.availableReplicas')),
    age,
  ],
  'daemonsets.apps': [
    text('Desired', object => of(object, 'status.desiredNumberScheduled')),
    text('Ready', object => of(object, 'status.numberReady')),
    age,
  ],
  'jobs.batch': [
    text('Status', object => {
      const true_ = list(at(object, 'status.conditions')).filter(({ status }) => status === 'True');
      return ['Complete', 'Failed', 'Suspended'].find(type => true_.some(each => each.type === type)) ?? 'Running';
    }),
    text('Completions', object => `${of(object, 'status.succeeded')}/${at(object, 'spec.completions') ?? 1}`),
    age,
  ],
  'leases.coordination.k8s.io': [field('Holder', 'spec.holderIdentity'), age],
  'customresourcedefinitions.apiextensions.k8s.io': [field('Created At', 'metadata.creationTimestamp')],
};

function nodeStatus(node: KubernetesObject): string {
  const ready = at(node, 'status.conditions[?(@.type=="Ready")].status') === 'True' ? 'Ready' : 'NotReady';
  return at(node, 'spec.unschedulable') === true ? `${ready},SchedulingDisabled` : ready;
}

/** What ails a pod most, in one word. */
function podStatus(pod: KubernetesObject): string {
  if (pod.metadata.deletionTimestamp) return 'Terminating';
  const inits = list(at(pod, 'status.initContainerStatuses'));
  const unfinished = inits.findIndex(({ state }) => at(recordOf(state), 'terminated.exitCode') !== 0);
  if (unfinished >= 0) {
    const why = troubleOf(inits[unfinished]);
    if (why && why !== 'PodInitializing') return `Init:${why}`;
    return `Init:${unfinished}/${list(at(pod, 'spec.initContainers')).length}`;
  }
  const troubles = list(at(pod, 'status.containerStatuses')).flatMap(status => troubleOf(status) ?? []);
  return troubles[0] ?? String(at(pod, 'status.reason') ?? at(pod, 'status.phase') ?? 'Unknown');
}

function troubleOf(status: object | undefined): string | undefined {
  const waiting = at(status ?? {}, 'state.waiting.reason');
  if (waiting !== undefined) return String(waiting);
  const terminated = recordOf(at(status ?? {}, 'state.terminated'));
  if (terminated.exitCode === undefined) return undefined;
  return String(terminated.reason ?? `ExitCode:${terminated.exitCode}`);
}
