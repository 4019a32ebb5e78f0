/** What stands in a field: a text, bytes as base64, a map of one of them, or a message of its own. */
type Type = 'text' | 'bytes' | { readonly values: 'text' | 'bytes' } | { readonly message: Message };

/** Names and types of fields, by number; the others are left out. */
type Message = Readonly<Record<number, readonly [name: string, type: Type]>>;

const texts = { values: 'text' } as const;
const named = (...names: readonly string[]): Message =>
  Object.fromEntries(names.map((name, index) => [index + 1, [name, 'text'] as const]));

const metadata: Message = {
  1: ['name', 'text'],
  2: ['generateName', 'text'],
  3: ['namespace', 'text'],
  11: ['labels', texts],
  12: ['annotations', texts],
};
const ofMetadata = ['metadata', { message: metadata }] as const;
const attributes = named('namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name');
const asked: Message = {
  1: ['resourceAttributes', { message: attributes }],
  2: ['nonResourceAttributes', { message: named('path', 'verb') }],
};

/** What `kubectl` and `helm` write in this form: their own questions, and what they make of arguments rather than of a file. */
const messages: Readonly<Record<string, Message>> = {
  'v1 ConfigMap': { 1: ofMetadata, 2: ['data', texts], 3: ['binaryData', { values: 'bytes' }] },
  'v1 Namespace': { 1: ofMetadata },
  'v1 Secret': { 1: ofMetadata, 2: ['data', { values: 'bytes' }], 3: ['type', 'text'], 4: ['stringData', texts] },
  // Helm gives none of those that are numbers.
  'v1 DeleteOptions': {
    2: ['preconditions', { message: named('uid', 'resourceVersion') }],
    4: ['propagationPolicy', 'text'],
  },
  'authorization.k8s.io/v1 SelfSubjectAccessReview': { 1: ofMetadata, 2: ['spec', { message: asked }] },
};

const envelope: Message = { 1: ['typeMeta', { message: named('apiVersion', 'kind') }], 2: ['raw', 'bytes'] };
const magic = 'k8s\0';

export const protobufType = 'application/vnd.kubernetes.protobuf';

/** The object in a body; undefined for a kind that is not known in this form, and for what is no such body. */
export function fromProtobuf(body: Buffer): object | undefined {
  if (body.toString('latin1', 0, magic.length) !== magic) return undefined;
  const { typeMeta, raw } = decode(body.subarray(magic.length), envelope) as {
    readonly typeMeta?: { readonly apiVersion?: string; readonly kind?: string };
    readonly raw?: string;
  };
  const message = messages[`${typeMeta?.apiVersion} ${typeMeta?.kind}`];
  return message && { ...typeMeta, ...decode(Buffer.from(raw ?? '', 'base64'), message) };
}

function decode(bytes: Buffer, message: Message): Readonly<Record<string, unknown>> {
  const result: Record<string, unknown> = {};
  for (const [number, content] of fieldsOf(bytes)) {
    const [name, type] = message[number] ?? [];
    if (name === undefined || type === undefined) continue;
    if (typeof type === 'string') {
      // An absent text is written as an empty one.
      if (content.byteLength > 0) result[name] = contentOf(content, type);
    } else if ('message' in type) result[name] = decode(content, type.message);
    else result[name] = { ...(result[name] as object), ...entryOf(content, type.values) };
  }
  return result;
}

const contentOf = (content: Buffer, type: 'text' | 'bytes') => content.toString(type === 'text' ? 'utf8' : 'base64');

function entryOf(content: Buffer, type: 'text' | 'bytes'): Readonly<Record<string, string>> {
  const parts = new Map(fieldsOf(content));
  const none = Buffer.alloc(0);
  return { [contentOf(parts.get(1) ?? none, 'text')]: contentOf(parts.get(2) ?? none, type) };
}

/** The fields that have a length, by number; numbers are passed over. */
function fieldsOf(bytes: Buffer): readonly (readonly [number: number, content: Buffer])[] {
  const fields: (readonly [number, Buffer])[] = [];
  let at = 0;
  const integer = () => {
    let value = 0;
    for (let shift = 1; at < bytes.byteLength; shift *= 128) {
      const byte = bytes[at++] as number;
      value += (byte & 127) * shift;
      if (byte < 128) break;
    }
    return value;
  };
  while (at < bytes.byteLength) {
    const key = integer();
    const wire = key % 8;
    if (wire === 0) integer();
    else if (wire === 1) at += 8;
    else if (wire === 5) at += 4;
    else if (wire === 2) {
      const length = integer();
      fields.push([Math.floor(key / 8), bytes.subarray(at, at + length)]);
      at += length;
    } else return fields;
  }
  return fields;
}
