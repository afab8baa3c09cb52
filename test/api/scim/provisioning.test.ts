/**
 * Provisioning of users and groups (SCIM 2.0): the sequences that Okta and Microsoft Entra ID publish for their
 * provider tests, the examples of RFC 7644, and the promises of the discovery documents.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { SCIM_ROUTES } from '../../../contracts/scim.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import {
  CORE_USER,
  ENTERPRISE_USER,
  expect,
  filtered,
  patch,
  refused,
  type ScimSend,
  scimFor,
} from '../../support/scim.ts';

const LIST = 'urn:ietf:params:scim:api:messages:2.0:ListResponse';
const NOBODY = '01990000-0000-7000-8000-0000000000ff';

describe('provisioning', function () {
  this.timeout(60_000);
  let platform: TestPlatform;
  let scim: ScimSend;
  let ada: Api;
  let count = 0;

  before(async function () {
    this.timeout(600_000);
    platform = await startPlatform();
    scim = await scimFor(platform.baseUrl, 'ada');
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
  });
  after(() => platform?.stop());

  const newUser = (fields: object = {}): object => ({
    schemas: [CORE_USER],
    userName: `person${++count}@demo.example`,
    name: { givenName: 'Joan', familyName: `Person${count}` },
    emails: [{ primary: true, value: `person${count}@demo.example`, type: 'work' }],
    active: true,
    ...fields,
  });
  const created = (fields: object = {}) => expect(201, scim('POST', '/Users', newUser(fields)));
  const userNames = async (filter: string): Promise<string[]> => {
    const { Resources } = await expect(200, scim('GET', `/Users${filtered(filter)}&attributes=userName`));
    return Resources.map(({ userName }: { userName: string }) => userName.split('@')[0]).sort();
  };

  it('lists its features, and every schema has the attributes of its resources', async () => {
    const config = await expect(200, scim('GET', '/ServiceProviderConfig'));
    assert.deepEqual(
      ['patch', 'bulk', 'filter', 'changePassword', 'sort', 'etag'].map((name) => config[name].supported),
      [true, false, true, false, true, true],
    );
    assert.equal(config.filter.maxResults, LIMITS.take_max);
    const types = await expect(200, scim('GET', '/ResourceTypes'));
    const schemas = await expect(200, scim('GET', '/Schemas'));
    assert.deepEqual([types.totalResults, schemas.totalResults], [2, 3]);
    for (const { meta, id } of [...types.Resources, ...schemas.Resources]) {
      const path = meta.location.slice(`${platform.baseUrl}/scim/v2`.length);
      assert.ok(path.endsWith(`/${id}`), path);
      assert.equal((await expect(200, scim('GET', path))).id, id);
    }
    const [{ id: managerId }] = (await expect(200, scim('GET', `/Users${filtered('userName eq "mia@demo.example"')}`)))
      .Resources;
    const user = await created({
      locale: 'de-DE',
      timezone: 'Europe/Berlin',
      externalId: 'x-1',
      roles: ['SalesRep'],
      [ENTERPRISE_USER]: { manager: { value: managerId } },
    });
    await expect(
      200,
      scim('PATCH', '/Groups/OrderDesk', patch({ op: 'add', path: 'members', value: [{ value: user.id }] })),
    );
    const whole = await expect(200, scim('GET', `/Users/${user.id}`));
    const group = await expect(200, scim('GET', '/Groups/OrderDesk'));
    const described = (id: string) => schemas.Resources.find((one: { id: string }) => one.id === id).attributes;
    assertDescribed(whole, described(CORE_USER), whole[ENTERPRISE_USER], described(ENTERPRISE_USER));
    assertDescribed(group, described('urn:ietf:params:scim:schemas:core:2.0:Group'));
    assert.equal(whole[ENTERPRISE_USER].manager.displayName, 'Mia Hartmann');
  });

  /** A resource has exactly the attributes of its schema. */
  function assertDescribed(
    resource: Record<string, unknown>,
    attributes: { name: string; subAttributes?: { name: string }[]; multiValued: boolean }[],
    extension: Record<string, unknown> = {},
    more: typeof attributes = [],
  ): void {
    const own = Object.keys(resource).filter(
      (name) => !['schemas', 'id', 'externalId', 'meta'].includes(name) && !name.startsWith('urn:'),
    );
    assert.deepEqual(own.sort(), attributes.map(({ name }) => name).sort());
    for (const { name, subAttributes, multiValued } of attributes) {
      if (!subAttributes) continue;
      const value = multiValued ? (resource[name] as object[])[0] : (resource[name] as object);
      assert.deepEqual(Object.keys(value!).sort(), subAttributes.map((sub) => sub.name).sort(), name);
    }
    assert.deepEqual(
      Object.keys(extension),
      more.map(({ name }) => name),
    );
  }

  it('accepts the requests of Okta in their order', async () => {
    const first = await expect(200, scim('GET', '/Users?count=1&startIndex=1'));
    assert.deepEqual([first.schemas, first.itemsPerPage, first.startIndex], [[LIST], 1, 1]);
    const [{ id, name, userName, active, emails }] = first.Resources;
    for (const value of [id, name.familyName, name.givenName, userName, emails[0].value]) assert.ok(value);
    assert.equal(active, true);
    await expect(200, scim('GET', `/Users/${id}`));
    assert.equal((await expect(200, scim('GET', `/Users${filtered('userName eq "nobody"')}`))).totalResults, 0);
    await refused(404, scim('GET', '/Users/010101001010101011001010101011'));
    const body = newUser({ displayName: 'Joan Lake', name: { givenName: 'Joan', familyName: 'Lake' } });
    const answer = await scim('POST', '/Users', body, { 'content-type': 'application/json' });
    assert.equal(answer.status, 201);
    assert.equal(answer.headers.get('location'), answer.body.meta.location);
    assert.equal(answer.headers.get('etag'), answer.body.meta.version);
    const { id: made } = answer.body;
    const read = await expect(200, scim('GET', `/Users/${made}`));
    assert.deepEqual([read.name.givenName, read.name.familyName, read.active], ['Joan', 'Lake', true]);
    await refused(409, scim('POST', '/Users', body), 'uniqueness');
    const caps = read.userName.toUpperCase();
    assert.equal((await expect(200, scim('GET', `/Users${filtered(`userName eq "${caps}"`)}`))).totalResults, 1);
    const { groups, meta, ...writable } = read;
    assert.ok(meta && !groups);
    const renamed = { ...writable, name: { givenName: 'Joan', familyName: 'Shore' }, displayName: 'Joan Shore' };
    const replaced = await expect(200, scim('PUT', `/Users/${made}`, renamed));
    assert.deepEqual([replaced.name.familyName, replaced.displayName], ['Shore', 'Joan Shore']);
    await expect(200, scim('PATCH', `/Users/${made}`, patch({ op: 'replace', value: { active: false } })));
    assert.equal((await expect(200, scim('GET', `/Users/${made}`))).active, false);
    await expect(200, scim('PATCH', `/Users/${made}`, patch({ op: 'replace', value: { active: true } })));
    await expect(200, scim('GET', '/Groups?count=100&startIndex=1'));
  });

  it('accepts the requests of Microsoft Entra ID in their order', async () => {
    const { id, externalId, meta } = await created({ externalId: 'entra-1', title: 'ignored', password: 'ignored' });
    assert.equal(externalId, 'entra-1');
    assert.deepEqual(await userNames('externalId eq "entra-1"'), [`person${count}`]);
    assert.deepEqual(await userNames(`emails[type eq "work"].value eq "person${count}@demo.example"`), [
      `person${count}`,
    ]);
    assert.ok(meta.created <= meta.lastModified);
    const [manager] = (await expect(200, scim('GET', `/Users${filtered('userName eq "mia@demo.example"')}`))).Resources;
    const changed = await expect(
      200,
      scim(
        'PATCH',
        `/Users/${id}`,
        patch(
          { op: 'Replace', path: 'emails[type eq "work"].value', value: 'other@demo.example' },
          { op: 'Replace', path: 'name.familyName', value: 'Harbour' },
          { op: 'Add', path: `${ENTERPRISE_USER}:manager`, value: manager.id },
          { op: 'Add', path: `${ENTERPRISE_USER}:department`, value: 'ignored' },
          { op: 'Add', path: 'phoneNumbers[type eq "work"].value', value: 'ignored' },
          { op: 'Replace', path: 'roles[primary eq "True"].value', value: 'SalesRep' },
          { op: 'Replace', value: { 'name.givenName': 'Ann', locale: 'en_GB' } },
        ),
      ),
    );
    assert.deepEqual(
      [changed.emails[0].value, changed.displayName, changed[ENTERPRISE_USER].manager.value],
      ['other@demo.example', 'Ann Harbour', manager.id],
    );
    assert.deepEqual(
      [changed.roles[0].value, changed.locale],
      ['SalesRep', 'en-GB'],
      'a language tag, however written',
    );
    const nonsense = patch({ op: 'Replace', path: 'locale', value: 'no language' });
    assert.match((await refused(400, scim('PATCH', `/Users/${id}`, nonsense), 'invalidValue')).detail, /language tag/);
    const off = patch({ op: 'Replace', path: 'active', value: 'False' });
    assert.equal((await expect(200, scim('PATCH', `/Users/${id}`, off))).active, false);
    assert.equal((await expect(200, scim('PATCH', `/Users/${id}`, off))).active, false, 'again, with no effect');
    const found = await expect(200, scim('GET', `/Users${filtered('externalId eq "entra-1"')}`));
    assert.equal(found.Resources[0].active, false);
    const cleared = patch({ op: 'Remove', path: `${ENTERPRISE_USER}:manager` }, { op: 'Remove', path: 'roles' });
    const without = await expect(200, scim('PATCH', `/Users/${id}`, cleared));
    assert.deepEqual([without[ENTERPRISE_USER], without.roles], [undefined, undefined]);
    const { status, body } = await scim('DELETE', `/Users/${id}`);
    assert.deepEqual([status, body], [204, null]);
    await refused(404, scim('GET', `/Users/${id}`));
    await refused(404, scim('DELETE', `/Users/${id}`));
  });

  it('keeps an explicit displayName when a directory repeatedly sends the parts of the name', async () => {
    const name = { givenName: 'Ana', familyName: 'van der Berg' };
    const user = await created({ displayName: 'Berg, Ana van der (External)', name });
    const parts = patch(
      { op: 'Replace', path: 'name.givenName', value: name.givenName },
      { op: 'Replace', path: 'name.familyName', value: name.familyName },
    );
    const again = await expect(200, scim('PATCH', `/Users/${user.id}`, parts));
    assert.deepEqual([again.displayName, again.meta.version], [user.displayName, user.meta.version], 'nothing changed');
  });

  it('keeps the members of a group', async () => {
    const query = `/Groups${filtered('displayName eq "order desk"')}&excludedAttributes=members`;
    const { Resources } = await expect(200, scim('GET', query));
    assert.deepEqual(
      Resources.map((group: { id: string; members?: unknown }) => [group.id, group.members]),
      [['OrderDesk', undefined]],
    );
    const [a, b] = [await created(), await created()];
    const members = async (): Promise<string[]> =>
      (await expect(200, scim('GET', '/Groups/PriceManagement'))).members?.map((one: { value: string }) => one.value) ??
      [];
    const change = (...operations: object[]) => scim('PATCH', '/Groups/PriceManagement', patch(...operations));
    await expect(
      200,
      change(
        { op: 'Add', path: 'members', value: [{ value: a.id }, { value: b.id }] },
        { op: 'Add', path: 'externalId', value: 'g-1' },
        { op: 'replace', value: { id: 'PriceManagement', displayName: 'Price management' } },
      ),
    );
    assert.deepEqual(await members(), [a.id, b.id]);
    const [{ id }] = (await expect(200, scim('GET', `/Groups${filtered('externalId eq "g-1"')}`))).Resources;
    assert.equal(id, 'PriceManagement');
    const stored = await ada.get(`/data/User/${a.id}`);
    assert.deepEqual(stored.body.permissionSetApiNames, ['PriceManagement']);
    assert.deepEqual((await expect(200, scim('GET', `/Users/${a.id}`))).groups[0].value, 'PriceManagement');
    const isMember = `id eq "PriceManagement" and members.value eq "${b.id}"`;
    assert.equal((await expect(200, scim('GET', `/Groups${filtered(isMember)}`))).totalResults, 1);
    assert.deepEqual(await userNames('groups.value eq "PriceManagement"'), [`person${count - 1}`, `person${count}`]);
    await expect(200, change({ op: 'Remove', path: `members[value eq "${a.id}"]` }));
    assert.deepEqual(await members(), [b.id]);
    await expect(200, change({ op: 'Remove', path: 'members', value: [{ value: b.id }] }));
    assert.deepEqual(await members(), []);
    const whole = { displayName: 'Price management', members: [{ value: b.id, type: 'User' }] };
    const replaced = await expect(200, scim('PUT', '/Groups/PriceManagement', whole));
    assert.deepEqual(
      replaced.members.map(({ display }: { display: string }) => display),
      [b.displayName],
    );
    const version = { 'if-match': replaced.meta.version };
    await expect(200, scim('PUT', '/Groups/PriceManagement', { ...whole, members: [] }, version));
    await refused(412, scim('PUT', '/Groups/PriceManagement', whole, version));
  });

  it("changes all members of a request or none, and leaves a group's rights to configuration", async () => {
    const { id } = await created();
    const both = patch({ op: 'add', path: 'members', value: [{ value: id }, { value: NOBODY }] });
    await refused(400, scim('PATCH', '/Groups/OrderDesk', both), 'invalidValue');
    assert.equal((await expect(200, scim('GET', `/Users/${id}`))).groups, undefined);
    const nested = patch({ op: 'add', path: 'members', value: [{ value: 'OrderDesk', type: 'Group' }] });
    await refused(400, scim('PATCH', '/Groups/OrderDesk', nested), 'invalidValue');
    const rename = patch({ op: 'replace', path: 'displayName', value: 'Other' });
    await refused(400, scim('PATCH', '/Groups/OrderDesk', rename), 'mutability');
    await refused(409, scim('POST', '/Groups', { displayName: 'Order desk' }), 'uniqueness');
    assert.match((await refused(403, scim('POST', '/Groups', { displayName: 'New' }))).detail, /configuration/);
    await refused(403, scim('DELETE', '/Groups/OrderDesk'));
    await refused(404, scim('DELETE', '/Groups/Nothing'));
    await refused(404, scim('GET', '/Groups/Nothing'));
    await refused(404, scim('PATCH', '/Groups/Nothing', rename));
  });

  it('filters by every documented operator', async () => {
    const tag = `filter${++count}`;
    const [one, two] = [
      await created({ userName: `${tag}-one@demo.example`, timezone: 'Europe/Berlin', active: false }),
      await created({ userName: `${tag}-two@demo.example`, locale: 'fr-FR', externalId: `${tag}-x` }),
    ];
    const among = (filter: string): Promise<string[]> => userNames(`userName sw "${tag}" and (${filter})`);
    const both = [`${tag}-one`, `${tag}-two`];
    const expected: [string, string[]][] = [
      ['userName co "TWO"', [both[1]!]],
      [`not (userName eq "${two.userName}")`, [both[0]!]],
      [`userName ne "${two.userName}"`, [both[0]!]],
      ['active eq true', [both[1]!]],
      ['active eq "False"', [both[0]!]],
      ['not (active eq false)', [both[1]!]],
      ['locale pr', [both[1]!]],
      ['not (locale pr)', [both[0]!]],
      ['locale eq null', [both[0]!]],
      ['timezone eq "Europe/Berlin" or locale eq "fr-FR"', both],
      ['timezone eq "Europe/Berlin" and locale eq "fr-FR"', []],
      ['not (timezone eq "Europe/Berlin" and active eq false)', [both[1]!]],
      [`externalId eq "${tag}-x"`, [both[1]!]],
      [`externalId ne "${tag}-x"`, [both[0]!]],
      [`id eq "${one.id.toUpperCase()}"`, [both[0]!]],
      ['id eq "no id"', []],
      ['entitlements[type eq "profile" and value eq "Minimal"]', both],
      ['roles.value pr', []],
      [`meta.created ge "${one.meta.created}"`, both],
      [`not (meta.lastModified gt "${two.meta.lastModified}")`, both],
      [`${CORE_USER}:userName sw "${tag}"`, both],
      [`URN:ietf:params:scim:schemas:core:2.0:User:USERNAME eq "${one.userName}"`, [both[0]!]],
      ['meta.resourceType eq "User"', both],
      ['emails.type eq "home"', []],
      [`manager.value eq "${NOBODY}"`, []],
    ];
    for (const [filter, names] of expected) assert.deepEqual(await among(filter), names, filter);
    const search = { filter: `userName sw "${tag}"`, sortBy: 'userName', sortOrder: 'descending', attributes: ['id'] };
    const found = await expect(200, scim('POST', '/Users/.search', search));
    assert.deepEqual(
      found.Resources.map((user: { id: string }) => [user.id, Object.keys(user).sort()]),
      [two, one].map(({ id }) => [id, ['id', 'schemas']]),
    );
    for (const filter of [
      'userName',
      'userName eq',
      'userName eq "a" and',
      'userName eq "a" b',
      'userName ew "a"',
      'nickName eq "a"',
      'active gt true',
      'not (userName sw "a")',
      'meta.created gt "yesterday"',
      'groups.value co "a"',
      `userName eq "${'a'.repeat(LIMITS.scim_filter_max_chars)}"`,
      `${'('.repeat(11)}userName eq "a"${')'.repeat(11)}`,
      Array(51).fill('active pr').join(' or '),
      `${'not ('.repeat(300)}userName eq "a"`,
    ])
      await refused(400, scim('POST', '/Users/.search', { filter }), 'invalidFilter');
    await refused(400, scim('GET', `/Groups${filtered('members co "a"')}`), 'invalidFilter');
    await refused(400, scim('GET', '/Users?sortBy=nickName'), 'invalidValue');
    await refused(400, scim('GET', '/Users?count=many'), 'invalidValue');
  });

  it('answers pages and the requested attributes', async () => {
    const all: string[] = [];
    let total = 0;
    for (let startIndex = 1; startIndex === 1 || startIndex <= total; startIndex += 3) {
      const page = await expect(200, scim('GET', `/Users?startIndex=${startIndex}&count=3`));
      total = page.totalResults;
      assert.deepEqual([page.startIndex, page.itemsPerPage], [startIndex, page.Resources.length]);
      all.push(...page.Resources.map(({ id }: { id: string }) => id));
    }
    assert.equal(new Set(all).size, total);
    assert.equal(all.length, total);
    const none = await expect(200, scim('GET', '/Users?count=0'));
    assert.deepEqual([none.totalResults, none.Resources], [total, []]);
    assert.equal((await expect(200, scim('GET', '/Users?count=-1&startIndex=-5'))).startIndex, 1);
    await refused(400, scim('GET', `/Users?startIndex=${LIMITS.scim_start_index_max + 1}`), 'invalidValue');
    const [id] = all;
    const shown = async (query: string): Promise<string[]> =>
      Object.keys(await expect(200, scim('GET', `/Users/${id}?${query}`))).sort();
    assert.deepEqual(await shown('attributes=userName,emails.value'), ['emails', 'id', 'schemas', 'userName']);
    const whole = await shown('');
    assert.deepEqual(
      whole.filter((name) => !['name', 'meta'].includes(name)),
      await shown(`excludedAttributes=name,meta,id,${CORE_USER}:schemas`),
    );
    const { emails } = await expect(200, scim('GET', `/Users/${id}?attributes=emails.value`));
    assert.deepEqual(Object.keys(emails[0]), ['value']);
  });

  it('answers 412 to the later of two clients, and stores no change twice', async () => {
    const { id, meta } = await created();
    const unmodified = await scim('GET', `/Users/${id}`, undefined, { 'if-none-match': meta.version });
    assert.equal(unmodified.status, 304);
    const rename = (name: string) => patch({ op: 'replace', path: 'displayName', value: name });
    const [first, second] = await Promise.all(
      ['One', 'Two'].map((name) => scim('PATCH', `/Users/${id}`, rename(name), { 'if-match': meta.version })),
    );
    assert.deepEqual([first!.status, second!.status].sort(), [200, 412]);
    await expect(200, scim('PATCH', `/Users/${id}`, rename('Three'), { 'if-match': '*' }));
    const same = await expect(200, scim('PATCH', `/Users/${id}`, rename('Three')));
    const again = await expect(200, scim('PATCH', `/Users/${id}`, rename('Three')));
    assert.equal(again.meta.version, same.meta.version);
    await refused(412, scim('DELETE', `/Users/${id}`, undefined, { 'if-match': meta.version }));
  });

  it('replaces omitted attributes on PUT, except the name and rights', async () => {
    const { id, userName } = await created({ locale: 'de-DE', timezone: 'Europe/Berlin', externalId: 'kept' });
    await expect(200, scim('PATCH', `/Users/${id}`, patch({ op: 'add', path: 'roles', value: ['SalesRep'] })));
    const bare = await expect(200, scim('PUT', `/Users/${id}`, { schemas: [CORE_USER], userName }));
    assert.deepEqual([bare.locale, bare.timezone, bare.emails], [undefined, undefined, undefined]);
    assert.deepEqual(
      [bare.displayName, bare.roles[0].value, bare.entitlements[0].value, bare.active, bare.externalId],
      [`Joan Person${count}`, 'SalesRep', 'Minimal', true, 'kept'],
    );
    await refused(400, scim('PUT', `/Users/${id}`, { displayName: 'No name' }), 'invalidValue');
    await refused(404, scim('PUT', `/Users/${NOBODY}`, { userName: 'x@demo.example' }));
  });

  it('restores a deleted user with a POST, and shows it again only then', async () => {
    const { id, userName } = await created({ roles: ['SalesRep'], externalId: 'first' });
    const add = patch({ op: 'add', path: 'members', value: [{ value: id }] });
    await expect(200, scim('PATCH', '/Groups/OrderDesk', add));
    await expect(204, scim('DELETE', `/Users/${id}`));
    assert.equal((await ada.get(`/data/User/${id}`)).body.active, false);
    assert.deepEqual(await userNames(`userName eq "${userName}"`), []);
    const { members = [] } = await expect(200, scim('GET', '/Groups/OrderDesk'));
    assert.ok(!members.some(({ value }: { value: string }) => value === id));
    await refused(400, scim('PATCH', '/Groups/OrderDesk', add), 'invalidValue');
    const back = await expect(201, scim('POST', '/Users', { userName, externalId: 'second' }));
    assert.deepEqual([back.id, back.active, back.externalId], [id, true, 'second']);
    assert.deepEqual([back.roles, back.groups], [undefined, undefined], 'nothing of what they had before');
  });

  it('shows a deleted user again once it was activated', async () => {
    const { id } = await created();
    await expect(204, scim('DELETE', `/Users/${id}`));
    const etag = (await ada.get(`/data/User/${id}`)).headers.get('etag')!;
    assert.equal((await ada.patch(`/data/User/${id}`, { active: true }, { etag })).status, 200);
    assert.equal((await expect(200, scim('GET', `/Users/${id}`))).active, true);
  });

  it("gives a user without a profile that of the domain's identity provider", async () => {
    await deployOverHttp(ada, {
      'identityProviders/Lakeside.yaml':
        'type: IdentityProvider\napiName: Lakeside\nlabel: Lakeside\nissuer: https://login.lakeside.example\nclientId: erp\ndomains: [lakeside.example]\ncreateUsers:\n  profileApiName: SalesRep\n  roleApiName: SalesRep\npasswordSignIn: true\n',
    });
    const user = await created({ emails: [{ value: 'joan@Lakeside.example' }] });
    assert.deepEqual([user.entitlements[0].value, user.roles[0].value], ['SalesRep', 'SalesRep']);
    const own = await created({
      emails: [{ value: 'ann@lakeside.example' }],
      entitlements: [{ value: 'Standard', type: 'profile' }],
    });
    assert.deepEqual([own.entitlements[0].value, own.roles], ['Standard', undefined]);
    assert.equal((await created()).entitlements[0].value, 'Minimal');
  });

  it('explains every invalid value', async () => {
    const { id } = await created();
    const cases: [object, string][] = [
      [{ op: 'jump', path: 'active', value: true }, 'invalidSyntax'],
      [{ op: 'replace', path: 'active' }, 'invalidValue'],
      [{ op: 'replace', path: 'active', value: 'maybe' }, 'invalidValue'],
      [{ op: 'replace', path: 'userName', value: 7 }, 'invalidValue'],
      [{ op: 'replace', path: 'unheardOf', value: 'x' }, 'invalidPath'],
      [{ op: 'replace', path: 'emails[', value: 'x' }, 'invalidPath'],
      [{ op: 'replace', path: 'emails[type eq].value', value: 'x' }, 'invalidFilter'],
      [{ op: 'replace', path: 'userName[type eq "a"]', value: 'x' }, 'invalidPath'],
      [{ op: 'replace', path: 'roles[type ne "role"].value', value: 'x' }, 'noTarget'],
      [{ op: 'replace', path: 'id', value: 'x' }, 'mutability'],
      [{ op: 'add', path: 'groups', value: [{ value: 'OrderDesk' }] }, 'mutability'],
      [{ op: 'remove' }, 'noTarget'],
      [{ op: 'remove', path: 'userName' }, 'invalidValue'],
      [{ op: 'replace', path: 'timezone', value: 'Moon/Tycho' }, 'invalidValue'],
      [{ op: 'replace', path: 'roles', value: ['NoSuchRole'] }, 'invalidValue'],
      [{ op: 'replace', path: 'roles', value: ['SalesRep', 'SalesManager'] }, 'invalidValue'],
      [{ op: 'replace', path: 'entitlements', value: [{ value: 'x', type: 'licence' }] }, 'invalidValue'],
      [{ op: 'replace', path: `${ENTERPRISE_USER}:manager`, value: NOBODY }, 'invalidValue'],
      [{ op: 'replace', path: 'externalId', value: 'x'.repeat(256) }, 'invalidValue'],
      [{ op: 'replace', path: 'displayName', value: 'x'.repeat(300) }, 'invalidValue'],
      [{ op: 'replace', path: '__proto__.active', value: 'x' }, 'invalidPath'],
      [{ op: 'replace', path: 'constructor', value: 'x' }, 'invalidPath'],
    ];
    for (const [operation, scimType] of cases)
      await refused(400, scim('PATCH', `/Users/${id}`, patch(operation)), scimType);
    await refused(400, scim('PATCH', `/Users/${id}`, { Operations: [] }), 'invalidSyntax');
    await refused(400, scim('PATCH', `/Users/${id}`, patch(...Array(1_001).fill(cases[0]![0]))), 'invalidValue');
    await refused(400, scim('POST', '/Users', {}), 'invalidValue');
    await refused(400, scim('POST', '/Users', '{"userName":'), 'invalidSyntax');
    await refused(400, scim('POST', '/Users', '[]'), 'invalidSyntax');
    await refused(400, scim('POST', '/Users'), 'invalidSyntax');
    await refused(415, scim('POST', '/Users', '<user/>', { 'content-type': 'text/xml' }));
    await refused(413, scim('POST', '/Users', `{"userName":"${'x'.repeat(LIMITS.scim_body_max_bytes)}"}`));
    const { headers } = await scim('PATCH', '/Users', {});
    assert.equal(headers.get('allow'), 'GET, POST, HEAD');
    await refused(404, scim('POST', '/Bulk', {}));
    await refused(404, scim('GET', ''));
    for (const path of ['/ServiceProviderConfig', '/ResourceTypes', '/Schemas'])
      await refused(403, scim('GET', `${path}${filtered('id eq "User"')}`));
  });

  it('names an invalid value once in its message', async () => {
    const { id } = await created();
    const said = async (operation: object, scimType = 'invalidValue'): Promise<string> =>
      (await refused(400, scim('PATCH', `/Users/${id}`, patch(operation)), scimType)).detail;
    assert.equal(
      await said({ op: 'replace', path: 'timezone', value: 'Moon/Tycho' }),
      'The record was not saved: 1 problem. timezone must be an IANA name such as Europe/Berlin.',
    );
    assert.equal(
      await said({ op: 'replace', path: 'roles', value: ['NoSuchRole'] }),
      'The record was not saved: 1 problem. roleApiName: There is no such role.',
    );
    assert.equal(
      await said({ op: 'replace', path: `${ENTERPRISE_USER}:manager.displayName`, value: 'Mia' }, 'mutability'),
      '"manager.displayName" is read-only.',
    );
    const filter = await refused(400, scim('GET', `/Users${filtered('userName is "x"')}`), 'invalidFilter');
    assert.match(filter.detail, /cannot be read\. It has the form .* as in: userName eq/);
  });

  it('answers every route', () => {
    assert.equal(new Set(SCIM_ROUTES.map(({ operationId }) => operationId)).size, SCIM_ROUTES.length);
    for (const { scopes, permission, action } of SCIM_ROUTES)
      assert.deepEqual([scopes, permission, action], [['users:manage'], 'manageUsers', 'data.scim.handle']);
  });
});
