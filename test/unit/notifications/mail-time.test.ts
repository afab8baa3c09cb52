/** When notifications are mailed. Source: docs/reference/notifications.md#mails. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { heldUntil, mailTime, type Wishes } from '../../../services/notifications/mail-time.ts';

const NONE: Wishes = {
  emailDigest: null,
  timezone: 'Europe/Berlin',
  quiet: null,
  mailedAt: null,
  criticalMailedAt: null,
};
const DAY = 86_400_000;

/** When what was created at this time is mailed. */
const mailed = (createdAt: string, wishes: Partial<Wishes>, severity: 'info' | 'critical' = 'info'): string => {
  const now = Date.parse(createdAt);
  return new Date(mailTime({ ...NONE, ...wishes }, { severity, createdAt: now }, now)).toISOString();
};
const held = (createdAt: string, now: string, wishes: Partial<Wishes>, severity: 'info' | 'critical' = 'info') => {
  const item = { severity, createdAt: Date.parse(createdAt) };
  const until = heldUntil({ ...NONE, ...wishes }, item, Date.parse(now));
  return until === null ? null : new Date(until).toISOString();
};

describe('mails about notifications', () => {
  it('leave after seconds, and ten minutes after the one before', () => {
    const at = '2026-11-21T12:00:00.000Z';
    assert.equal(mailed(at, {}), '2026-11-21T12:00:02.000Z');
    assert.equal(mailed(at, { emailDigest: 'off', timezone: null }), '2026-11-21T12:00:02.000Z');
    assert.equal(mailed(at, { mailedAt: Date.parse(at) - 60_000 }), '2026-11-21T12:09:00.000Z');
  });

  it('leave at once when they are critical, whatever left before, but ten minutes after the last critical one', () => {
    const at = '2026-11-21T12:00:00.000Z';
    const before = Date.parse(at) - 60_000;
    assert.equal(mailed(at, { mailedAt: before }, 'critical'), '2026-11-21T12:00:02.000Z');
    assert.equal(mailed(at, { criticalMailedAt: before }, 'critical'), '2026-11-21T12:09:00.000Z');
    assert.equal(mailed(at, { criticalMailedAt: before }), '2026-11-21T12:00:02.000Z');
  });

  it('are one at eight in the morning of the user, for those who want a daily digest', () => {
    const daily = { emailDigest: 'daily' } as const;
    assert.equal(mailed('2026-11-21T06:59:59.000Z', daily), '2026-11-21T07:00:01.000Z');
    assert.equal(mailed('2026-11-21T07:00:00.000Z', daily), '2026-11-22T07:00:00.000Z');
    assert.equal(
      mailed('2026-11-21T07:00:00.000Z', { ...daily, timezone: 'Asia/Kolkata' }),
      '2026-11-22T02:30:00.000Z',
    );
    // Clocks change in the night.
    assert.equal(mailed('2026-03-28T12:00:00.000Z', daily), '2026-03-29T06:00:00.000Z');
    assert.equal(mailed('2026-10-24T12:00:00.000Z', daily), '2026-10-25T07:00:00.000Z');
  });

  it('are one on Monday, for those who want a weekly digest', () => {
    const weekly = { emailDigest: 'weekly', timezone: 'UTC' } as const;
    assert.equal(mailed('2026-11-21T12:00:00.000Z', weekly), '2026-11-23T08:00:00.000Z');
    assert.equal(mailed('2026-11-23T07:00:00.000Z', weekly), '2026-11-23T08:00:00.000Z');
    assert.equal(mailed('2026-11-23T08:00:00.000Z', weekly), '2026-11-30T08:00:00.000Z');
  });

  it('wait for the end of quiet hours, digests too, but critical ones for nothing', () => {
    const wishes = { emailDigest: 'daily', quiet: { from: '07:00', to: '09:30' } } as const;
    assert.equal(mailed('2026-11-21T12:00:00.000Z', wishes), '2026-11-22T08:30:00.000Z');
    assert.equal(mailed('2026-11-22T08:00:00.000Z', wishes), '2026-11-22T08:30:00.000Z');
    assert.equal(mailed('2026-11-22T07:30:00.000Z', wishes, 'critical'), '2026-11-22T07:30:02.000Z');
  });

  it('are held when the user has chosen otherwise meanwhile, and when the digest has left', () => {
    const [created, due] = ['2026-11-21T12:00:00.000Z', '2026-11-21T12:00:02.000Z'];
    assert.equal(held(created, due, {}), null);
    assert.equal(held(created, due, { emailDigest: 'daily' }), '2026-11-22T07:00:00.000Z');
    assert.equal(held(created, due, { emailDigest: 'daily' }, 'critical'), null);
    assert.equal(held(created, due, { quiet: { from: '12:00', to: '14:00' } }), '2026-11-21T13:00:00.000Z');
    const digest = '2026-11-22T07:00:00.000Z';
    assert.equal(held(created, digest, { emailDigest: 'daily' }), null);
    const left = { emailDigest: 'daily', mailedAt: Date.parse(digest) } as const;
    assert.equal(held(created, '2026-11-22T07:00:01.000Z', left), '2026-11-23T07:00:00.000Z');
  });

  it('are one digest a day at most, whenever notifications come', () => {
    const minute = fc.integer({ min: 0, max: 24 * 60 - 1 });
    const clock = minute.map((n) => new Date(n * 60_000).toISOString().slice(11, 16));
    const quiet = fc.option(fc.record({ from: clock, to: clock }));
    const timezone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Pacific/Apia');
    const gaps = fc.array(fc.integer({ min: 0, max: 12 * 3_600_000 }), { minLength: 1, maxLength: 30 });
    const property = fc.property(quiet, timezone, gaps, (chosen, zone, waits) => {
      const wishes = { emailDigest: 'daily', quiet: chosen, timezone: zone } as const;
      let now = Date.parse('2026-03-20T00:00:00.000Z');
      let mailedAt: number | null = null;
      const mails: number[] = [];
      for (const wait of waits) {
        now += wait;
        const at = mailTime({ ...wishes, mailedAt, criticalMailedAt: null }, { severity: 'info', createdAt: now }, now);
        assert.ok(at > now && at <= now + 2 * DAY);
        if (mails.at(-1) !== at) mails.push(at);
        mailedAt = mails.findLast((mail) => mail <= now) ?? null;
      }
      // A day has 23 hours when clocks change; what came within two seconds of a digest is sent with it.
      for (const [n, mail] of mails.entries())
        assert.ok(n === 0 || mail - mails[n - 1]! > 22.9 * 3_600_000 || mail - mails[n - 1]! <= 2_000);
    });
    fc.assert(property, { numRuns: 200 });
  });
});
