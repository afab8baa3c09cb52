/**
 * The settings of tracing: the standard variables of OpenTelemetry, as far as this program has what they speak of.
 * Without an address of a collector nothing is traced. Source: docs/reference/tracing.md.
 */
import { ALL_SERVICES, type ServiceName } from './services.ts';

export interface TracingConfig {
  /** Complete URL to which spans are sent by OTLP over HTTP. */
  readonly url: string;
  /** Of each request to the collector; they may hold a token. */
  readonly headers: Readonly<Record<string, string>>;
  readonly compression: 'gzip' | 'none';
  readonly timeoutMs: number;
  /** `service.name`. */
  readonly serviceName: string;
  /** Other attributes of the resource. */
  readonly attributes: Readonly<Record<string, string>>;
  /** The share of requests that are traced, 0 to 1. */
  readonly ratio: number;
  /** The caller's sampling decision is kept. */
  readonly believesCallers: boolean;
  readonly queue: { readonly max: number; readonly batch: number; readonly delayMs: number };
}

type Environment = Readonly<Record<string, string | undefined>>;

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'] as const;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/;
const VALUE_MAX_CHARS = 4_096;
const BATCH = 512;

/** null: nothing is traced. Problems are collected; none repeats a value, which may be a secret. */
export function readTracing(
  env: Environment,
  services: readonly ServiceName[],
  problems: string[],
): TracingConfig | null {
  const exporter = env['OTEL_TRACES_EXPORTER'] || 'otlp';
  if (exporter !== 'otlp' && exporter !== 'none') problems.push('OTEL_TRACES_EXPORTER must be otlp or none.');
  const url = urlOf(env, problems);
  if (url === null || exporter === 'none' || env['OTEL_SDK_DISABLED']?.toLowerCase() === 'true') return null;
  const protocol = env['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL'] || env['OTEL_EXPORTER_OTLP_PROTOCOL'] || 'http/protobuf';
  if (protocol !== 'http/protobuf')
    problems.push('OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf: give the address of that receiver.');
  const compression = env['OTEL_EXPORTER_OTLP_TRACES_COMPRESSION'] || env['OTEL_EXPORTER_OTLP_COMPRESSION'] || 'none';
  if (compression !== 'gzip' && compression !== 'none')
    problems.push('OTEL_EXPORTER_OTLP_COMPRESSION must be gzip or none.');
  const whole = (name: string, text: string | undefined, fallback: number, min: number, max: number): number => {
    if (!text) return fallback;
    const value = Number(text);
    if (/^\d{1,9}$/.test(text) && value >= min && value <= max) return value;
    problems.push(`${name} must be a whole number from ${min} to ${max}.`);
    return fallback;
  };
  const timeout = env['OTEL_EXPORTER_OTLP_TRACES_TIMEOUT'] || env['OTEL_EXPORTER_OTLP_TIMEOUT'];
  const max = whole('OTEL_BSP_MAX_QUEUE_SIZE', env['OTEL_BSP_MAX_QUEUE_SIZE'], 2_048, 1, 100_000);
  const { 'service.name': named, ...attributes } = pairs(
    'OTEL_RESOURCE_ATTRIBUTES',
    env['OTEL_RESOURCE_ATTRIBUTES'],
    problems,
  );
  return {
    url,
    headers: {
      ...pairs('OTEL_EXPORTER_OTLP_HEADERS', env['OTEL_EXPORTER_OTLP_HEADERS'], problems, HEADER_NAME),
      ...pairs('OTEL_EXPORTER_OTLP_TRACES_HEADERS', env['OTEL_EXPORTER_OTLP_TRACES_HEADERS'], problems, HEADER_NAME),
    },
    compression: compression === 'gzip' ? 'gzip' : 'none',
    timeoutMs: whole('OTEL_EXPORTER_OTLP_TIMEOUT', timeout, 10_000, 1, 60_000),
    serviceName:
      env['OTEL_SERVICE_NAME'] ||
      named ||
      (services.length === ALL_SERVICES.length ? 'erp' : `erp-${services.join('-')}`),
    attributes,
    ratio: ratioOf(env, problems),
    believesCallers: env['TRACE_CALLERS'] === 'true',
    queue: {
      max,
      batch: whole(
        'OTEL_BSP_MAX_EXPORT_BATCH_SIZE',
        env['OTEL_BSP_MAX_EXPORT_BATCH_SIZE'],
        Math.min(BATCH, max),
        1,
        max,
      ),
      delayMs: whole('OTEL_BSP_SCHEDULE_DELAY', env['OTEL_BSP_SCHEDULE_DELAY'], 5_000, 1, 600_000),
    },
  };
}

function urlOf(env: Environment, problems: string[]): string | null {
  const whole = env['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
  const base = env['OTEL_EXPORTER_OTLP_ENDPOINT'];
  const text = whole || base;
  if (!text) return null;
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username !== '' || url.password !== '') {
    problems.push(
      `${whole ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' : 'OTEL_EXPORTER_OTLP_ENDPOINT'} must be an address that begins ` +
        'with http:// or https://; credentials stand in OTEL_EXPORTER_OTLP_HEADERS.',
    );
    return null;
  }
  return whole ? url.href : new URL('v1/traces', url.href.endsWith('/') ? url.href : `${url.href}/`).href;
}

/** `key=value` pairs with commas between them, percent-encoded, as in the header `baggage`. */
function pairs(
  name: string,
  text: string | undefined,
  problems: string[],
  keys = /^[^\s=,;]{1,200}$/,
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const part of (text ?? '').split(',')) {
    if (part.trim() === '') continue;
    const at = part.indexOf('=');
    const key = part.slice(0, Math.max(at, 0)).trim();
    const value = decoded(part.slice(at + 1).trim());
    const isPlain = value !== null && value.length <= VALUE_MAX_CHARS && !/\p{Cc}/u.test(value);
    if (at > 0 && keys.test(key) && isPlain) found[key] = value;
    else {
      problems.push(`${name} must be key=value pairs with commas between them, percent-encoded.`);
      return {};
    }
  }
  return found;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function ratioOf(env: Environment, problems: string[]): number {
  const name = (env['OTEL_TRACES_SAMPLER'] || 'parentbased_always_on').replace(/^parentbased_/, '');
  if (!SAMPLERS.some((sampler) => sampler === name)) {
    problems.push(`OTEL_TRACES_SAMPLER must be ${SAMPLERS.join(', ')} or one of them with parentbased_ before it.`);
    return 0;
  }
  if (name !== 'traceidratio') return name === 'always_on' ? 1 : 0;
  const text = env['OTEL_TRACES_SAMPLER_ARG'] || '1';
  const ratio = Number(text);
  if (/^\d{0,2}(?:\.\d{1,12})?$/.test(text) && ratio >= 0 && ratio <= 1) return ratio;
  problems.push('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1.');
  return 0;
}
