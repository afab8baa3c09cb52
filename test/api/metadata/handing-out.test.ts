import assert from 'node:assert/strict';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';

type Files = Record<string, string>;

const set = (name: string, body: string): Files => ({
  [`permissionSets/${name}.yaml`]: `type: PermissionSet\napiName: ${name}\nlabel: ${name}\n${body}`,
});
const ADMINISTRATION = ['apiEnabled', 'manageAccess', 'manageUsers', 'metadataManage'];
const deputy = (system: readonly string[]): Files => set('Deputy', `system: [${system.join(', ')}]\n`);
const administrator = (system: readonly string[]): Files => ({
  'profiles/Administrator.yaml': `type: Profile\napiName: Administrator\nlabel: Administrator\nsystem: [${system.join(', ')}]\n`,
});
const client = (username: string): Files => ({
  'externalClients/Robot.yaml': `type: ExternalClient\napiName: Robot\nname: Robot\ngrantTypes: [client_credentials]\nconfidential: true\nscopes: ["data:read", "data:write"]\nintegrationUser: ${username}\n`,
});

/** Sam configures, manages users and clients, which entitles him to no further sight or rights. */
describe('API: users grant no more than they hold', () => {
  let platform: TestPlatform;
  let ada: Api;
  let sam: Api;
  const ids: Record<string, string> = {};
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    await deployOverHttp(ada, {
      ...set('Builder', 'system: [manageClients, manageUsers, metadataManage, metadataRead]\n'),
      ...deputy(ADMINISTRATION),
    });
    for (const name of ['ada', 'mia', 'sam', 'pat']) {
      const where = encodeURIComponent(JSON.stringify({ username: `${name}@demo.example` }));
      ids[name] = (await ada.get(`/data/User?where=${where}`)).body.records[0].id;
    }
    await give('sam', { permissionSetApiNames: ['Builder'] });
  });
  after(() => platform?.stop());

  const user = (name: string): string => `/data/User/${ids[name]}`;
  const change = async (by: Api, name: string, fields: object): Promise<Answer> =>
    by.patch(user(name), fields, { etag: (await by.get(user(name))).headers.get('etag')! });
  const give = async (name: string, fields: object): Promise<void> => {
    const answer = await change(ada, name, fields);
    assert.equal(answer.status, 200, answer.text);
  };
  const deploy = async (by: Api, files: Files): Promise<Answer['body']> => {
    const { status, body, text } = await by.post('/metadata/deploy', { files, package: wholePackage(files) });
    if (status === 403) return body;
    assert.equal(status, 202, text);
    for (let i = 0; i < 400; i++) {
      const answer = await ada.get(`/metadata/deployments/${body.deploymentId}`);
      if (['SUCCEEDED', 'FAILED'].includes(answer.body.status)) return answer.body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    return assert.fail('The deployment did not end.');
  };
  const refusals = async (files: Files): Promise<string[]> => {
    const checked = await sam.post('/metadata/validate', { files, package: wholePackage(files) });
    const deployment = await deploy(sam, files);
    assert.deepEqual([deployment.status, deployment.error.code], ['FAILED', 'PLAN_BLOCKED']);
    assert.deepEqual(checked.body.blocked, deployment.blocked, 'validate says the same');
    return deployment.blocked.map(
      ({ code, path, line }: { code: string; path: string; line: number }) => `${code} ${path}:${line}`,
    );
  };

  it('refuses permissions on objects, fields and the system in a deployment', async () => {
    const total = async (): Promise<number> => (await sam.get('/data/Opportunity__c?includeTotal=true')).body.total;
    const before = await total();
    assert.deepEqual(
      await refusals(
        set(
          'Builder',
          'system:\n  - manageAccess\n  - manageClients\n  - manageUsers\n  - metadataManage\n  - metadataRead\n  - viewAllData\nobjects:\n  Opportunity__c:\n    read: true\n    viewAll: true\n    modifyAll: true\nfields:\n  Product.standardCost:\n    read: true\n',
        ),
      ),
      [5, 10, 14, 15, 18].map((line) => `COMPONENT_PERMISSION_DENIED permissionSets/Builder.yaml:${line}`),
    );
    assert.equal(await total(), before);
    assert.equal((await sam.get('/data/Product?fields=standardCost')).status, 400);
  });

  it('refuses a hidden field in a formula', async () => {
    const copy = fieldFile(
      'Product',
      'Copy__c',
      'fieldType: formula\nformula:\n  expression: (record).standardCost\n  resultType: currency',
    );
    assert.deepEqual(await refusals(copy), ['COMPONENT_PERMISSION_DENIED objects/Product/fields/Copy__c.yaml:7']);
  });

  it("refuses access to records by other users' rules over a field", async () => {
    const field = (name: string, more: string): Files => fieldFile('Opportunity__c', name, more);
    const formula = (expression: string, type: string): string =>
      `fieldType: formula\nformula:\n  expression: ${expression}\n  resultType: ${type}`;
    const rule = (name: string, criteria: string): Files => ({
      [`objects/Opportunity__c/sharingRules/${name}.yaml`]: `type: SharingRule\napiName: ${name}\nobject: Opportunity__c\nkind: criteria\ncriteria: ${criteria}\nto:\n  role: SalesRep\naccess: read\n`,
    });
    const rollup = (childObject: string, more: string): Files =>
      fieldFile(
        'Account',
        'Figure__c',
        `fieldType: rollup\nrollup:\n  childObject: ${childObject}\n  referenceField: AccountId__c\n  ${more}`,
      );
    const fields = ['IsPublic__c', 'Weighted__c', 'Flag__c'];
    await deployOverHttp(ada, {
      ...field('IsPublic__c', formula('record.name == "nothing"', 'boolean')),
      ...field('Weighted__c', formula('record.Amount__c', 'decimal')),
      ...field('Flag__c', 'fieldType: boolean'),
      ...rule('Public', 'record.IsPublic__c'),
      ...rule('Flagged', 'record.Flag__c == true'),
      ...rollup('Opportunity__c', 'function: sum\n  field: Weighted__c'),
      ...set(
        'Fields',
        `fields:\n${fields.map((it) => `  Opportunity__c.${it}: {read: true${it === 'Flag__c' ? ', edit: true' : ''}}\n`).join('')}`,
      ),
    });
    await give('sam', { permissionSetApiNames: ['Builder', 'Fields'] });
    const total = async (): Promise<number> => (await sam.get('/data/Opportunity__c?includeTotal=true')).body.total;
    const before = await total();
    assert.ok(before > 0 && before < (await ada.get('/data/Opportunity__c?includeTotal=true')).body.total);
    const at = (path: string, ...lines: number[]): string[] =>
      lines.map((line) => `COMPONENT_PERMISSION_DENIED objects/${path}.yaml:${line}`);
    for (const [files, refused] of [
      [field('IsPublic__c', formula('record.name != ""', 'boolean')), at('Opportunity__c/fields/IsPublic__c', 6)],
      [field('Weighted__c', formula('record.Amount__c * 2', 'decimal')), at('Opportunity__c/fields/Weighted__c', 6)],
      [
        field('Flag__c', 'fieldType: boolean\nrequired: true\ndefaultValue: true'),
        at('Opportunity__c/fields/Flag__c', 6, 7),
      ],
    ] as const)
      assert.deepEqual([...new Set(await refusals(files))].sort(), refused);
    assert.equal(await total(), before);
    await give('sam', { permissionSetApiNames: ['Builder'] });
  });

  it('reveals no count of an object that is hidden from the user', async () => {
    await deployOverHttp(ada, {
      'objects/Secret__c/object.yaml':
        'type: CustomObject\napiName: Secret__c\nlabel: Secret\nlabelPlural: Secrets\nnameField:\n  label: Name\n  fieldType: text\nsharingDefault: readWrite\napi:\n  published: true\n',
      ...fieldFile('Secret__c', 'About__c', 'fieldType: reference\nreferenceTo: [Account]'),
      ...set('Fields', 'fields:\n  Secret__c.About__c: {read: true}\n'),
    });
    await give('sam', { permissionSetApiNames: ['Builder', 'Fields'] });
    assert.equal((await sam.get('/data/Secret__c')).status, 404);
    const count = 'fieldType: rollup\nrollup:\n  childObject: Secret__c\n  referenceField: About__c\n  function: count';
    assert.deepEqual(await refusals(fieldFile('Account', 'Secrets__c', count)), [
      'COMPONENT_PERMISSION_DENIED objects/Account/fields/Secrets__c.yaml:6',
    ]);
    await give('sam', { permissionSetApiNames: ['Builder'] });
  });

  it("refuses to remove other users' objects, administration and changes of users", async () => {
    const never = 'type: ValidationRule\napiName: Never\nobject: User\ncondition: "true"\nmessage: no\n';
    assert.deepEqual(await refusals({ 'objects/User/validationRules/Never.yaml': never }), [
      'COMPONENT_PERMISSION_DENIED objects/User/validationRules/Never.yaml:3',
    ]);
    const { body } = await ada.post('/metadata/retrieve', {
      package: { version: 1, types: [{ name: 'CustomObject', members: ['Opportunity__c', 'User'] }] },
    });
    for (const object of ['Opportunity__c', 'User']) {
      const path = `objects/${object}/object.yaml`;
      const hidden = body.files[path].replace('published: true', 'published: false');
      assert.notEqual(hidden, body.files[path]);
      const found = await refusals({ [path]: hidden });
      assert.ok(
        found.some((it) => it.startsWith(`COMPONENT_PERMISSION_DENIED ${path}:`)),
        String(found),
      );
    }
    await deployOverHttp(ada, set('Other', 'system: [metadataManage]\n'));
    assert.deepEqual(await refusals(set('Other', 'system: []\n')), [
      'COMPONENT_PERMISSION_DENIED permissionSets/Other.yaml:1',
    ]);
  });

  it('refuses permissions in the record of any user', async () => {
    const more = { permissionSetApiNames: ['Builder', 'CostInsight'] };
    const fresh = { displayName: 'Eva', username: 'eva@demo.example', email: 'eva@demo.example' };
    for (const answer of [
      await change(sam, 'sam', more),
      await change(sam, 'pat', more),
      await change(sam, 'pat', { profileApiName: 'Administrator' }),
      await change(sam, 'pat', { roleApiName: 'Ceo' }),
      await sam.post('/data/User', { ...fresh, profileApiName: 'Minimal', roleApiName: 'Ceo' }),
      await sam.post('/data/User', { ...fresh, profileApiName: 'Administrator' }),
    ])
      assert.deepEqual([answer.status, answer.body.code], [403, 'FIELD_PERMISSION_DENIED'], answer.text);
    for (const fields of [{ email: 'sam@elsewhere.example' }, { username: 'sam2@demo.example' }, { active: false }]) {
      const answer = await change(sam, 'ada', fields);
      assert.deepEqual([answer.status, answer.body.code], [403, 'RECORD_ACCESS_DENIED'], answer.text);
    }
  });

  it('refuses a client that acts as a user with more rights, a risk that the plan names to permitted users', async () => {
    assert.deepEqual(await refusals(client('ada@demo.example')), [
      'COMPONENT_PERMISSION_DENIED externalClients/Robot.yaml:7',
    ]);
    const files = client('ada@demo.example');
    const { body } = await ada.post('/metadata/validate', { files, package: wholePackage(files) });
    assert.equal(body.valid, true);
    assert.deepEqual(
      body.warnings.map(({ code, line }: { code: string; line: number }) => [code, line]),
      [['ACTS_AS_USER', 7]],
    );
  });

  it('refuses policies that permit agents more, and accepts those that deny more', async () => {
    const policy = (name: string, rest: object): Files => ({
      [`agentPolicies/${name}.yaml`]: JSON.stringify({
        type: 'AgentPolicy',
        apiName: name,
        appliesTo: { clients: ['erp-cli'] },
        ...rest,
      }),
    });
    const allow = { rules: [{ risk: 'high', decision: 'allow' }] };
    const deny = { rules: [{ operationIds: ['data.records.delete'], decision: 'deny' }] };
    assert.deepEqual(await refusals(policy('Open', { ...allow, allowSelfApproval: true })), [
      'COMPONENT_PERMISSION_DENIED agentPolicies/Open.yaml:1',
    ]);
    assert.equal((await deploy(sam, policy('Strict', deny))).status, 'SUCCEEDED');
    assert.deepEqual(await refusals(policy('Strict', { rules: [] })), [
      'COMPONENT_PERMISSION_DENIED agentPolicies/Strict.yaml:1',
    ]);
    assert.equal((await deploy(ada, policy('Strict', allow))).status, 'SUCCEEDED');
  });

  it('refuses rights for which the permission was lost while the deployment waited', async () => {
    const schema = `"t_${(await ada.get('/identity')).body.tenant.id.replaceAll('-', '')}"`;
    const { Client } = (await import('pg')).default;
    const other = new Client(platform.database.url);
    await other.connect();
    try {
      await other.query('BEGIN');
      await other.query(`SELECT FROM ${schema}._state FOR UPDATE`);
      const waiting = deploy(sam, set('Later', 'system: [metadataRead]\n'));
      const waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      await until(async () => (await other.query(waits)).rowCount! > 0);
      await other.query(`UPDATE ${schema}."User" SET "permissionSetApiNames" = '{}' WHERE "id" = $1`, [ids['sam']]);
      await other.query(`UPDATE ${schema}._state SET access_version = access_version + 1`);
      await other.query('COMMIT');
      const { status, blocked } = await waiting;
      assert.equal(status, 'FAILED');
      assert.match(JSON.stringify(blocked), /may not manage configuration any more/);
    } finally {
      await other.end();
    }
    await give('sam', { permissionSetApiNames: ['Builder'] });
  });

  it("keeps a tenant's administrators: in a deployment", async () => {
    const { status, blocked } = await deploy(ada, administrator(['apiEnabled', 'metadataManage', 'metadataRead']));
    assert.equal(status, 'FAILED');
    assert.deepEqual(
      blocked.map(({ message }: { message: string }) => /who holds (\w+)/.exec(message)?.[1]),
      ['manageAccess'],
      'Sam manages users',
    );
    const disabled = await deploy(ada, administrator(['manageAccess', 'manageUsers', 'metadataManage']));
    assert.equal(disabled.status, 'FAILED', 'who cannot use the API is no administrator either');
  });

  it("keeps a tenant's administrators: in two simultaneous changes", async function () {
    this.timeout(60_000);
    const mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    const less = ['apiEnabled', 'metadataRead'];
    for (let round = 0; round < 4; round++) {
      await give('mia', { permissionSetApiNames: ['Deputy'] });
      // Each of the two changes is valid by itself: one removes Ada's permissions, the other Mia's.
      const changes = [
        async () => (await deploy(mia, administrator(less))).status === 'SUCCEEDED',
        round % 2 === 0
          ? async () => (await change(ada, 'mia', { permissionSetApiNames: [] })).status === 200
          : async () => (await deploy(ada, deputy(less))).status === 'SUCCEEDED',
      ];
      const won = await Promise.all(changes.map((one) => one()));
      assert.equal(won.filter(Boolean).length, 1, `round ${round}: ${won}`);
      const left = won[0] ? mia : ada;
      const restored = { ...administrator([...ADMINISTRATION, 'manageClients', 'metadataRead', 'modifyAllData']) };
      await deployOverHttp(left, { ...restored, ...deputy(ADMINISTRATION) });
    }
  });
});
