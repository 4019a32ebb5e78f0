import { ApiError } from './reply.ts';

/** The fields that handlers read; others are ignored, as the server ignores them. */
export interface Fields {
  readonly model?: string;
  readonly name?: string;
  readonly prompt?: string;
  readonly stream?: boolean;
  readonly think?: unknown;
  readonly tools?: readonly unknown[];
  readonly messages?: readonly { readonly content?: string }[];
  readonly input?: unknown;
  readonly dimensions?: number;
  readonly keep_alive?: unknown;
  readonly options?: { readonly num_ctx?: number; readonly num_gpu?: number };
}

const types: Record<string, string> = {
  model: 'string',
  name: 'string',
  prompt: 'string',
  stream: 'bool',
  tools: '[]api.Tool',
  messages: '[]api.Message',
};

/** The fields of a body, whatever its content type said; refused in the words of Go's decoder. */
export function bind(raw: string, request: string): Fields {
  if (raw.trim() === '') throw new ApiError(400, 'missing request body');
  const value = parse(raw);
  if (goKind(value) !== 'object') {
    throw new ApiError(400, `json: cannot unmarshal ${goKind(value)} into Go value of type api.${request}`);
  }
  for (const [field, content] of Object.entries(value as object)) {
    const type = types[field];
    if (type === undefined || content === null) continue;
    const kind = goKind(content);
    if (kind === type || (kind === 'array' && type.startsWith('[]'))) continue;
    throw new ApiError(400, `json: cannot unmarshal ${kind} into Go struct field ${request}.${field} of type ${type}`);
  }
  return value as Fields;
}

function parse(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    const first = raw.trimStart().charAt(0);
    // Which character Go stumbles over further inside is not worth a parser.
    const message = '{["tfn-0123456789'.includes(first)
      ? 'unexpected EOF'
      : `invalid character '${first}' looking for beginning of value`;
    throw new ApiError(400, message);
  }
}

function goKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}
