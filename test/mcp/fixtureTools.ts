/** The tools that the conformance runner calls, behind the protocol part of the MCP face. */
import {
  type CallToolResult,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Tool,
} from '@modelcontextprotocol/server';
import { createProtocol } from '../../src/mcp/protocol.ts';

/** One transparent pixel, and a sound without a sample. */
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const silence = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';

type Content = CallToolResult['content'];
const text = (value: string): Content => [{ type: 'text', text: value }];
const image: Content = [{ type: 'image', data: pixel, mimeType: 'image/png' }];
const resource: Content = [
  { type: 'resource', resource: { uri: 'test://embedded', mimeType: 'text/plain', text: 'An embedded text.' } },
];

/** The runner knows these tools by their names and looks at what they answer. */
const results: Record<string, CallToolResult> = {
  test_simple_text: { content: text('This is a simple text response for testing.') },
  test_image_content: { content: image },
  test_audio_content: { content: [{ type: 'audio', data: silence, mimeType: 'audio/wav' }] },
  test_embedded_resource: { content: resource },
  test_multiple_content_types: { content: [...text('Multiple content types test:'), ...image, ...resource] },
  test_error_handling: { isError: true, content: text('This tool intentionally returns an error for testing') },
  json_schema_2020_12_tool: { content: text('It is listed for its schema.') },
  // Watched for messages they must not send beside their answer.
  test_logging_tool: { content: text('Nothing was logged to the client.') },
  test_streaming_elicitation: { content: text('Nothing was asked of the client.') },
};
const needsSampling = 'test_missing_capability';

/** Uses the keywords of JSON Schema 2020-12 that must reach the client. */
const manyKeywords: Tool['inputSchema'] = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'address',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

const tools: Tool[] = [...Object.keys(results), needsSampling].map(name => ({
  name,
  description: `Answers what the conformance runner expects of ${name}.`,
  inputSchema: name === 'json_schema_2020_12_tool' ? manyKeywords : { type: 'object' },
}));

export const fixtureProtocol = () =>
  createProtocol({
    info: { name: 'fixture', version: '1' },
    instructions: 'Made for the conformance runner.',
    tools,
    async callTool(name) {
      if (name === needsSampling) {
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
      }
      const result = results[name];
      if (!result) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `no tool ${name}`);
      return result;
    },
  });
