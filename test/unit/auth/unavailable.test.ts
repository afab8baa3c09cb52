/** Which failures auth answers with 503: the same that every other service does. */
import assert from 'node:assert/strict';
import { Errors } from 'moleculer';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { CallUndelivered } from '../../../mixins/bus/takeover.ts';
import { isUnavailable } from '../../../services/auth/unavailable.ts';

describe('a failure of auth is answered with 503', () => {
  const data = { action: 'metadata.tenants.get', nodeID: 'other' };
  for (const error of [
    new Errors.ServiceNotFoundError(data),
    new Errors.ServiceNotAvailableError(data),
    new CallUndelivered(data),
    new Errors.RequestTimeoutError(data),
    new Errors.RequestRejectedError(data),
    new Errors.QueueIsFullError({ ...data, size: 1, limit: 1 }),
    new Errors.RequestSkippedError(data),
    new PlatformError('SERVICE_UNAVAILABLE', 'Away.'),
  ])
    it(`when it is ${error.name}`, () => assert.equal(isUnavailable(error), true));

  it('and no other', () => {
    for (const error of [new TypeError('x'), new PlatformError('INTERNAL_ERROR', 'x'), null])
      assert.equal(isUnavailable(error), false);
  });
});
