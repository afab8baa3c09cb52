import assert from 'node:assert/strict';
import { securityFile } from '../../../web/site/security-file.ts';

describe('security.txt', () => {
  const noon = Date.UTC(2026, 0, 1, 12);
  const HOUR_MS = 3_600_000;

  it('is generated once a day, and expires after half a year', () => {
    const fileAt = securityFile('mailto:security@erp.example', 'https://erp.example');
    const first = fileAt(noon);
    assert.equal(fileAt(noon + 11 * HOUR_MS), first);
    assert.match(first.body.toString(), /^Expires: 2026-06-30T00:00:00\.000Z$/m);
    const next = fileAt(noon + 12 * HOUR_MS);
    assert.match(next.body.toString(), /^Expires: 2026-07-01T00:00:00\.000Z$/m);
    assert.notEqual(next.etag, first.etag);
  });
});
