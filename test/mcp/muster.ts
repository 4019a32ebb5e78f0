/** A client that speaks on the wire as muster does: the handshake of 2024-11-05, no session of its own, one POST a call. */
import assert from 'node:assert/strict';

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
export type Json = any;

export interface Reply {
  readonly result?: Json;
  readonly error?: { readonly code: number; readonly message: string };
}

export interface ToolReply {
  readonly isError: boolean;
  readonly text: string;
  /** The text as JSON; undefined when it is a refusal. */
  readonly data: Json;
  /** The first word of a refusal. */
  readonly code: string | undefined;
  readonly structuredContent: Json;
}

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** One POST of a JSON-RPC message, read as strictly as muster reads it. */
export async function post(url: string, message: object, { headers, signal }: PostOptions = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify(message),
    ...(signal && { signal }),
  });
  const text = await response.text();
  if (response.status === 202) return { response, reply: {} as Reply };
  assert.equal(response.headers.get('content-type'), 'application/json');
  const reply = JSON.parse(text);
  if ('id' in message && response.ok) assert.equal(reply.id, message.id, 'the answer carries the id of its request');
  return { response, reply: reply as Reply };
}

let lastId = 0;

/** One request, outside of any handshake. */
export async function request(url: string, method: string, params: object = {}, options: PostOptions = {}) {
  const { response, reply } = await post(url, { jsonrpc: '2.0', id: ++lastId, method, params }, options);
  return { status: response.status, headers: response.headers, ...reply };
}

export async function callTool(url: string, name: string, args: unknown = {}, options: PostOptions = {}) {
  const { result, error } = await request(url, 'tools/call', { name, arguments: args }, options);
  assert.equal(error, undefined, JSON.stringify(error));
  return toolReply(result);
}

/** A result as the portal takes it apart behind muster. */
export function toolReply(result: Json): ToolReply {
  const [block, second] = result.content;
  assert.equal(second, undefined, 'one block');
  assert.equal(block.type, 'text');
  const isError = result.isError === true;
  return {
    isError,
    text: block.text,
    data: isError ? undefined : JSON.parse(block.text),
    code: isError ? /^([a-z_]+):\s/.exec(block.text)?.[1] : undefined,
    structuredContent: result.structuredContent,
  };
}

/** Connects as muster's aggregator does. `urlOf` is asked anew for every request. */
export async function connectMuster(urlOf: () => string, protocolVersion = '2024-11-05') {
  const handshake = await request(urlOf(), 'initialize', {
    protocolVersion,
    capabilities: {},
    clientInfo: { name: 'muster-aggregator', version: '1.0.0' },
  });
  assert.equal(handshake.status, 200, 'anything else is the end of the registration');
  const session = handshake.headers.get('mcp-session-id');
  const headers: Record<string, string> = { 'mcp-protocol-version': handshake.result.protocolVersion };
  if (session) headers['mcp-session-id'] = session;

  const noted = await post(urlOf(), { jsonrpc: '2.0', method: 'notifications/initialized' }, { headers });
  assert.ok([200, 202, 204].includes(noted.response.status));

  const tools: Json[] = [];
  let cursor: string | undefined;
  do {
    const { result } = await request(urlOf(), 'tools/list', cursor ? { cursor } : {}, { headers });
    tools.push(...result.tools);
    cursor = result.nextCursor;
  } while (cursor);
  for (const method of ['resources/list', 'prompts/list']) {
    const { error } = await request(urlOf(), method, {}, { headers });
    assert.equal(error?.code, -32601, `${method} is not offered`);
  }
  const listening = await fetch(urlOf(), { headers: { ...headers, accept: 'text/event-stream' } });
  await listening.body?.cancel();

  return {
    initialize: handshake.result,
    session,
    tools,
    /** 405 makes it stop listening and go on working; anything but that and 200 is retried every second. */
    listenStatus: listening.status,
    call: (name: string, args?: unknown) => callTool(urlOf(), name, args, { headers }),
    ping: async () => (await request(urlOf(), 'ping', {}, { headers })).result,
  };
}
