/** Where documents are kept: one ConfigMap each, told by its label and named after its kind. */
import type { ConfigMap } from '../../kubernetes/resource.ts';
import { type BackendDocument, parseDocument, renderDocument } from './document.ts';

const label = 'agent-platform.giantswarm.io/model-backend';
const sourceLabel = `${label}-source`;
const dataKey = 'backend.yaml';

/** What is watched. */
export const documentSelector = `${label}=true`;

export const configMapName = (kind: string) => `model-backend-${kind}`;

/** The text in a ConfigMap, and the document that it is; or what is wrong with it. */
export interface Filed {
  readonly configMap: string;
  readonly text: string | undefined;
  readonly document?: BackendDocument | undefined;
  readonly error?: string | undefined;
}

/** Whether a ConfigMap is there to hold a document. */
export const isDocument = ({ metadata }: ConfigMap) => metadata.labels?.[label] === 'true';

/** The text of a document; undefined when there is none. */
export function textIn({ data }: ConfigMap): string | undefined {
  const text: unknown = data?.[dataKey];
  return typeof text === 'string' ? text : undefined;
}

/** Reads a ConfigMap. The document in it has to be the one that the name says. */
export function readFiled(configMap: ConfigMap): Filed {
  const { name } = configMap.metadata;
  const text = textIn(configMap);
  if (text === undefined) return { configMap: name, text, error: `no ${dataKey} key` };
  const read = parseDocument(text);
  if ('problem' in read) return { configMap: name, text, error: read.problem };
  const { kind } = read.document.spec;
  const expected = configMapName(kind);
  if (name !== expected) {
    return {
      configMap: name,
      text,
      error: `metadata.name: the ConfigMap of the ${kind} document is named ${expected}`,
    };
  }
  return { configMap: name, text, document: read.document };
}

/** The ConfigMap that holds a document. */
export function configMapOf(document: BackendDocument, namespace: string): ConfigMap & { readonly text: string } {
  const text = renderDocument(document);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: configMapName(document.spec.kind),
      namespace,
      labels: { [label]: 'true', [sourceLabel]: document.spec.source },
    },
    data: { [dataKey]: text },
    text,
  };
}

/** What `written` makes of the ConfigMap that is there: whatever else is in that stays. */
export function replaced(there: ConfigMap, written: ConfigMap): ConfigMap {
  const { labels } = written.metadata;
  return {
    ...there,
    metadata: { ...there.metadata, labels: { ...there.metadata.labels, ...labels } },
    data: { ...there.data, ...written.data },
  };
}
