import type { Read } from './values.ts';

/** Variables by their names. */
type Env = Readonly<Record<string, string | undefined>>;

const endpoints = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'] as const;
const protocols = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'] as const;

/**
 * Whether traces are wanted: an exporter or an endpoint is named, and nothing says otherwise. A problem when they are wanted in a
 * way that there is not; the standard has such a variable warned of, not refused.
 */
export function wantsTraces(env: Env): Read<boolean> {
  const read = (name: string) => env[name]?.trim() ?? '';
  const given = (names: readonly string[]) => names.find(name => read(name) !== '');
  if (read('OTEL_SDK_DISABLED').toLowerCase() === 'true') return { value: false };
  const exporter = read('OTEL_TRACES_EXPORTER');
  const endpoint = given(endpoints);
  if (exporter === 'none' || (exporter === '' && endpoint === undefined)) return { value: false };
  if (exporter !== '' && exporter !== 'otlp') {
    return { problem: `OTEL_TRACES_EXPORTER=${JSON.stringify(exporter)} is not known here; it is otlp or none` };
  }
  const protocol = given(protocols);
  if (protocol !== undefined && !/^http\/(?:json|protobuf)$/.test(read(protocol))) {
    const advice = 'set it to http/json, and the endpoint to the HTTP port of the collector, usually 4318';
    return { problem: `${protocol}=${JSON.stringify(read(protocol))} is not known here; ${advice}` };
  }
  if (endpoint !== undefined && !/^https?:$/.test(URL.parse(read(endpoint))?.protocol ?? '')) {
    return { problem: `${endpoint} is no http:// or https:// address; give one such as http://collector:4318` };
  }
  return { value: true };
}
