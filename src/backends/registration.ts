/** Backends that are registered while the gateway runs, each by a document of its own. */
import { conflict, invalidRequest, quoted, unsupported } from '../errors.ts';
import type { Actions } from './actions.ts';
import { type BackendDocument, documentApiVersion, documentKind, readDocument } from './document.ts';
import { given } from './registry.ts';

type Text = string | null | undefined;

/** A document as callers give it: one flat argument for each field. */
export interface DocumentArguments {
  readonly kind?: Text;
  readonly source?: Text;
  readonly endpoint?: Text;
  readonly agentEndpoint?: Text;
  readonly credentialsSecret?: Text;
  readonly credentialsKey?: Text;
  readonly cluster?: Text;
  readonly organization?: Text;
  readonly apiServer?: Text;
  readonly caBundle?: Text;
  readonly servingNamespace?: Text;
  readonly discoveryNamespace?: Text;
  readonly discoveryName?: Text;
  readonly gpuPoolTaint?: Text;
  readonly gpuPoolNodeSelector?: Text;
}

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

/** Registers a backend. */
export function addBackend({ registry }: Actions, input: DocumentArguments & Writing): AddedBackend {
  requireApply(input.mode);
  const { kind } = documentOf(input).spec;
  if (isStatic(registry, kind)) throw staticKind(kind, 'a document cannot replace it');
  throw needsKubernetes();
}

/** Removes a backend that was registered, and what made its models known to agents before. */
export function removeBackend({ registry }: Actions, input: { readonly kind?: Text } & Writing): RemovedBackend {
  requireApply(input.mode);
  const kind = given(input.kind);
  if (!kind) throw invalidRequest('kind is required');
  if (isStatic(registry, kind)) throw staticKind(kind, 'it cannot be removed here');
  throw needsKubernetes();
}

function requireApply(mode: Text): void {
  const wanted = given(mode) ?? 'apply';
  if (wanted === 'commit') {
    throw unsupported('mode commit (a pull request instead of a write) is not available yet; use mode apply');
  }
  if (wanted !== 'apply') throw invalidRequest(`mode must be apply or left out, got ${quoted(wanted)}`);
}

const isStatic = ({ backends }: Actions['registry'], kind: string) =>
  backends.some(({ origin, driver }) => origin === 'static' && driver.kind === kind);

const staticKind = (kind: string, consequence: string) =>
  conflict(`backend ${kind} is configured statically by the chart values (--backends); ${consequence}`);

const needsKubernetes = () =>
  unsupported('backend registration needs Kubernetes access and a namespace: that is where documents are kept');

/** The document that arguments make. What is of no use for a host is dropped, but for what it cannot have. */
export function documentOf(input: DocumentArguments): BackendDocument {
  const kind = given(input.kind);
  const secret = given(input.credentialsSecret);
  const read = readDocument({
    apiVersion: documentApiVersion,
    kind: documentKind,
    spec: {
      kind,
      source: given(input.source),
      endpoint: given(input.endpoint),
      agentEndpoint: given(input.agentEndpoint),
      ...(secret && { credentials: { secretRef: { name: secret, key: given(input.credentialsKey) } } }),
      ...(kind === 'kserve' && { kserve: kserveOf(input) }),
    },
  });
  if ('problem' in read) throw invalidRequest(read.problem);
  return read.document;
}

function kserveOf(input: DocumentArguments) {
  const taint = given(input.gpuPoolTaint);
  const selector = given(input.gpuPoolNodeSelector);
  return {
    target: {
      cluster: given(input.cluster),
      organization: given(input.organization),
      apiServer: given(input.apiServer),
      caBundle: given(input.caBundle),
      servingNamespace: given(input.servingNamespace),
    },
    discovery: { namespace: given(input.discoveryNamespace), name: given(input.discoveryName) },
    ...((taint || selector) && {
      gpuPool: { taint: taint && taintOf(taint), nodeSelector: selector && selectorOf(selector) },
    }),
  };
}

/** `key[=value][:effect]` */
function taintOf(text: string) {
  const [, key = '', value, effect] = /^([^=:]+)(?:=([^=:]*))?(?::([^=:]*))?$/.exec(text) ?? [];
  if (key.trim() === '') throw invalidRequest(`gpuPoolTaint: must be key[=value][:effect], got ${quoted(text)}`);
  return { key, value, effect };
}

/** `key=value[,key=value]` */
function selectorOf(text: string): Record<string, string> {
  const pairs = text.split(',').map(pair => /^([^=]+)=([^=]*)$/.exec(pair.trim()));
  return Object.fromEntries(
    pairs.map(pair => {
      const [, key = '', value = ''] = pair ?? [];
      if (key.trim() === '')
        throw invalidRequest(`gpuPoolNodeSelector: must be key=value[,key=value], got ${quoted(text)}`);
      return [key.trim(), value.trim()];
    }),
  );
}
