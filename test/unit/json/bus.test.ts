import assert from 'node:assert/strict';
import { ServiceBroker } from 'moleculer';
import { brokerOptions } from '../../../config/broker.ts';
import { readConfig } from '../../../config/env.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { ExactNumber } from '../../../lib/json/exact-number.ts';

describe('The bus', () => {
  const sender = new ServiceBroker({
    ...brokerOptions(readConfig({ LOG_LEVEL: 'silent', NODE_ID: 'bus-sender' })),
    transporter: 'Fake',
    logger: false,
  });
  const receiver = new ServiceBroker({
    ...brokerOptions(readConfig({ LOG_LEVEL: 'silent', NODE_ID: 'bus-receiver' })),
    transporter: 'Fake',
    logger: false,
  });

  before(async () => {
    receiver.createService({
      name: 'echo',
      actions: {
        say: (ctx) => ({ said: ctx.params, exact: (ctx.params as { n: unknown }).n instanceof ExactNumber }),
        fail() {
          throw new PlatformError('ETAG_MISMATCH', 'It changed.', { details: { currentETag: '"2"' } });
        },
      },
    });
    await Promise.all([sender.start(), receiver.start()]);
    await sender.waitForServices('echo');
  });

  after(async () => {
    await Promise.all([sender.stop(), receiver.stop()]);
  });

  it('preserves numbers with more digits than a double in both directions', async () => {
    const n = new ExactNumber('12345678901234567890.123456789');
    const answer = (await sender.call('echo.say', { n, list: [n, 1.5], text: '1' })) as {
      said: { n: ExactNumber; list: unknown[]; text: string };
      exact: boolean;
    };
    assert.equal(answer.exact, true);
    assert.ok(answer.said.n instanceof ExactNumber);
    assert.equal(answer.said.n.text, n.text);
    assert.deepEqual(answer.said.list, [n, 1.5]);
  });

  it('carries bytes as bytes', async () => {
    const bytes = Buffer.from([0, 255, 10]);
    const answer = (await sender.call('echo.say', { n: 1, bytes })) as { said: { bytes: Uint8Array } };
    assert.ok(answer.said.bytes instanceof Uint8Array);
    assert.deepEqual([...answer.said.bytes], [0, 255, 10]);
  });

  it('carries an error of the catalogue with its details', async () => {
    await assert.rejects(sender.call('echo.fail'), (error: unknown) => {
      assert.ok(error instanceof PlatformError);
      assert.equal(error.status, 412);
      assert.deepEqual(error.details, { currentETag: '"2"' });
      return true;
    });
  });
});
