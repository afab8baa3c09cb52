import assert from 'node:assert/strict';
import { Outage } from '../../../mixins/outage.ts';
import { until } from '../../support/until.ts';

describe('the log of an outage', () => {
  const PAUSE_MS = 300;
  const watched = (): { outage: Outage; lines: string[] } => {
    const lines: string[] = [];
    const began = (reason: string): void => void lines.push(`began ${reason}`);
    return { outage: new Outage({ began, ended: () => lines.push('ended') }, PAUSE_MS), lines };
  };

  it('has one line at its start and one at its end', () => {
    const { outage, lines } = watched();
    outage.end();
    for (const reason of ['first', 'second']) outage.begin(reason);
    assert.equal(outage.lasts, true);
    outage.end();
    outage.end();
    assert.deepEqual(lines, ['began first', 'ended']);
    assert.equal(outage.lasts, false);
  });

  it('has no further lines for a flapping outage, and reports a lasting one', async () => {
    const { outage, lines } = watched();
    for (let n = 0; n < 1_000; n++) {
      outage.begin(String(n));
      outage.end();
    }
    assert.deepEqual(lines, ['began 0', 'ended']);
    outage.begin('stays');
    await until(() => lines.length > 2);
    assert.deepEqual(lines, ['began 0', 'ended', 'began stays']);
    outage.end();
    assert.deepEqual(lines.slice(3), ['ended']);
  });
});
