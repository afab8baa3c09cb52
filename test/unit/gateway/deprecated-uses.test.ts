import assert from 'node:assert/strict';
import { DEFAULT_TIME_LIMITS } from '../../../contracts/time-limits.ts';
import type { Deprecation, Operation } from '../../../lib/operation.ts';
import type { Exchange } from '../../../services/gateway/edge/exchange.ts';
import { DeprecatedUses } from '../../../services/gateway/pipeline/deprecated-uses.ts';
import type { Route } from '../../../services/gateway/pipeline/router.ts';

const HOUR_MS = 3_600_000;
const deprecated: Deprecation = { since: '2026-01-01', sunset: '2027-01-01', replacement: null, documentation: 'x' };
const startedAt = Date.parse('2026-06-01T12:00:00Z');

type Answered = Pick<Exchange, 'routeIfKnown' | 'session' | 'startedAt'>;

const routeOf = (operation: Operation): Route => ({
  operation,
  timeLimits: DEFAULT_TIME_LIMITS,
  parameterNames: [],
  pathParameters: [],
  reads: { ifMatch: false, expectedRevision: false },
  checks: null,
  checkedBy: null,
});

function answered(
  operationId: string,
  clientId: string | null,
  more: Partial<Answered> = {},
  of = deprecated,
): Answered {
  const operation = { operationId, deprecated: of } as Operation;
  const session = clientId === null ? null : ({ tenantId: 'tenant', clientId } as Exchange['session']);
  return { routeIfKnown: routeOf(operation), session, startedAt, ...more };
}

describe('the use of deprecated operations', () => {
  let now: number;
  let written: [clientId: string, requests: number][];
  let firsts: string[];
  let uses: DeprecatedUses;

  beforeEach(() => {
    now = 0;
    written = [];
    firsts = [];
    uses = new DeprecatedUses(
      {
        add: async (batch) => {
          written.push(...batch.map(({ clientId, requests }): [string, number] => [clientId, requests]));
        },
        firstOfDay: ({ clientId }) => firsts.push(clientId),
      },
      () => now,
    );
  });

  it('is written soon after the first call of a client, then hourly', () => {
    uses.note(answered('old', 'a'));
    uses.note(answered('old', 'a'));
    uses.sweep();
    assert.deepEqual(written, [['a', 2]]);
    for (let n = 0; n < 5; n++) uses.note(answered('old', 'a'));
    uses.note(answered('old', 'b'));
    uses.sweep();
    assert.deepEqual(written.slice(1), [['b', 1]]);
    now += HOUR_MS;
    uses.sweep();
    uses.sweep();
    assert.deepEqual(written.slice(2), [['a', 5]]);
    assert.deepEqual(firsts, ['a', 'b']);
  });

  it('reports a client once a day', () => {
    uses.note(answered('old', 'a'));
    uses.sweep();
    uses.note(answered('old', 'a'));
    uses.note(answered('old', 'a', { startedAt: startedAt + 24 * HOUR_MS }));
    assert.deepEqual(firsts, ['a', 'a']);
  });

  it('writes the rest when the gateway stops, and only deprecated operations of known clients', async () => {
    uses.note(answered('old', 'a'));
    uses.sweep();
    uses.note(answered('old', 'a'));
    uses.note(answered('old', null));
    uses.note({ ...answered('old', 'c'), routeIfKnown: null });
    uses.note({
      ...answered('new', 'd'),
      routeIfKnown: routeOf({ operationId: 'new' } as Operation),
    });
    await uses.close();
    assert.deepEqual(written, [
      ['a', 1],
      ['a', 1],
    ]);
  });

  it('keeps a bounded number of clients', async () => {
    for (let n = 0; n < 10_100; n++) uses.note(answered('old', `client-${n}`));
    await uses.close();
    assert.equal(written.length, 10_000);
  });
});
