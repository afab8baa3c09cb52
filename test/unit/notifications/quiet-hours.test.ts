/** When a mail may leave. Source: docs/reference/notifications.md#preferences. */
import assert from 'node:assert/strict';
import { afterQuietHours } from '../../../services/notifications/quiet-hours.ts';

const after = (at: string, quiet: { from: string; to: string } | null, timezone = 'Europe/Berlin'): string =>
  new Date(afterQuietHours(Date.parse(at), quiet, timezone)).toISOString();

describe('quiet hours', () => {
  const night = { from: '22:00', to: '07:00' };

  it('hold a mail until they end, in the time zone of the user', () => {
    assert.equal(after('2026-11-21T21:30:20.000Z', night), '2026-11-22T06:00:00.000Z');
    assert.equal(after('2026-11-22T03:15:00.000Z', night), '2026-11-22T06:00:00.000Z');
    assert.equal(after('2026-11-22T03:15:00.000Z', night, 'America/New_York'), '2026-11-22T12:00:00.000Z');
  });

  it('hold nothing outside of them, nor when there are none', () => {
    for (const at of ['2026-11-21T20:59:59.999Z', '2026-11-22T06:00:00.000Z']) assert.equal(after(at, night), at);
    assert.equal(after('2026-11-21T23:00:00.000Z', null), '2026-11-21T23:00:00.000Z');
    assert.equal(after('2026-11-21T12:00:00.000Z', { from: '08:00', to: '08:00' }), '2026-11-21T12:00:00.000Z');
  });

  it('end by the clock also in nights in which clocks change', () => {
    assert.equal(after('2026-03-28T22:00:00.000Z', night), '2026-03-29T05:00:00.000Z');
    assert.equal(after('2026-10-24T21:00:00.000Z', night), '2026-10-25T06:00:00.000Z');
  });
});
