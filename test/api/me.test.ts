/** The person behind a token: profile, preferences and permissions. Source: docs/reference/me.md. */
import assert from 'node:assert/strict';
import { call } from '../../contracts/call.ts';
import { contextOf } from '../support/agents.ts';
import { type Answer, type Api, api, tokenFor } from '../support/client.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';
import { refused } from './files/world.ts';

describe('the person behind a token', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  let eve: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const as = async (user: string, scope?: string) =>
      api(platform.baseUrl, await tokenFor(platform.baseUrl, user, scope));
    [ada, sam, eve] = await Promise.all([as('ada'), as('sam'), as('eve')]);
    await deployOverHttp(ada, {
      'objects/User/validationRules/NoWeekly.yaml':
        'type: ValidationRule\nobject: User\napiName: NoWeekly\ncondition: record.emailDigest == "weekly"\nmessage: Not weekly.\n',
    });
  });
  after(() => platform?.stop());

  const change = async (body: object, who = sam, etag?: string): Promise<Answer> =>
    who.patch('/me/preferences', body, { etag: etag ?? (await who.get('/me')).headers.get('etag')! });
  const narrow = async (scope: string): Promise<Api> =>
    api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', scope));

  it('has a profile, as the identity and with preferences', async () => {
    const { user } = (await sam.get('/identity')).body;
    const { status, body, text } = await sam.get('/me');
    assert.equal(status, 200, text);
    const { managerId, avatarFileId, preferences, ...same } = body;
    assert.deepEqual(same, user);
    assert.deepEqual([managerId, avatarFileId], [(await ada.get(`/data/User/${user.id}`)).body.managerId, null]);
    assert.deepEqual(Object.keys(preferences), ['locale', 'timezone', 'dateFormat', 'emailDigest']);
    assert.notEqual((await eve.get('/me')).body.id, body.id);
    refused(await (await narrow('data:read')).get('/me'), 403, 'SCOPE_INSUFFICIENT');
    refused(await api(platform.baseUrl).get('/me'), 401, 'TOKEN_MISSING');
    refused(await sam.get('/me?fields=id'), 400, 'PARAMETER_UNKNOWN');
  });

  it('changes its own preferences, as a change of its record', async () => {
    const { id } = (await sam.get('/me')).body;
    const choice = { locale: 'de-DE', timezone: 'Asia/Tokyo', dateFormat: 'dd.MM.yyyy', emailDigest: 'daily' };
    const changed = await change(choice);
    assert.equal(changed.status, 200, changed.text);
    assert.deepEqual(changed.body, choice);
    const read = await sam.get('/me');
    assert.deepEqual(
      [read.body.preferences, read.body.locale, read.body.timezone, read.headers.get('etag')],
      [choice, 'de-DE', 'Asia/Tokyo', changed.headers.get('etag')],
    );
    const record = await ada.get(`/data/User/${id}`);
    assert.deepEqual(
      [record.body.timezone, record.body.dateFormat, record.body.updatedById, record.headers.get('etag')],
      ['Asia/Tokyo', 'dd.MM.yyyy', id, changed.headers.get('etag')],
    );
    const { records } = (await ada.get('/events/audit?operationId=me.preferences.update')).body;
    assert.deepEqual([records[0].actor.userId, records[0].recordId], [id, id]);
    const back = await change({ dateFormat: null, emailDigest: null });
    assert.deepEqual(back.body, { ...choice, dateFormat: null, emailDigest: null });
    assert.equal((await change({ timezone: null })).status, 200);
    assert.equal((await sam.get('/me')).body.timezone, (await sam.get('/identity')).body.tenant.defaultTimezone);
  });

  it('repeats a change under its key, and refuses one of another version', async () => {
    const etag = (await sam.get('/me')).headers.get('etag')!;
    const send = (body: object) => sam.patch('/me/preferences', body, { etag, idempotencyKey: 'preferences-1' });
    const first = await send({ dateFormat: 'yyyy-MM-dd' });
    const second = await send({ dateFormat: 'yyyy-MM-dd' });
    assert.deepEqual([second.status, second.text], [200, first.text]);
    assert.equal(second.headers.get('idempotency-replayed'), 'true');
    refused(await send({ dateFormat: 'MM/dd/yyyy' }), 409, 'IDEMPOTENCY_KEY_REUSED');
    refused(await change({ dateFormat: 'MM/dd/yyyy' }, sam, etag), 412, 'ETAG_MISMATCH');
    refused(await sam.patch('/me/preferences', { dateFormat: null }), 400, 'IF_MATCH_REQUIRED');
  });

  it('changes nothing else, and nothing that the rules refuse', async () => {
    const before = (await sam.get('/me')).text;
    for (const body of [{ profileApiName: 'Administrator' }, { active: false }, { displayName: 'S' }])
      refused(await change(body), 400, 'BODY_PROPERTY_UNKNOWN');
    for (const body of [{}, { dateFormat: 'x' }, { emailDigest: 1 }])
      assert.equal((await change(body)).status, 400, JSON.stringify(body));
    for (const [body, code] of [
      [{ locale: 'xx_yy!' }, 'FIELD_FORMAT_INVALID'],
      [{ timezone: 'Moon/Base' }, 'FIELD_FORMAT_INVALID'],
      [{ emailDigest: 'weekly' }, 'VALIDATION_RULE'],
    ] as const) {
      const reply = await change(body);
      refused(reply, 422, 'VALIDATION_FAILED');
      assert.equal(reply.body.errors[0].code, code);
    }
    const { id } = (await sam.get('/me')).body;
    const direct = await sam.patch(
      `/data/User/${id}`,
      { dateFormat: 'MM/dd/yyyy' },
      {
        etag: (await sam.get('/me')).headers.get('etag')!,
      },
    );
    refused(direct, 403, 'OBJECT_PERMISSION_DENIED');
    const reads = await narrow('me:read');
    refused(await change({ dateFormat: null }, reads, '"1"'), 403, 'SCOPE_INSUFFICIENT');
    assert.equal((await sam.get('/me')).text, before);
  });

  it('reaches no other user and no other field, whatever the caller may do else', async () => {
    const [others, own] = await Promise.all([eve.get('/me'), sam.get('/me')]);
    refused(await change({ id: others.body.id, dateFormat: null }), 400, 'BODY_PROPERTY_UNKNOWN');
    refused(await change({ avatarFileId: null }), 400, 'BODY_PROPERTY_UNKNOWN');
    refused(await change({ profileApiName: 'StandardUser' }, ada), 400, 'BODY_PROPERTY_UNKNOWN');
    assert.equal((await change({ dateFormat: 'dd/MM/yyyy' })).status, 200);
    assert.equal((await eve.get('/me')).text, others.text);
    const { preferences, ...rest } = (await sam.get('/me')).body;
    const { preferences: before, ...restBefore } = own.body;
    assert.deepEqual([rest, preferences], [restBefore, { ...before, dateFormat: 'dd/MM/yyyy' }]);
    const { body: record } = await sam.get(`/data/User/${rest.id}`);
    assert.equal(Object.hasOwn(record, 'dateFormat'), false, 'what reads of users show is as before');
  });

  it('keeps what others have in memory, unless views hold the preference', async () => {
    const { id: tenantId } = (await sam.get('/identity')).body.tenant;
    const { userId } = await contextOf(sam);
    const accessVersion = async (): Promise<number> =>
      (await call(platform.broker, 'data.users.access', { tenantId, userId })).accessVersion;
    const before = await accessVersion();
    for (const body of [{ dateFormat: 'yyyy-MM-dd' }, { emailDigest: 'off' }])
      assert.equal((await change(body)).status, 200);
    assert.equal(await accessVersion(), before);
    assert.equal((await change({ timezone: 'Asia/Tokyo' })).status, 200);
    assert.equal(await accessVersion(), before + 1);
    assert.equal((await sam.get('/identity')).body.user.timezone, 'Asia/Tokyo');
  });

  it('follows the policy of the run of an agent', async () => {
    const begin = async (): Promise<Record<string, string>> => {
      const run = await sam.post('/agent/runs', { agentKey: 'tester', goal: 'Tidy preferences.' });
      assert.equal(run.status, 201, run.text);
      return { 'x-agent-run-id': run.body.runId };
    };
    const send = async (body: object) => {
      const etag = (await sam.get('/me')).headers.get('etag')!;
      return sam.patch('/me/preferences', body, { etag, headers: await begin() });
    };
    const allowed = await send({ emailDigest: 'daily' });
    assert.deepEqual([allowed.status, allowed.body.emailDigest], [200, 'daily'], allowed.text);
    await deployOverHttp(ada, {
      'agentPolicies/Preferences.yaml':
        'type: AgentPolicy\napiName: Preferences\nappliesTo:\n  clients:\n    - "*"\nrules:\n' +
        '  - operationIds:\n      - me.preferences.update\n    decision: deny\n',
    });
    refused(await send({ emailDigest: 'off' }), 403, 'AGENT_POLICY_DENIED');
    assert.equal((await sam.get('/me')).body.preferences.emailDigest, 'daily');
  });

  it('has permissions on objects and fields', async () => {
    const { status, body, text } = await sam.get('/me/permissions');
    assert.equal(status, 200, text);
    const listed = (await sam.get('/objects')).body.records;
    assert.deepEqual(
      body.objects.map(({ apiName }: { apiName: string }) => apiName),
      listed.map(({ apiName }: { apiName: string }) => apiName),
    );
    const one = (await sam.get('/me/permissions?objectApiName=Invoice__c')).body;
    assert.deepEqual(
      one.objects,
      body.objects.filter(({ apiName }: { apiName: string }) => apiName === 'Invoice__c'),
    );
    const described = (await sam.get('/objects/Invoice__c/describe')).body;
    assert.deepEqual(
      one.objects[0].fields,
      described.fields.map(({ apiName, editable }: { apiName: string; editable: boolean }) => ({
        apiName,
        read: true,
        edit: editable,
      })),
    );
    assert.ok(one.system.includes('apiEnabled'));
    assert.equal(body.objects.find(({ apiName }: { apiName: string }) => apiName === 'User').update, false);
    refused(await sam.get('/me/permissions?objectApiName=Nothing__c'), 404, 'OBJECT_NOT_FOUND');
    refused(await sam.get('/me/permissions?objectApiName='), 400, 'PARAMETER_INVALID');
    const own = (await eve.get('/me/permissions')).body;
    assert.notDeepEqual(own.objects, body.objects);
  });
});
