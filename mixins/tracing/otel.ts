/**
 * Traces by the SDK of OpenTelemetry, sent by OTLP over HTTP. Imported only where tracing is on. The queue is bounded:
 * while the collector is away spans are dropped and counted, and the log says so once.
 */
import { type Context, createContextKey, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  RandomIdGenerator,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { TracingConfig } from '../../config/tracing.ts';
import { platformTimeNow } from '../../lib/values/clock.ts';
import { formatTraceparent, parseTraceparent, SAMPLED } from '../../lib/values/traceparent.ts';
import { endsBefore } from '../ends-before.ts';
import type { Metrics, Sample } from '../metrics/metrics.ts';
import { Outage } from '../outage.ts';
import type { Span, SpanStart, Tracing } from './tracing.ts';

export interface OtelOptions {
  readonly nodeId: string;
  readonly version: string;
  readonly metrics: Metrics;
  readonly warn: (message: string) => void;
}

const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT } as const;
const FROM_CALLER = createContextKey('the parent is what a caller has sent');
/** Of one span; ours have a handful. */
const ATTRIBUTES_MAX = 32;
const VALUE_MAX_CHARS = 256;

/**
 * A root span is sampled by the operator's ratio; its children follow. A caller who names a
 * trace of its own does not decide that, neither by the flag nor by choosing an id that the share would keep.
 */
function samplerOf({ ratio, believesCallers }: TracingConfig): Sampler {
  const share = new TraceIdRatioBasedSampler(ratio);
  const ids = new RandomIdGenerator();
  return {
    shouldSample(context, traceId) {
      const parent = trace.getSpanContext(context);
      if (!parent) return share.shouldSample(context, traceId);
      if (context.getValue(FROM_CALLER) === true && !believesCallers)
        return share.shouldSample(context, ids.generateTraceId());
      const isKept = (parent.traceFlags & SAMPLED) === SAMPLED;
      return { decision: isKept ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
    },
    toString: () => 'Share',
  };
}

/** Counts spans, bounds those that wait, and says when the collector is away. */
class Bounded implements SpanProcessor, SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #batches: BatchSpanProcessor;
  readonly #max: number;
  readonly #away: Outage;
  #waiting = 0;
  sent = 0;
  lost = 0;

  constructor(exporter: SpanExporter, { queue }: TracingConfig, warn: (message: string) => void) {
    this.#exporter = exporter;
    this.#max = queue.max;
    this.#batches = new BatchSpanProcessor({
      exporter: this,
      maxQueueSize: queue.max,
      maxExportBatchSize: queue.batch,
      scheduledDelayMillis: queue.delayMs,
    });
    this.#away = new Outage({
      began: (reason) => warn(`Traces cannot be sent, and are dropped until they can: ${reason}`),
      ended: (seconds) => warn(`Traces are sent again, after ${seconds} s.`),
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#waiting >= this.#max) {
      this.lost++;
      return;
    }
    this.#waiting++;
    this.#batches.onEnd(span);
  }

  export(spans: ReadableSpan[], done: Parameters<SpanExporter['export']>[1]): void {
    this.#exporter.export(spans, (result) => {
      this.#waiting -= spans.length;
      // 0: it succeeded.
      if (result.code === 0) {
        this.sent += spans.length;
        this.#away.end();
      } else {
        this.lost += spans.length;
        this.#away.begin(result.error?.message ?? 'no answer');
      }
      done(result);
    });
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  /** The provider ends the processor, which ends its exporter: both are this. */
  async shutdown(): Promise<void> {
    if (this.#isEnding) return this.#exporter.shutdown();
    this.#isEnding = true;
    await this.#batches.shutdown();
  }
  #isEnding = false;
}

/** Opens tracing as `config` says. */
export function startOtel(config: TracingConfig, { nodeId, version, metrics, warn }: OtelOptions): Tracing {
  const { url, headers, compression, timeoutMs, serviceName, attributes } = config;
  const exporter = new OTLPTraceExporter({
    url,
    headers: { ...headers },
    compression: compression as never,
    timeoutMillis: timeoutMs,
    concurrencyLimit: 4,
  });
  const bounded = new Bounded(exporter, config, warn);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      ...attributes,
      'service.name': serviceName,
      'service.version': version,
      'service.instance.id': nodeId,
      'telemetry.sdk.language': 'nodejs',
      'telemetry.sdk.name': 'opentelemetry',
    }),
    sampler: samplerOf(config),
    spanLimits: { attributeCountLimit: ATTRIBUTES_MAX, attributeValueLengthLimit: VALUE_MAX_CHARS },
    spanProcessors: [bounded],
  });
  metrics.counters('erp_trace_spans_total', 'Spans of traces, by what became of them.', ['outcome'], (): Sample[] => [
    [{ outcome: 'sent' }, bounded.sent],
    [{ outcome: 'lost' }, bounded.lost],
  ]);
  const tracer = provider.getTracer('erp', version);
  return {
    begin: (start) => begin(tracer, start),
    async stop(withinMs) {
      await endsBefore(
        provider.shutdown().catch(() => {}),
        performance.now() + withinMs,
      );
    },
  };
}

function begin(tracer: ReturnType<TracerProvider['getTracer']>, start: SpanStart): Span {
  const { name, kind, parent, isFromCaller, attributes, startedAt } = start;
  const now = performance.now();
  const began = startedAt ?? now;
  const startTime = platformTimeNow() - (now - began);
  const span = tracer.startSpan(
    name,
    { kind: KINDS[kind], startTime, ...(attributes ? { attributes } : {}) },
    contextOf(parent, isFromCaller),
  );
  const { traceId, spanId, traceFlags } = span.spanContext();
  return {
    traceparent: formatTraceparent({ traceId, spanId, flags: traceFlags & SAMPLED }),
    isRecorded: span.isRecording(),
    rename: (other) => void span.updateName(other),
    set: (more) => void span.setAttributes(more),
    end(failure = null) {
      if (failure !== null) span.setAttribute('error.type', failure).setStatus({ code: SpanStatusCode.ERROR });
      span.end(startTime + (performance.now() - began));
    },
  };
}

function contextOf(parent: string | undefined, isFromCaller = false): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, flags } = parseTraceparent(parent);
  const context = trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: flags, isRemote: true });
  return isFromCaller ? context.setValue(FROM_CALLER, true) : context;
}
