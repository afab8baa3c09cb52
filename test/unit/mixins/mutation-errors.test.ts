import assert from 'node:assert/strict';
import { Errors } from 'moleculer';
import { platformErrorOf } from '../../../mixins/mutation/errors.ts';

describe('a mutation that calls another service', () => {
  it('is answered 503 when that service is not running or does not answer in time', () => {
    for (const error of [
      new Errors.ServiceNotFoundError({ action: 'data.users.get' }),
      new Errors.ServiceNotAvailableError({ action: 'data.users.get', nodeID: 'data-1' }),
      new Errors.RequestTimeoutError({ action: 'data.users.get', nodeID: 'data-1' }),
    ]) {
      const { code, retryAfterSeconds } = platformErrorOf(error, undefined);
      assert.deepEqual([error.name, code, retryAfterSeconds], [error.name, 'SERVICE_UNAVAILABLE', 1]);
    }
    assert.equal(platformErrorOf(new TypeError('x is not a function'), undefined).code, 'INTERNAL_ERROR');
  });
});
