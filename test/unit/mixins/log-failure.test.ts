import assert from 'node:assert/strict';
import { Errors } from 'moleculer';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { logFailure, warnOf } from '../../../mixins/log-failure.ts';
import { serviceUnavailable } from '../../../mixins/service-unavailable.ts';

describe('the log entry of a failed request', () => {
  const logged = (work: (log: Parameters<typeof logFailure>[0]) => void): [level: string, fields: object][] => {
    const lines: [string, object][] = [];
    const at = (level: string) => (fields: object) => lines.push([level, fields]);
    work({ info: at('info'), warn: at('warn'), error: at('error') } as never);
    return lines;
  };
  const failed = (code: string, message: string): Error => Object.assign(new Error(message), { code });

  for (const [kind, error] of Object.entries({
    readOnly: failed('25006', 'cannot execute UPDATE in a read-only transaction'),
    unreachable: failed('ECONNREFUSED', 'connect ECONNREFUSED'),
    service: new Errors.ServiceNotAvailableError({ action: 'metadata.snapshots.get', nodeID: 'a' }),
  }))
    it(`is one short line per second during an outage: ${kind}`, () => {
      const lines = logged((log) => {
        for (let n = 0; n < 100; n++) logFailure(log, 'records.list', `req_${n}`, error);
        warnOf(log, error, 'A round failed.');
        logFailure(log, 'records.list', 'req_wrapped', serviceUnavailable(error));
      });
      assert.deepEqual(lines, [['warn', { requestId: 'req_0', reason: error.message, outage: kind }]]);
    });

  it('names the cause of what a job cannot do at the moment', () => {
    const error = new PlatformError('SERVICE_UNAVAILABLE', 'The store does not answer. Try again.', {
      cause: failed('SlowDown', 'Please reduce your request rate.'),
    });
    const lines = logged((log) => warnOf(log, error, 'A job of bulk.work failed; it is tried again.'));
    assert.deepEqual(lines, [['warn', { reason: 'Please reduce your request rate.', outage: 'service' }]]);
  });

  it('contains the stack of an unexpected error, each time', () => {
    const bug = new TypeError('x is not a function');
    const lines = logged((log) => {
      for (const requestId of ['req_1', 'req_2']) logFailure(log, 'records.list', requestId, bug);
      warnOf(log, bug, 'A round failed.');
    });
    assert.deepEqual(lines, [
      ['error', { err: bug, requestId: 'req_1' }],
      ['error', { err: bug, requestId: 'req_2' }],
      ['warn', { err: bug }],
    ]);
  });

  it('contains the statement that timed out; transient failures are at level info', () => {
    const late = failed('57014', 'canceling statement due to statement timeout');
    const locked = new PlatformError('STATE_CONFLICT', 'Locked.', { cause: failed('55P03', 'lock') });
    const lines = logged((log) => {
      for (const error of [late, late, locked]) logFailure(log, 'records.list', 'req_1', error);
    });
    assert.deepEqual(
      lines.map(([level]) => level),
      ['warn', 'warn', 'info'],
    );
  });

  it('is absent for intended error responses', () => {
    const lines = logged((log) =>
      logFailure(log, 'records.get', 'req_1', new PlatformError('RECORD_NOT_FOUND', 'No.')),
    );
    assert.deepEqual(lines, []);
  });
});
