/** A document as callers give it: one flat argument for each field. */
import { invalidRequest, quoted } from '../../errors.ts';
import { given } from '../registry.ts';
import { type BackendDocument, documentApiVersion, documentKind, readDocument } from './document.ts';

type Text = string | null | undefined;

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
