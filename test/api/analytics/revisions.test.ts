/** Concurrent editors of a dashboard: of those at one revision one succeeds, and no change is overwritten unseen. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Client } from 'pg';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

/** Actions of one editor in a round in which all begin at once. */
interface Act {
  readonly editor: number;
  readonly kind: 'update' | 'publish';
  /** Place of the revision in the request. */
  readonly by: 'body' | 'header' | 'ifMatch';
  /** How far back the editor has read the dashboard. */
  readonly behind: number;
}

const act: fc.Arbitrary<Act> = fc.record({
  editor: fc.nat(2),
  kind: fc.constantFrom('update', 'update', 'publish'),
  by: fc.constantFrom('body', 'header', 'ifMatch'),
  behind: fc.constantFrom(0, 0, 0, 1, 2),
});
const rounds = fc.array(fc.array(act, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 6 });

describe('concurrent editors of a dashboard', () => {
  let platform: TestPlatform;
  let editors: Api[];

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    editors = await Promise.all(
      ['ada', 'mia', 'sam'].map(async (user) => api(platform.baseUrl, await tokenFor(platform.baseUrl, user))),
    );
  });
  after(() => platform?.stop());

  it('get 409 while another transaction holds the dashboard', async () => {
    const made = await editors[0]!.post('/analytics/dashboards', { name: 'Held' });
    const at = `/analytics/dashboards/${made.body.dashboardId}`;
    const holder = new Client({ connectionString: platform.database.url, application_name: 'revisions test' });
    await holder.connect();
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT FROM analytics.dashboards WHERE dashboard_id = $1 FOR UPDATE', [
        made.body.dashboardId,
      ]);
      const replies = await Promise.all([
        editors[0]!.patch(at, { expectedRevision: 1, name: 'Changed' }),
        editors[0]!.post(`${at}/publish`, { expectedRevision: 1 }),
        editors[0]!.delete(at, { headers: { 'X-Expected-Revision': '1' } }),
      ]);
      assert.deepEqual(
        replies.map(({ status, body, headers }) => [status, body.code, headers.has('retry-after')]),
        replies.map(() => [409, 'WRITE_CONTENTION', true]),
      );
    } finally {
      await holder.end();
    }
  });

  it('never overwrite unseen changes', async function () {
    this.timeout(120_000);
    let dashboards = 0;
    await fc.assert(
      fc.asyncProperty(rounds, async (all) => {
        const sharedWith = [{ principalType: 'role', principalId: 'SalesRep', access: 'edit' }];
        const made = await editors[0]!.post('/analytics/dashboards', {
          name: `Dashboard ${dashboards++}`,
          visibility: 'shared',
          sharedWith,
        });
        assert.equal(made.status, 201, made.text);
        const at = `/analytics/dashboards/${made.body.dashboardId}`;
        const model = { revision: 1, draft: made.body.name, published: null as string | null };

        for (const [round, acts] of all.entries()) {
          const read = model.revision;
          const replies = await Promise.all(
            acts.map((one, place) => send(editors[one.editor]!, at, one, read - one.behind, `${round}.${place}`)),
          );
          const won = acts.flatMap((one, place) => (replies[place]!.status < 300 ? [{ one, place }] : []));
          const current = acts.filter(({ behind }) => behind === 0).length;
          assert.equal(won.length, Math.min(current, 1), replies.map(({ text }) => text).join('\n'));
          for (const reply of replies) if (reply.status >= 300) assert.ok(isRefusal(reply), reply.text);
          for (const { one, place } of won) {
            assert.equal(one.behind, 0);
            model.revision++;
            if (one.kind === 'update') model.draft = `${round}.${place}`;
            else model.published = model.draft;
            assert.equal(replies[place]!.body.revision, model.revision);
          }
          const draft = await editors[0]!.get(`${at}?version=draft`);
          assert.deepEqual([draft.body.name, draft.body.revision], [model.draft, model.revision]);
          const published = await editors[0]!.get(`${at}?version=published`);
          assert.equal(published.status === 404 ? null : published.body.name, model.published);
        }
      }),
      { numRuns: 15 },
    );
  });
});

/** A stale revision, or one that never existed. */
const isRefusal = ({ status, body }: Answer): boolean =>
  (status === 412 && body.code === 'REVISION_MISMATCH') || (status === 400 && /INVALID/.test(body.code));

function send(editor: Api, at: string, { kind, by }: Act, revision: number, name: string): Promise<Answer> {
  const body = { ...(kind === 'update' ? { name } : {}), ...(by === 'body' ? { expectedRevision: revision } : {}) };
  const options =
    by === 'header'
      ? { headers: { 'x-expected-revision': String(revision) } }
      : by === 'ifMatch'
        ? { etag: `"r${revision}"` }
        : {};
  return kind === 'update' ? editor.patch(at, body, options) : editor.post(`${at}/publish`, body, options);
}
