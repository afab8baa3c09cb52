/** The connections of a user, through the whole platform: the list, and the end of one connection. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'mocha';
import { signIn } from '../../scripts/sign-in.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { claims, refresh } from './auth/browser.ts';

describe('connections of a user', () => {
  let platform: TestPlatform;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
  });
  after(() => platform?.stop());

  interface Connected {
    id: string;
    api: Api;
    refreshToken: string;
  }
  /** A new authorization of the command line by a user of the demo. */
  const connect = async (user: string, scope = 'me:read me:write data:read offline_access'): Promise<Connected> => {
    const answer = await signIn({
      baseUrl: platform.baseUrl,
      user: `${user}@demo.example`,
      password: 'demo-password',
      scope,
    });
    const { grant_id } = claims(answer.access_token);
    return { id: grant_id, api: api(platform.baseUrl, answer.access_token), refreshToken: answer.refresh_token! };
  };
  const idsOf = (answer: { body: { records: { connectionId: string }[] } }): string[] =>
    answer.body.records.map(({ connectionId }) => connectionId);

  it('are listed newest first, with their scopes and a mark on the current one', async () => {
    const first = await connect('sue');
    const second = await connect('sue', 'me:read data:read');
    const { status, body, text } = await second.api.get('/me/connections');
    assert.equal(status, 200, text);
    assert.equal(body.nextCursor, null);
    assert.deepEqual(
      body.records.map(({ createdAt, lastUsedAt, ...rest }: Record<string, unknown>) => rest),
      [
        {
          connectionId: second.id,
          clientId: 'erp-cli',
          clientName: 'ERP command line',
          scopes: ['data:read', 'me:read'],
          agent: false,
          current: true,
        },
        {
          connectionId: first.id,
          clientId: 'erp-cli',
          clientName: 'ERP command line',
          scopes: ['data:read', 'me:read', 'me:write', 'offline_access'],
          agent: false,
          current: false,
        },
      ],
    );
    assert.ok(Math.abs(Date.parse(body.records[0].createdAt) - Date.now()) < 60_000);
    assert.ok(Math.abs(Date.parse(body.records[0].lastUsedAt) - Date.now()) < 60_000);
    assert.equal(body.records[1].lastUsedAt, null, 'nobody has used it yet');
    assert.equal((await second.api.get('/identity')).body.connection.grantId, second.id);
  });

  it('come in pages, whose cursor belongs to its user', async () => {
    const [one, two, three] = [await connect('ada'), await connect('ada'), await connect('ada')];
    const first = await three.api.get('/me/connections?take=2');
    assert.deepEqual(idsOf(first), [three.id, two.id]);
    const rest = await three.api.get(`/me/connections?take=2&cursor=${first.body.nextCursor}`);
    assert.deepEqual(idsOf(rest), [one.id]);
    assert.equal(rest.body.nextCursor, null);
    const sam = await connect('sam');
    for (const [who, query, code] of [
      [sam, `take=2&cursor=${first.body.nextCursor}`, 'CURSOR_INVALID'],
      [three, `take=1&cursor=${first.body.nextCursor}`, 'CURSOR_QUERY_MISMATCH'],
      [three, 'cursor=nonsense', 'CURSOR_INVALID'],
      [three, 'take=0', 'PARAMETER_INVALID'],
    ] as const) {
      const refused = await who.api.get(`/me/connections?${query}`);
      assert.deepEqual([refused.status, refused.body.code], [400, code]);
    }
    const clamped = await three.api.get('/me/connections?take=1000');
    assert.equal(clamped.headers.get('x-effective-take'), '200');
  });

  it('end individually and at once, with their access and refresh tokens', async () => {
    const [kept, ended] = [await connect('sam'), await connect('sam')];
    assert.equal((await ended.api.get('/identity')).status, 200, 'the gateway has seen it alive');
    const revoked = await kept.api.delete(`/me/connections/${ended.id}`);
    assert.equal(revoked.status, 204, revoked.text);
    assert.equal(revoked.text, '');
    const refused = await ended.api.get('/identity');
    assert.deepEqual([refused.status, refused.body.code], [401, 'TOKEN_REVOKED']);
    assert.equal((await refresh(platform.baseUrl, ended.refreshToken)).body.error, 'invalid_grant');
    assert.equal((await kept.api.get('/identity')).status, 200);
    assert.equal((await refresh(platform.baseUrl, kept.refreshToken)).status, 200);
    assert.ok(!idsOf(await kept.api.get('/me/connections')).includes(ended.id));
  });

  it("may include the caller's own", async () => {
    const own = await connect('sam');
    assert.equal((await own.api.delete(`/me/connections/${own.id}`)).status, 204);
    assert.equal((await own.api.get('/identity')).body.code, 'TOKEN_REVOKED');
  });

  it('of other users are not found, like unknown ones', async () => {
    const [sam, mia] = [await connect('sam'), await connect('mia')];
    const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    for (const [who, id] of [
      [sam.api, mia.id],
      [eve, mia.id],
      [sam.api, randomUUID()],
      [sam.api, 'x'.repeat(5_000)],
      [sam.api, "'%3B DROP TABLE auth.grants"],
    ] as const) {
      const refused = await who.delete(`/me/connections/${id}`);
      assert.deepEqual([refused.status, refused.body.code], [404, 'CONNECTION_NOT_FOUND'], refused.text);
      assert.equal(refused.body.message, 'There is no such connection.');
    }
    assert.equal((await mia.api.get('/identity')).status, 200);
  });

  it('end once per key: a repeated request gets the same answer, another one under the key is refused', async () => {
    const [own, ended, other] = [await connect('sam'), await connect('sam'), await connect('sam')];
    const idempotencyKey = `revoke-${randomUUID()}`;
    const revoke = (id: string) => own.api.delete(`/me/connections/${id}`, { idempotencyKey });
    const answers = await Promise.all(Array.from({ length: 10 }, () => revoke(ended.id)));
    for (const { status, body } of answers)
      assert.ok(status === 204 || body?.code === 'IDEMPOTENCY_IN_PROGRESS', JSON.stringify(body));
    const again = await revoke(ended.id);
    assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [204, 'true']);
    assert.equal((await revoke(other.id)).body.code, 'IDEMPOTENCY_KEY_REUSED');
    assert.equal((await other.api.get('/identity')).status, 200);
    const anew = await own.api.delete(`/me/connections/${ended.id}`);
    assert.equal(anew.body.code, 'CONNECTION_NOT_FOUND');
  });

  it("leave an entry in the audit trail, as does an attempt on another user's connection", async () => {
    const [own, ended, mia] = [await connect('sam'), await connect('sam'), await connect('mia')];
    await own.api.delete(`/me/connections/${ended.id}`);
    await own.api.delete(`/me/connections/${mia.id}`);
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const { body } = await ada.get('/events/audit?operationId=me.connections.revoke&take=2');
    const userId = claims(await tokenFor(platform.baseUrl, 'sam')).sub;
    assert.deepEqual(
      body.records.map(({ actor, outcome, code, recordId, changes }: Record<string, unknown>) => ({
        actor,
        outcome,
        code,
        recordId,
        changes,
      })),
      [
        {
          actor: { userId, clientId: 'erp-cli', agentRunId: null },
          outcome: 'failed',
          code: 'CONNECTION_NOT_FOUND',
          recordId: null,
          changes: [],
        },
        {
          actor: { userId, clientId: 'erp-cli', agentRunId: null },
          outcome: 'committed',
          code: null,
          recordId: userId,
          changes: [
            { field: 'client', from: 'erp-cli', to: null },
            { field: 'connection', from: ended.id, to: null },
          ],
        },
      ],
    );
  });
});
