/** Adding and removing backends while the gateway runs: each is a document in a ConfigMap, written as the caller. */
import type { Call } from '../../call.ts';
import { isNamespaceName } from '../../config/values.ts';
import {
  conflict,
  GatewayError,
  invalidRequest,
  modelNotFound,
  quoted,
  unlessMissing,
  unsupported,
} from '../../errors.ts';
import type { KubernetesClient } from '../../kubernetes/client.ts';
import { type ConfigMap, configMaps } from '../../kubernetes/resource.ts';
import type { Reviews } from '../../kubernetes/reviews.ts';
import { until } from '../../live/until.ts';
import type { Actions } from '../actions.ts';
import { backendNamed, given } from '../registry.ts';
import { takeBack } from '../wiring.ts';
import { type DocumentArguments, documentOf } from './arguments.ts';
import { configMapName, configMapOf, isDocument, replaced } from './configMap.ts';

/** Where documents are kept. */
export interface Documents {
  readonly client: KubernetesClient;
  readonly namespace: string;
  /** What callers may do there. */
  readonly reviews: Reviews;
}

/** How long an answer waits for what was written to be registered, or gone, in milliseconds. */
const registeredMs = 5_000;

type Text = string | null | undefined;

/** Whether to write, and how. */
interface Writing {
  readonly dryRun?: boolean | null | undefined;
  readonly mode?: Text;
}

/** A ConfigMap that holds a document. */
export interface DocumentConfigMap {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** What adding a backend did, or with `dryRun` would do; then nothing after `configMap` is there. */
export interface AddedBackend {
  readonly dryRun: boolean;
  /** Text of the document. */
  readonly document: string;
  readonly configMap: DocumentConfigMap;
  /** False when a document was there and was replaced. */
  readonly created?: boolean | undefined;
  /** Whether the backend was there by the time of the answer. */
  readonly registered?: boolean | undefined;
  /** Why it will not be: what is wrong with the document. */
  readonly error?: string | undefined;
  /** Name of the backend, once it is there. */
  readonly backend?: string | undefined;
}

/** What removing a backend did, or with `dryRun` would do. */
export interface RemovedBackend {
  readonly dryRun: boolean;
  readonly configMap: DocumentConfigMap;
  /** References of the models that would be unwired; with `dryRun`. */
  readonly modelConfigs?: readonly string[] | undefined;
  /** References of the models that were unwired. */
  readonly unwired?: readonly string[] | undefined;
  readonly removed?: boolean | undefined;
  /** Whether the backend was gone by the time of the answer. */
  readonly deregistered?: boolean | undefined;
}

/** Registers a backend, or replaces the document there is of its kind. */
export async function addBackend(
  { registry, documents }: Actions,
  call: Call,
  input: DocumentArguments & Writing,
): Promise<AddedBackend> {
  requireApply(input.mode);
  const document = documentOf(input);
  const { kind } = document.spec;
  if (registry.isStatic(kind)) throw staticKind(kind, 'a document cannot replace it');
  if (!documents) throw needsKubernetes();
  const { text, ...configMap } = configMapOf(document, documents.namespace);
  const answer = { document: text, configMap: located(configMap, documents) };
  if (input.dryRun) return { dryRun: true, ...answer };

  const created = await write(documents, call, configMap);
  const filed = () =>
    registry.registered.current?.value?.documents?.find(
      each => each.configMap === configMap.metadata.name && each.text === text,
    );
  await until(registry.registered, () => filed() !== undefined, { ms: registeredMs, signal: call.signal });
  const found = filed();
  const registered = found !== undefined && found.error === undefined;
  return { dryRun: false, ...answer, created, registered, error: found?.error, backend: registered ? kind : undefined };
}

/** How often to begin again when somebody else wrote in between. */
const maxAttempts = 3;

/** Creates the ConfigMap, or replaces what it holds. True when it was created. */
async function write({ client, namespace }: Documents, call: Call, configMap: ConfigMap): Promise<boolean> {
  const { name } = configMap.metadata;
  for (let attempt = 1; ; attempt++) {
    const there = await documentAt(client, call, name, namespace);
    if (there?.metadata.deletionTimestamp)
      throw conflict(`ConfigMap ${namespace}/${name} is being deleted; try again when it is gone`);
    try {
      if (there) await client.replace(call, configMaps, replaced(there, configMap));
      else await client.create(call, configMaps, configMap);
      return !there;
    } catch (error) {
      // Of what was there, not found says that it went in between; of nothing, that the namespace is missing.
      const isRace =
        error instanceof GatewayError && (error.code === 'conflict' || (there && error.code === 'not_found'));
      if (!isRace || attempt === maxAttempts) throw error;
    }
  }
}

/** The ConfigMap of that name, if there is one. Throws `conflict` when it is something else than a document. */
async function documentAt(
  client: KubernetesClient,
  call: Call,
  name: string,
  namespace: string,
): Promise<ConfigMap | undefined> {
  const there = await unlessMissing(client.get(call, configMaps, name, namespace));
  if (there && !isDocument(there)) {
    throw conflict(
      `ConfigMap ${namespace}/${name} exists but is not labelled as a backend document; label or remove it by hand`,
    );
  }
  return there;
}

/**
 * Removes a backend that was registered: first what makes its models known to agents, then its document. Whatever is
 * refused is refused before anything is removed.
 */
export async function removeBackend(
  { registry, documents, wiring }: Actions,
  call: Call,
  input: { readonly kind?: Text } & Writing,
): Promise<RemovedBackend> {
  requireApply(input.mode);
  const kind = given(input.kind);
  if (!kind) throw invalidRequest('kind is required');
  const kept = requireRemovable({ registry, documents }, kind);
  const { client, namespace } = kept;
  const name = configMapName(kind);
  // What can be no name is none of a document.
  const isKind = isNamespaceName(kind);
  const there = isKind ? await documentAt(client, call, name, namespace) : undefined;
  if (!there) throw modelNotFound(`no ${isKind ? kind : quoted(kind)} backend document in ${namespace}`);
  const configMap = located(there, kept);
  const models = (await wiring?.wiredOn(call, kind)) ?? [];
  if (input.dryRun) return { dryRun: true, configMap, modelConfigs: models };

  for (const model of models) if (wiring) await takeBack(wiring, call, 'removeBackend', { backend: kind, model });
  await client.remove(call, configMaps, name, namespace, { uid: there.metadata.uid });
  const isGone = () => backendNamed(registry, kind) === undefined;
  const deregistered = await until(registry.registered, isGone, { ms: registeredMs, signal: call.signal });
  return { dryRun: false, configMap, unwired: models, removed: true, deregistered };
}

/** Where the document of a kind is removed from. Throws what a removal is refused with, whatever is there. */
export function requireRemovable(
  { registry, documents }: Pick<Actions, 'registry' | 'documents'>,
  kind: string,
): Documents {
  if (registry.isStatic(kind)) throw staticKind(kind, 'it cannot be removed here');
  if (!documents) throw needsKubernetes();
  return documents;
}

const located = ({ metadata: { name, labels = {} } }: ConfigMap, { namespace }: Documents): DocumentConfigMap => ({
  namespace,
  name,
  labels,
});

function requireApply(mode: Text): void {
  const wanted = given(mode) ?? 'apply';
  if (wanted === 'commit') {
    throw unsupported('mode commit (a pull request instead of a write) is not available yet; use mode apply');
  }
  if (wanted !== 'apply') throw invalidRequest(`mode must be apply or left out, got ${quoted(wanted)}`);
}

const staticKind = (kind: string, consequence: string) =>
  conflict(`backend ${kind} is configured statically by the chart values (--backends); ${consequence}`);

const needsKubernetes = () =>
  unsupported('backend registration needs Kubernetes access and a namespace: that is where documents are kept');
