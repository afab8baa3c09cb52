import assert from 'node:assert/strict';
import { readConfig } from '../../../config/env.ts';
import type { TracingConfig } from '../../../config/tracing.ts';

const ENDPOINT = 'http://collector:4318';

describe('the settings of tracing', () => {
  const read = (env: Record<string, string>): TracingConfig | null => readConfig(env).tracing;
  const on = (env: Record<string, string> = {}): TracingConfig =>
    read({ OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, ...env })!;

  it('disable tracing without an address or when switched off', () => {
    assert.equal(read({}), null);
    for (const off of [{ OTEL_SDK_DISABLED: 'TRUE' }, { OTEL_TRACES_EXPORTER: 'none' }])
      assert.equal(read({ OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, ...off }), null);
    assert.equal(readConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT }, { command: true }).tracing, null);
  });

  it('have the defaults of the standard', () => {
    assert.deepEqual(on(), {
      url: `${ENDPOINT}/v1/traces`,
      headers: {},
      compression: 'none',
      timeoutMs: 10_000,
      serviceName: 'erp',
      attributes: {},
      ratio: 1,
      believesCallers: false,
      queue: { max: 2_048, batch: 512, delayMs: 5_000 },
    });
  });

  it('name the process by its services, unless the operator does', () => {
    const some = { SERVICES: 'data,metadata', NATS_URL: 'nats://localhost' };
    assert.equal(on(some).serviceName, 'erp-data-metadata');
    const attributes = { OTEL_RESOURCE_ATTRIBUTES: 'service.name=shop,team=a%20b' };
    assert.deepEqual([on(attributes).serviceName, on(attributes).attributes], ['shop', { team: 'a b' }]);
    assert.equal(on({ ...attributes, OTEL_SERVICE_NAME: 'mine' }).serviceName, 'mine');
  });

  it('read address, headers and share', () => {
    assert.equal(on({ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://a.example/otlp' }).url, 'https://a.example/otlp/v1/traces');
    assert.equal(on({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://b.example/in' }).url, 'https://b.example/in');
    assert.deepEqual(on({ OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20abc, x-b=1' }).headers, {
      Authorization: 'Bearer abc',
      'x-b': '1',
    });
    for (const [sampler, argument, ratio] of [
      ['always_off', '', 0],
      ['parentbased_traceidratio', '0.25', 0.25],
      ['traceidratio', '.5', 0.5],
      ['traceidratio', '', 1],
    ] as const)
      assert.equal(on({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: argument }).ratio, ratio);
  });

  for (const [name, value] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:secret-word@collector'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'zip'],
    ['OTEL_EXPORTER_OTLP_TIMEOUT', '0'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'secret-word'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=secret-word%0d%0ax'],
    ['OTEL_RESOURCE_ATTRIBUTES', '=b'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_BSP_MAX_QUEUE_SIZE', 'many'],
  ] as const)
    it(`refuse ${name}=${value}, and repeat no value`, () => {
      assert.throws(
        () => on({ [name]: value }),
        ({ message }: Error) => message.startsWith(name) && !message.includes('secret-word'),
      );
    });

  it('refuse a share beyond 1', () => {
    for (const argument of ['1.5', '-1', 'x', '1e3'])
      assert.throws(
        () => on({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: argument }),
        /_SAMPLER_ARG/,
      );
  });
});
