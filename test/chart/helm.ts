/** The chart as the real `helm` renders it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { findTool, skipWithout } from '../support/tools.ts';

const helm = findTool('helm');

/** Why a test with helm cannot run here; false when it can. */
export const skip = skipWithout('helm', helm);

export const chart = new URL('../../helm/model-manager/', import.meta.url).pathname;
export const readChart = (path: string) => readFileSync(`${chart}${path}`, 'utf8');

/** What a test looks at of an object; what else it has is there too. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: unknown;
}

export interface PodSpec {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly topologySpreadConstraints?: readonly Readonly<Record<string, unknown>>[];
  readonly containers: readonly Container[];
  readonly volumes: readonly Readonly<Record<string, unknown>>[];
}

export interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly resources: {
    readonly requests?: Readonly<Record<string, string>>;
    readonly limits?: Readonly<Record<string, string>>;
  };
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

export type Values = Readonly<Record<string, unknown>>;

/** The examples of values, by name. */
export const examples: Readonly<Record<string, Values>> = Object.fromEntries(
  globSync('ci/*-values.yaml', { cwd: chart })
    .sort()
    .map(path => [basename(path, '-values.yaml'), parse(readChart(path)) as Values]),
);

const release = 'model-manager';
export const namespace = 'agent-platform';

/** Runs helm. `input` is what it reads as `-f -`; of this machine it sees nothing. */
export function run(args: readonly string[], input: Values = {}) {
  assert.ok(helm, 'a test with helm must be skipped where there is none');
  const home = tmpdir();
  return spawnSync(helm, args, {
    input: JSON.stringify(input),
    env: { HOME: home, KUBECONFIG: '/dev/null', HELM_NAMESPACE: namespace },
    encoding: 'utf8',
  });
}

const templateArgs = (flags: readonly string[]) => ['template', release, chart, '-f', '-', ...flags];

/** The text of all objects. */
export function renderText(values: Values = {}, flags: readonly string[] = []): string {
  const { status, stdout, stderr } = run(templateArgs(flags), values);
  assert.equal(status, 0, stderr);
  return stdout;
}

/** All objects. Keys that stand twice in one of them fail. */
export const render = (values?: Values, flags?: readonly string[]): readonly Manifest[] =>
  parseAllDocuments(renderText(values, flags)).flatMap(document => {
    assert.deepEqual(document.errors, []);
    const manifest = document.toJS() as Manifest | null;
    return manifest ? [manifest] : [];
  });

/** Why these values are refused. */
export function refusal(values: Values, flags: readonly string[] = []): string {
  const { status, stderr, stdout } = run(templateArgs(flags), values);
  assert.notEqual(status, 0, `they are taken: ${stdout}`);
  return stderr;
}

/** The objects of a kind. */
export const ofKind = <T extends object>(manifests: readonly Manifest[], kind: string): readonly (Manifest & T)[] =>
  manifests.filter(each => each.kind === kind) as unknown as readonly (Manifest & T)[];

/** The one object of a kind. */
export function theOne<T extends object>(manifests: readonly Manifest[], kind: string): Manifest & T {
  const found = ofKind<T>(manifests, kind);
  assert.equal(found.length, 1, `${found.length} of ${kind}`);
  return found[0] as Manifest & T;
}

interface Workload {
  readonly spec: { readonly template: { readonly metadata: Manifest['metadata']; readonly spec: PodSpec } };
}

/** The pod of the gateway. */
export const gatewayPod = (manifests: readonly Manifest[]) =>
  theOne<Workload>(manifests, 'Deployment').spec.template.spec;

/** The pods of everything that has some. */
export const podsOf = (manifests: readonly Manifest[]): readonly PodSpec[] =>
  ['Deployment', 'DaemonSet'].flatMap(kind => ofKind<Workload>(manifests, kind)).map(each => each.spec.template.spec);

export const containerOf = ({ containers }: PodSpec): Container => {
  assert.equal(containers.length, 1);
  return containers[0] as Container;
};
