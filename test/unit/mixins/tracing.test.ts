import assert from 'node:assert/strict';
import { Metrics } from '../../../mixins/metrics/metrics.ts';
import { startOtel } from '../../../mixins/tracing/otel.ts';
import { describeStatement, traceStatement } from '../../../mixins/tracing/traced-statements.ts';
import { isKept, openTracing, type Span, type Tracing } from '../../../mixins/tracing/tracing.ts';
import { workOn } from '../../../mixins/watchdog/work.ts';
import { assertPrompt } from '../../support/processor.ts';

describe('the span of a statement', () => {
  for (const [text, operation, table] of [
    ['SELECT a FROM "t_1"."Account" a WHERE x = $1', 'SELECT', 't_1.Account'],
    ['INSERT INTO auth.grants (id) VALUES ($1)', 'INSERT', 'auth.grants'],
    ['update data.secrets SET a = 1', 'UPDATE', 'data.secrets'],
    ['WITH w AS (INSERT INTO "Account" VALUES ($1)) SELECT 1', 'WITH', 'Account'],
    ["SELECT 'from needle@example.com', 'it''s FROM needle' FROM \"Account\"", 'SELECT', 'Account'],
    ["SELECT 'FROM needle'", 'SELECT', null],
    ["SELECT 'FROM needle", 'SELECT', null],
    ['SELECT 1 FROM t_1._state s, t_1."Account" FROM t_1."Account"', 'SELECT', 't_1.Account'],
    ['SELECT version FROM t_1._state', 'SELECT', 't_1._state'],
    ['INSERT INTO a.b VALUES (1) ON CONFLICT (x) DO UPDATE SET y = 1', 'INSERT', 'a.b'],
    ['SELECT 1 FOR UPDATE OF x', 'SELECT', null],
    [
      'WITH state AS MATERIALIZED (SELECT 1 FROM t_1._state), w AS (INSERT INTO t_1."Account" SELECT 1 FROM state) SELECT 1',
      'WITH',
      't_1.Account',
    ],
    [
      'SELECT floor(extract(epoch FROM u."updatedAt")) FROM t_1._state s CROSS JOIN t_1."User" u WHERE a IS DISTINCT FROM b',
      'SELECT',
      't_1.User',
    ],
    ['SELECT substring(a FROM 2), trim(both FROM b) FROM c', 'SELECT', 'c'],
    ['COMMIT', 'COMMIT', null],
    ['', 'SQL', null],
    ['DELETE FROM ONLY x', 'DELETE', 'x'],
  ] as const)
    it(`names operation and table, without literals: ${text}`, () => {
      assert.deepEqual(describeStatement(text), { operation, table });
    });

  it('is derived from any text in linear time', () => {
    for (const text of [
      `SELECT ${"'".repeat(100_001)}`,
      `SELECT ${'FROM "'.repeat(50_000)}`,
      `FROM ${'a'.repeat(100_000)}`,
      'extract('.repeat(10_000),
    ]) {
      assertPrompt(text.slice(0, 20), () => describeStatement(text));
    }
  });
});

describe('sampling of requests', () => {
  const CALLERS = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-';
  /** By its id the sampler would keep it at any share. */
  const CHOSEN = '00-00000000000000000000000000000001-00f067aa0ba902b7-01';
  const open = (ratio: number, believesCallers = false): Tracing =>
    startOtel(
      {
        url: 'http://127.0.0.1:9/v1/traces',
        headers: {},
        compression: 'none',
        timeoutMs: 100,
        serviceName: 'test',
        attributes: {},
        ratio,
        believesCallers,
        queue: { max: 10, batch: 10, delayMs: 60_000 },
      },
      { nodeId: 'test', version: '0', metrics: new Metrics(), warn: () => {} },
    );
  const begin = (tracing: Tracing, parent?: string): Span =>
    tracing.begin({ name: 'x', kind: 'server', ...(parent ? { parent, isFromCaller: true } : {}) });

  it('follows the operator’s setting, ignoring flag and id of the caller', () => {
    for (const parent of [`${CALLERS}00`, `${CALLERS}01`, CHOSEN]) {
      assert.equal(isKept(begin(open(1), parent).traceparent), true);
      assert.equal(isKept(begin(open(0), parent).traceparent), false);
    }
    const some = open(0.1);
    const kept = Array.from({ length: 2_000 }, () => begin(some, CHOSEN)).filter(({ isRecorded }) => isRecorded).length;
    assert.ok(kept > 100 && kept < 320, `${kept} of 2000`);
  });

  it('follows the caller’s flag when a trusted proxy sets it', () => {
    assert.equal(isKept(begin(open(0, true), `${CALLERS}01`).traceparent), true);
    assert.equal(isKept(begin(open(1, true), `${CALLERS}00`).traceparent), false);
  });

  it('keeps the caller’s trace id and is the same in every span', () => {
    const tracing = open(1);
    const span = begin(tracing, `${CALLERS}00`);
    assert.equal(span.traceparent.slice(0, 36), CALLERS.slice(0, 36));
    assert.notEqual(span.traceparent.slice(36, 52), CALLERS.slice(36, 52));
    const part = tracing.begin({ name: 'y', kind: 'internal', parent: span.traceparent });
    assert.equal(part.traceparent.slice(0, 36), CALLERS.slice(0, 36));
    assert.equal(isKept(part.traceparent), true);
  });

  it('limits the queue while there is no collector', async () => {
    const metrics = new Metrics();
    const tracing = startOtel(
      {
        url: 'http://127.0.0.1:9/v1/traces',
        headers: {},
        compression: 'none',
        timeoutMs: 100,
        serviceName: 'test',
        attributes: {},
        ratio: 1,
        believesCallers: false,
        queue: { max: 10, batch: 10, delayMs: 60_000 },
      },
      { nodeId: 'test', version: '0', metrics, warn: () => {} },
    );
    for (let n = 0; n < 1_000; n++) begin(tracing).end();
    assert.match(await metrics.text(), /erp_trace_spans_total\{outcome="lost"\} 9\d\d/);
    const began = performance.now();
    await tracing.stop(300);
    assert.ok(performance.now() - began < 10_000);
  });
});

describe('without tracing', () => {
  it('a statement is sent unchanged', async () => {
    openTracing(null);
    const answer = Promise.resolve(1);
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    assert.equal(
      workOn({ label: 'x', requestId: null, traceparent }, () => traceStatement('SELECT 1', () => answer)),
      answer,
    );
  });
});
