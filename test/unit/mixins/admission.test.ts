import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { Admission, PLATFORM, WAITING_MAX } from '../../../mixins/database/admission.ts';

const refused = (code: string) => (error: unknown) => error instanceof PlatformError && error.code === code;

describe('The connections of a pool', () => {
  it('go to one tenant up to its cap, and to another one at once', () => {
    const admission = new Admission({ size: 10, perTenant: 5 });
    const [flood, other] = [admission.tenant('flood'), admission.tenant('other')];
    for (let n = 0; n < 5; n++) assert.equal(admission.enter(flood), undefined);
    const sixth = admission.enter(flood);
    assert.ok(sixth instanceof Promise);
    sixth.catch(() => {});
    assert.equal(admission.enter(other), undefined);
    admission.leave(flood);
    assert.equal(admission.waiting, 0, 'its place went to the one that waited');
    assert.equal(admission.held, 6);
  });

  it('are kept for the work of the platform, however many tenants want them', () => {
    const admission = new Admission({ size: 10, perTenant: 5 });
    const taken = Array.from({ length: 20 }, (_, n) => admission.enter(admission.tenant(`tenant ${n}`)));
    assert.equal(taken.filter((waiting) => waiting === undefined).length, 8);
    for (const waiting of taken) waiting?.catch(() => {});
    assert.equal(admission.enter(PLATFORM), undefined);
    assert.equal(admission.enter(admission.shared('svc_auth tenant 1')), undefined);
  });

  it('are given in turn to the tenants that wait, not to the one that asks most', async () => {
    const admission = new Admission({ size: 2, perTenant: 1 });
    const [flood, other, third] = ['flood', 'other', 'third'].map((key) => admission.tenant(key));
    const served: string[] = [];
    const wait = (holder = flood!): void => {
      const waiting = admission.enter(holder);
      assert.ok(waiting);
      void waiting.then(() => {
        served.push(holder.key);
        admission.leave(holder);
      });
    };
    admission.enter(flood!);
    for (let n = 0; n < 50; n++) wait();
    wait(other);
    wait(third);
    wait(other);
    admission.leave(flood!);
    await pause(5);
    assert.deepEqual(served.slice(0, 5), ['flood', 'other', 'third', 'flood', 'other']);
    assert.equal(served.length, 53);
    assert.equal(admission.held, 0);
    assert.equal(admission.waiting, 0);
  });

  it('are waited for within bounds: a tenant over its cap is told so, and leaves nothing behind', async () => {
    const admission = new Admission({ size: 4, perTenant: 1 });
    const flood = admission.tenant('flood');
    admission.enter(flood);
    const waiting = Array.from({ length: WAITING_MAX }, () => admission.enter(flood, 20));
    await assert.rejects(async () => admission.enter(flood), refused('CONCURRENCY_LIMIT_EXCEEDED'));
    for (const one of waiting) await assert.rejects(async () => one, refused('CONCURRENCY_LIMIT_EXCEEDED'));
    assert.equal(admission.waiting, 0);
    admission.leave(flood);
    assert.equal(admission.held, 0);
    assert.equal(admission.enter(flood), undefined);
  });

  it('that all are in use answer 503, to whoever is not over a cap', async () => {
    const admission = new Admission({ size: 1, perTenant: 1 });
    admission.enter(PLATFORM);
    await assert.rejects(async () => admission.enter(admission.tenant('other'), 5), refused('SERVICE_UNAVAILABLE'));
  });

  it('are all used by a pool of one', () => {
    const admission = new Admission({ size: 1, perTenant: 1 });
    assert.equal(admission.enter(admission.tenant('one')), undefined);
    admission.leave(admission.tenant('one'));
    assert.equal(admission.enter(PLATFORM), undefined);
  });
});
