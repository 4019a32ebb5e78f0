import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wantsTraces } from '../../src/config/traces.ts';

const endpoint = 'http://collector:4318';

test('traces are wanted when an exporter or an endpoint is named and nothing says otherwise', () => {
  const table: [Record<string, string>, boolean][] = [
    [{}, false],
    [{ OTEL_SERVICE_NAME: 'x' }, false],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, true],
    [{ OTEL_TRACES_EXPORTER: 'none' }, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }, false],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${endpoint}/v1/traces` }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: 'none' }, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'True' }, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'false' }, true],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, true],
  ];
  for (const [env, value] of table) assert.deepEqual(wantsTraces(env), { value }, JSON.stringify(env));
});

test('what is wanted and not there is a problem that names the variable, its value and the way out', () => {
  const table: [Record<string, string>, RegExp][] = [
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /^OTEL_TRACES_EXPORTER="zipkin" is not known here; it is otlp or none$/],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      /^OTEL_EXPORTER_OTLP_PROTOCOL="grpc" is not known here; set it to http\/json, .* 4318$/,
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' },
      /^OTEL_EXPORTER_OTLP_ENDPOINT is no http:\/\/ or https:\/\/ address; give one such as http:\/\/collector:4318$/,
    ],
  ];
  for (const [env, words] of table) {
    const { problem } = wantsTraces(env) as { problem: string };
    assert.match(problem, words);
  }
});
