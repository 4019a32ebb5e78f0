/** Clusters made of fixtures. */
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { type KserveFlags, kserveFlags } from '../../../src/config/kserve.ts';
import { type Discovery, parseDiscovery } from '../../../src/drivers/kserve/discovery.ts';
import { cacheLocation } from '../../../src/drivers/kserve/nodes/cacheLocation.ts';
import { presetsIn } from '../../../src/drivers/kserve/presets.ts';
import { checkFlags, type SettingSources, settingsOf } from '../../../src/drivers/kserve/settings.ts';
import type { KubernetesObject } from '../../../src/kubernetes/resource.ts';

const folder = new URL('../../fixtures/kserve/', import.meta.url);
export const textOf = (file: string) => readFileSync(new URL(file, folder), 'utf8');
export const jsonOf = (file: string) => JSON.parse(textOf(file));
/** The objects of a YAML file, its plain documents too. */
export const objectsOf = (file: string): KubernetesObject[] => parseAllDocuments(textOf(file)).map(each => each.toJS());

/** All flags as nobody gave one, but for those here as they are written. */
export function flagsOf(written: Partial<Record<keyof KserveFlags, string>> = {}) {
  const flags = Object.entries(kserveFlags).map(([name, { kind, default: standard }]) => [
    name,
    kind.check.parse(written[name as keyof KserveFlags] ?? standard),
  ]);
  return Object.fromEntries(flags) as unknown as KserveFlags;
}

export const discoveryRef = { namespace: 'agent-platform', name: 'agent-platform-model-serving' };

/** The ConfigMap that publishes a `spec`. */
export const discoveryWith = (spec: unknown): KubernetesObject & { data: Record<string, string> } => ({
  metadata: discoveryRef,
  data: { 'config.yaml': JSON.stringify({ kind: 'ModelServingConfig', spec }) },
});

export function documentOf(discovery: Discovery) {
  if (discovery.state !== 'present') throw new Error(`no document: ${JSON.stringify(discovery)}`);
  return discovery.document;
}

export const settingsWith = (
  spec: object | undefined,
  flags: Partial<Record<keyof KserveFlags, string>> = {},
  more: Partial<SettingSources> = {},
) =>
  settingsOf({
    flags: checkFlags(flagsOf(flags)),
    discovery: discoveryRef,
    document: spec && documentOf(parseDiscovery(discoveryWith(spec), discoveryRef)),
    ...more,
  });

export const presetFiles = ['atlas-70b-x4', 'lyra-20b-oci', 'nova-4b', 'pico-1b-cpu'].map(
  name => `cluster/preset-${name}.yaml`,
);
export const presetMaps = presetFiles.flatMap(objectsOf);
export const overhead = { defaultOverheadBytes: 30 * 2 ** 30 };
export const { presets } = presetsIn(presetMaps, overhead);

/** The ConfigMap that publishes a preset document. */
export const presetMap = (document: unknown, name = 'p'): KubernetesObject & { data: Record<string, string> } => ({
  metadata: { name, namespace: 'agent-platform' },
  data: { 'preset.yaml': typeof document === 'string' ? document : JSON.stringify(document) },
});

export const clusterNodes = objectsOf('cluster/nodes.yaml');

/** Where the claim in a file of `cluster` lives; without a file there is none. */
export function locationOf(settings: Parameters<typeof cacheLocation>[0], file: string | null | undefined) {
  const found = file ? objectsOf(`cluster/${file}`) : [];
  const ofKind = (kind: string) => found.find(each => each.kind === kind);
  return cacheLocation(settings, ofKind('PersistentVolumeClaim'), ofKind('PersistentVolume'));
}

/** Without what is undefined, as JSON has it. */
export const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value));
