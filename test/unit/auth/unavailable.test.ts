/** Which failures auth answers with 503: the same that every other service does. */
import assert from 'node:assert/strict';
import { Errors } from 'moleculer';
import type { HttpRequest } from '../../../contracts/auth.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { CallUndelivered } from '../../../mixins/bus/takeover.ts';
import { unavailableReply } from '../../../services/auth/reply.ts';
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

describe('the response of auth while it is unavailable', () => {
  const answered = (accept?: string) =>
    unavailableReply({ headers: accept === undefined ? {} : { accept } } as unknown as HttpRequest);

  it('is an OAuth error for programs and a page for browsers, both with Retry-After', () => {
    for (const accept of [undefined, '*/*', 'application/json']) {
      const { status, headers, body } = answered(accept);
      assert.deepEqual([status, headers['retry-after']], [503, '1']);
      assert.equal(JSON.parse(Buffer.from(body).toString()).error, 'temporarily_unavailable');
    }
    const { status, headers, body } = answered('text/html,application/xhtml+xml,*/*;q=0.8');
    assert.deepEqual([status, headers['retry-after']], [503, '1']);
    assert.match(Buffer.from(body).toString(), /^<!doctype html>/);
  });
});
