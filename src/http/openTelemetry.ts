/**
 * Spans by the SDK of OpenTelemetry. This alone imports it, and is imported only where somebody wants traces. The SDK reads the
 * rest of its standard variables by itself: where to send, how many at once, what to sample, and the name of the service.
 */
import {
  type Context,
  DiagLogLevel,
  diag,
  isSpanContextValid,
  type Link,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import type { Logger } from 'pino';
import type { Span } from '../call.ts';
import { messageOf } from '../errors.ts';
import type { Traces } from './traces.ts';

/** What is not sent when the process stops has this long, in milliseconds. */
const flushMs = 4_000;

const kinds = { server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;

/** Begins to send spans. What cannot be sent is a warning, the same one once until it is another. */
export function createTraces(version: string, log: Logger): Traces {
  reportTo(log);
  const named = resourceFromAttributes({ 'service.name': 'model-manager', 'service.version': version });
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(named)
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer = provider.getTracer('model-manager', version);
  return {
    root: traceparent => spanIn(tracer, contextOf(traceparent) ?? ROOT_CONTEXT, undefined),
    async stop() {
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => late.reject(new Error(`not within ${flushMs / 1000} s`)), flushMs);
      try {
        await Promise.race([provider.shutdown(), late.promise]);
      } catch (error) {
        log.warn({ error: messageOf(error) }, 'the last spans could not be sent');
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** A span as the house knows it; without `own` the place where a trace goes on or begins. */
function spanIn(tracer: Tracer, context: Context, own: OtelSpan | undefined): Span {
  return {
    traceId: own?.spanContext().traceId,
    begin({ name, kind, facts = {}, parent, startedAt: startTime }) {
      const other = contextOf(parent);
      const links: Link[] = other && own ? [{ context: own.spanContext() }] : [];
      const within = other ?? context;
      const span = tracer.startSpan(name, { kind: kinds[kind], attributes: facts, links, startTime }, within);
      return spanIn(tracer, trace.setSpan(within, span), span);
    },
    end(facts = {}, failure) {
      own?.setAttributes(facts);
      if (failure !== undefined) own?.setAttribute('error.type', failure).setStatus({ code: SpanStatusCode.ERROR });
      own?.end();
    },
  };
}

/** As W3C Trace Context has it: version, trace, span, flags; more only in versions to come. */
const traceparentPattern = /^(?!ff)([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** The place that a `traceparent` names; undefined when it names none. */
function contextOf(traceparent: unknown): Context | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] =
    (typeof traceparent === 'string' && traceparentPattern.exec(traceparent)) || [];
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
  if ((version === '00' && more !== undefined) || !isSpanContextValid(parent)) return undefined;
  return trace.setSpanContext(ROOT_CONTEXT, parent);
}

/** What the SDK says of itself goes to our log: that it cannot send, and which variable it does not take. */
function reportTo(log: Logger): void {
  let last = '';
  const say = (text: string) => {
    const message = wordsOf(text);
    if (message !== last) log.warn({ problem: message }, 'traces');
    last = message;
  };
  const quiet = () => {};
  const logger = { error: say, warn: say, info: quiet, debug: quiet, verbose: quiet };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** The SDK tells of errors as JSON with their stack. */
function wordsOf(text: string): string {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' ? message : text;
  } catch {
    return text;
  }
}
