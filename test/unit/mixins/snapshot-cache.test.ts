import assert from 'node:assert/strict';
import { SnapshotCache } from '../../../mixins/snapshot-cache/snapshot-cache.ts';

describe('the snapshot cache', () => {
  /** Answers snapshots of a given size and counts how often it is asked. */
  function source(bytes = 100) {
    const asked: string[] = [];
    const fetch = async (tenantId: string, version: number | undefined) => {
      asked.push(`${tenantId}@${version ?? 'current'}`);
      if (tenantId === 'none') return null;
      const text = JSON.stringify({
        version: version ?? 7,
        objects: { Note: { apiName: 'Note' } },
        padding: 'x'.repeat(bytes),
      });
      return { version: version ?? 7, snapshot: Buffer.from(text) };
    };
    return { asked, fetch };
  }

  it('loads a version once for concurrent and later readers', async () => {
    const { asked, fetch } = source();
    const cache = new SnapshotCache(fetch);
    const all = await Promise.all([1, 2, 3].map(() => cache.get('a', 3)));
    assert.equal(new Set(all).size, 1);
    assert.equal(await cache.get('a', 3), all[0]);
    assert.deepEqual(asked, ['a@3']);
    assert.notEqual(await cache.get('a', 4), all[0], 'another version is another snapshot');
    assert.notEqual(await cache.get('b', 3), all[0], 'another tenant as well');
  });

  it('looks up the current version each time, and caches its content', async () => {
    const { asked, fetch } = source();
    const cache = new SnapshotCache(fetch);
    const current = await cache.get('a');
    await cache.get('a');
    assert.equal((await cache.get('a', 7))!.version, current!.version);
    assert.deepEqual(asked, ['a@current', 'a@current']);
  });

  it('does not cache a missing snapshot', async () => {
    const { asked, fetch } = source();
    const cache = new SnapshotCache(fetch);
    assert.equal(await cache.get('none'), null);
    assert.equal(await cache.get('none'), null);
    assert.equal(asked.length, 2);
  });

  it('stays within its size and evicts the oldest first', async () => {
    const { asked, fetch } = source(10_000);
    const cache = new SnapshotCache(fetch, 100_000);
    for (let tenant = 0; tenant < 50; tenant++) await cache.get(`t${tenant}`, 1);
    assert.ok(cache.numbers.bytes <= 100_000);
    assert.ok(cache.numbers.bytes > 0);
    await cache.get('t49', 1);
    assert.equal(asked.length, 50);
    await cache.get('t0', 1);
    assert.equal(asked.length, 51);
  });

  it('adds missing parts to a snapshot compiled by an older version', async () => {
    const snapshot = await new SnapshotCache(source().fetch).get('a', 1);
    const { apiName, sharingRules, stateModel, actions } = snapshot!.objects['Note']!;
    assert.deepEqual(
      { apiName, sharingRules, stateModel, actions },
      { apiName: 'Note', sharingRules: [], stateModel: null, actions: [] },
    );
    assert.deepEqual(snapshot!.groups, {});
  });

  it('retries after a failure', async () => {
    const { fetch } = source();
    let fails = true;
    const cache = new SnapshotCache((tenantId, version) => {
      if (fails) return Promise.reject(new Error('away'));
      return fetch(tenantId, version);
    });
    await assert.rejects(cache.get('a', 1));
    fails = false;
    assert.equal((await cache.get('a', 1))!.version, 1);
  });
});
