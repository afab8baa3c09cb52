/** A gateway may ask this process before this process has heard of the gateway: its calls wait for that, and no longer. */
import assert from 'node:assert/strict';
import { Errors } from 'moleculer';
import { onceKnown } from '../../../services/mcp/once-known.ts';

describe('a call of a gateway that has just started', () => {
  const unknown = (): Error =>
    new Errors.ServiceNotFoundError({ action: 'gateway.operations.run', nodeID: 'gateway-1' });

  it('is made once the gateway is discovered', async () => {
    let calls = 0;
    const result = await onceKnown(async () => {
      if (++calls < 4) throw unknown();
      return 'done';
    });
    assert.deepEqual([result, calls], ['done', 4]);
  });

  it('fails at once for every other reason', async () => {
    let calls = 0;
    const lost = new Errors.RequestRejectedError({ action: 'gateway.operations.run', nodeID: 'gateway-1' });
    await assert.rejects(
      onceKnown(() => {
        calls++;
        return Promise.reject(lost);
      }),
      lost,
    );
    assert.equal(calls, 1);
  });

  it('fails when the gateway is not discovered', async function () {
    this.timeout(10_000);
    await assert.rejects(
      onceKnown(() => Promise.reject(unknown())),
      /gateway\.operations\.run/,
    );
  });
});
