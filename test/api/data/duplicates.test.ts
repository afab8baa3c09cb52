/** Duplicate rules over HTTP: reported and hidden matches, and the scope of a confirmation. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Database } from '../../../mixins/database/database.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Answer, type Api, api, type CallOptions, tokenFor } from '../../support/client.ts';
import { deployOverHttp, fieldFile, objectFiles, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const OBJECT = 'Partner__c';

interface Rule {
  action?: string;
  scope?: string;
  reveal?: boolean;
  threshold?: number;
  active?: boolean;
  label?: string;
  match: [field: string, method: string, weight?: number][];
}

const ruleFile = (apiName: string, rule: Rule) => ({
  [`objects/${OBJECT}/duplicateRules/${apiName}.yaml`]: [
    'type: DuplicateRule',
    `apiName: ${apiName}`,
    `object: ${OBJECT}`,
    ...(rule.label ? [`label: ${rule.label}`] : []),
    `active: ${rule.active ?? true}`,
    `action: ${rule.action ?? 'confirm'}`,
    `scope: ${rule.scope ?? 'visible'}`,
    `revealHiddenCount: ${rule.reveal ?? false}`,
    `threshold: ${rule.threshold ?? 1}`,
    'match:',
    ...rule.match.flatMap(([field, method, weight = 1]) => [
      `  - field: ${field}`,
      `    method: ${method}`,
      `    weight: ${weight}`,
    ]),
    '',
  ].join('\n'),
});

const FIELDS: Record<string, string> = {
  TaxId__c: 'fieldType: text\nlength: 20',
  Code__c: 'fieldType: text\nlength: 30',
  Key__c: 'fieldType: text\nlength: 30',
  Extern__c: 'fieldType: text\nexternalId: true\nlength: 30',
  Phone__c: 'fieldType: phone',
  Site__c: 'fieldType: url',
  Mail__c: 'fieldType: email',
  City__c: 'fieldType: text',
  Title__c: 'fieldType: text',
  Motto__c: 'fieldType: text\nlength: 4000',
  Rank__c: 'fieldType: integer',
  Secret__c: 'fieldType: text',
  Nick__c: 'fieldType: text\nlength: 200',
  Alias__c: 'fieldType: text',
  Firm__c: 'fieldType: text',
  Phase__c: 'fieldType: picklist\npicklist:\n  restricted: true\n  values:\n    - value: open\n    - value: taken',
  Town__c: 'fieldType: text',
  Kind__c: 'fieldType: text\ndefaultValue: standard',
  AccountId__c: 'fieldType: reference\nreferenceTo:\n  - Account\nrelationshipName: Partners__r\nonDelete: setNull',
};

const PERMISSIONS = [
  'type: PermissionSet',
  'apiName: Partners',
  'label: Partners',
  'objects:',
  `  ${OBJECT}:`,
  ...['create', 'read', 'update', 'delete'].map((name) => `    ${name}: true`),
  'fields:',
  ...Object.keys(FIELDS)
    .filter((name) => name !== 'Secret__c' && name !== 'Kind__c')
    .flatMap((name) => [`  ${OBJECT}.${name}:`, '    read: true', '    edit: true']),
  '',
].join('\n');

const RULES = {
  ...ruleFile('SameTaxId', { label: 'Same tax number', match: [['TaxId__c', 'normalized']] }),
  ...ruleFile('SameCode', { action: 'block', match: [['Code__c', 'exact']] }),
  ...ruleFile('SameKey', { action: 'block', scope: 'all', match: [['Key__c', 'exact']] }),
  ...ruleFile('SamePhone', { scope: 'all', reveal: true, match: [['Phone__c', 'normalized']] }),
  ...ruleFile('SameMail', { scope: 'all', match: [['Mail__c', 'normalized']] }),
  ...ruleFile('SameSite', { reveal: true, match: [['Site__c', 'normalized']] }),
  ...ruleFile('LikeTitle', { action: 'block', threshold: 0.6, match: [['Title__c', 'fuzzy']] }),
  ...ruleFile('NameAndCity', {
    threshold: 0.7,
    match: [
      ['name', 'fuzzy', 2],
      ['City__c', 'normalized', 1],
    ],
  }),
  ...ruleFile('Motto', { match: [['Motto__c', 'exact']] }),
  ...ruleFile('AccountRank', {
    match: [
      ['AccountId__c', 'exact'],
      ['Rank__c', 'exact'],
    ],
  }),
  ...ruleFile('Secret', {
    threshold: 0.5,
    match: [
      ['Secret__c', 'exact', 5],
      ['Rank__c', 'exact', 1],
      ['City__c', 'exact', 4],
    ],
  }),
  ...ruleFile('LikeNick', { threshold: 0.6, match: [['Nick__c', 'fuzzy']] }),
  ...ruleFile('LikeAlias', {
    scope: 'all',
    threshold: 0.7,
    match: [
      ['Alias__c', 'fuzzy', 2],
      ['Kind__c', 'exact', 1],
    ],
  }),
  ...ruleFile('LikeFirm', {
    threshold: 0.85,
    match: [
      ['Firm__c', 'fuzzy', 3],
      ['Town__c', 'normalized', 1],
    ],
  }),
  ...ruleFile('OnlySecret', { match: [['Secret__c', 'normalized']] }),
  ...ruleFile('Off', { active: false, action: 'block', match: [['Rank__c', 'exact']] }),
};

const MODEL_FILE = [
  'type: StateModel',
  'apiName: Life',
  `object: ${OBJECT}`,
  'field: Phase__c',
  'initial: open',
  'allowDirectEdit: false',
  'transitions:',
  '  - key: take',
  '    label: Take',
  '    from:',
  '      - open',
  '    to: taken',
  '    input:',
  '      type: object',
  '      properties:',
  '        taxId:',
  '          type: string',
  '    effects:',
  '      - verb: updateFields',
  '        fields:',
  '          TaxId__c: input.taxId',
  '',
].join('\n');

const SECOND_CLIENT = {
  user: 'sam@demo.example',
  password: 'demo-password',
  clientId: 'demo-Second',
  scope: 'data:read data:write',
};
const SECOND_CLIENT_FILE = [
  'type: ExternalClient',
  'apiName: Second',
  'name: Second',
  'redirectUris:',
  '  - http://127.0.0.1:8976/callback',
  'scopes:',
  '  - data:read',
  '  - data:write',
  'grantTypes:',
  '  - authorization_code',
  '',
].join('\n');

const DUPLICATES_ON = 'features:\n  history: true\n  search: true\n  duplicates: true\n  events: true\n';

describe('duplicate rules', function () {
  this.timeout(120_000);
  let platform: TestPlatform;
  let sam: Api;
  let sue: Api;
  let ada: Api;
  let schema: string;
  let database: Database;

  before(async () => {
    platform = await startPlatform();
    database = new Database(platform.database.url, { size: 1, applicationName: 'test' });
    [sam, sue, ada] = (await Promise.all(
      ['sam', 'sue', 'ada'].map(async (user) => api(platform.baseUrl, await tokenFor(platform.baseUrl, user))),
    )) as [Api, Api, Api];
    const { body } = await ada.get('/identity');
    schema = `"t_${body.tenant.id.replaceAll('-', '')}"`;
    const object = objectFiles(OBJECT, {}, `sharingDefault: private\n${DUPLICATES_ON}`);
    const fields = Object.entries(FIELDS).map(([name, yaml]) => fieldFile(OBJECT, name, yaml));
    await deploy(
      Object.assign(
        {
          'permissionSets/Partners.yaml': PERMISSIONS,
          'externalClients/Second.yaml': SECOND_CLIENT_FILE,
          [`objects/${OBJECT}/stateModels/Life.yaml`]: MODEL_FILE,
        },
        object,
        ...fields,
        RULES,
      ),
    );
    for (const name of ['sam', 'sue']) {
      const user = (
        await ada.get(`/data/User?where=${JSON.stringify({ username: `${name}@demo.example` })}&includeEtag=true`)
      ).body.records[0];
      const reply = await ada.patch(
        `/data/User/${user.id}`,
        { permissionSetApiNames: ['Partners'] },
        { etag: user._etag },
      );
      assert.equal(reply.status, 200, reply.text);
    }
  });
  after(async () => {
    await database?.close();
    await platform?.stop();
  });

  const project = (files: Record<string, string>) => ({ files, package: wholePackage(files) });
  const deploy = (files: Record<string, string>): Promise<void> => deployOverHttp(ada, files);

  let counter = 0;
  const unique = (text: string): string => `${text} ${randomUUID().slice(0, 8)}${counter++}`;
  const create = (body: Record<string, unknown>, who = sam, options: CallOptions = {}) =>
    who.post(`/data/${OBJECT}`, { name: unique('Partner'), ...body }, options);
  async function created(body: Record<string, unknown>, who = sam): Promise<Answer> {
    const reply = await create(body, who);
    assert.equal(reply.status, 201, reply.text);
    return reply;
  }
  const confirming = (token: string, more: CallOptions = {}): CallOptions => ({
    ...more,
    headers: { 'X-Duplicate-Confirmation': token, ...more.headers },
  });
  const firedRules = (reply: Answer): string[] => {
    assert.equal(reply.status, 409, reply.text);
    assert.equal(reply.body.code, 'DUPLICATE_RULE');
    return reply.body.details.rules.map((rule: { ruleApiName: string }) => rule.ruleApiName);
  };
  const query = async (text: string, values: unknown[] = []) => (await database.query(text, values)).rows;

  it('report possible duplicates of a record, and store it once it is confirmed', async () => {
    const first = await created({ name: 'Acme GmbH', TaxId__c: 'DE 123' });
    const body = { name: 'Another', TaxId__c: 'de-123' };
    const key = randomUUID();
    const refused = await sam.post(`/data/${OBJECT}`, body, { idempotencyKey: key });
    assert.equal(refused.status, 409, refused.text);
    const { details, ...rest } = refused.body;
    assert.equal(rest.code, 'DUPLICATE_RULE');
    assert.equal(rest.message, 'A similar record exists.');
    assert.equal(rest.retryable, false);
    assert.match(details.confirmationToken, /^dct_[A-Za-z0-9_-]+$/);
    assert.match(details.confirmationExpiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    const left = Date.parse(details.confirmationExpiresAt) - Date.now();
    assert.ok(left > 14 * 60_000 && left <= 15 * 60_000, `${left} ms`);
    assert.deepEqual(
      { ...details, confirmationToken: '', confirmationExpiresAt: '' },
      {
        rules: [
          {
            ruleApiName: `${OBJECT}.SameTaxId`,
            label: 'Same tax number',
            action: 'confirm',
            matches: [
              {
                objectApiName: OBJECT,
                id: first.body.id,
                displayName: 'Acme GmbH',
                score: 1,
                matchedFields: ['TaxId__c'],
                record: { name: 'Acme GmbH', TaxId__c: 'DE 123' },
              },
            ],
            hiddenMatchCount: 0,
          },
        ],
        confirmable: true,
        confirmationToken: '',
        confirmationExpiresAt: '',
      },
    );

    const sameKey = await sam.post(
      `/data/${OBJECT}`,
      body,
      confirming(details.confirmationToken, { idempotencyKey: key }),
    );
    assert.equal(sameKey.body.code, 'IDEMPOTENCY_KEY_REUSED', 'a confirmed request is another request');
    const options = confirming(details.confirmationToken, { idempotencyKey: randomUUID() });
    const stored = await sam.post(`/data/${OBJECT}`, body, options);
    assert.equal(stored.status, 201, stored.text);
    assert.equal(stored.headers.get('etag'), '"1"');
    const again = await sam.post(`/data/${OBJECT}`, body, options);
    assert.equal(again.status, 201, again.text);
    assert.equal(again.headers.get('idempotency-replayed'), 'true');
    assert.equal(again.text, stored.text);

    const audit = await query(
      `SELECT outcome, code, user_id IS NOT NULL AS by, changes FROM ${schema}._audit WHERE record_id = $1 AND code = 'DUPLICATE_RULE'`,
      [stored.body.id],
    );
    assert.deepEqual(audit, [
      {
        outcome: 'committed',
        code: 'DUPLICATE_RULE',
        by: true,
        changes: { [`${OBJECT}.SameTaxId`]: { from: null, to: [first.body.id] } },
      },
    ]);
  });

  it('check an update when one of their fields changes, and never match the record itself', async () => {
    const taxId = unique('T');
    const first = await created({ TaxId__c: taxId });
    const second = await created({});
    const path = `/data/${OBJECT}/${second.body.id}`;
    const refused = await sam.patch(path, { TaxId__c: taxId.toLowerCase() }, { etag: '"1"' });
    assert.deepEqual(firedRules(refused), [`${OBJECT}.SameTaxId`]);
    assert.deepEqual(
      refused.body.details.rules[0].matches.map((match: { id: string }) => match.id),
      [first.body.id],
    );
    const token = refused.body.details.confirmationToken;
    const stored = await sam.patch(path, { TaxId__c: taxId.toLowerCase() }, confirming(token, { etag: '"1"' }));
    assert.equal(stored.status, 200, stored.text);
    assert.equal((await sam.patch(path, { City__c: 'Ulm' }, { etag: '"2"' })).status, 200, 'another field');
    assert.equal((await sam.patch(path, { TaxId__c: taxId.toLowerCase() }, { etag: '"3"' })).status, 200, 'no change');
    const changed = await sam.patch(path, { TaxId__c: `${taxId}.` }, { etag: '"3"' });
    assert.deepEqual(firedRules(changed), [`${OBJECT}.SameTaxId`]);
    assert.equal((await sam.patch(path, { TaxId__c: null }, { etag: '"3"' })).status, 200, 'blank matches nothing');
    const stale = await sam.patch(path, { TaxId__c: taxId }, { etag: '"1"' });
    assert.equal(stale.status, 412, 'the ETag comes first');
  });

  it('run after validation, and after references to unknown records', async () => {
    const code = unique('C');
    await created({ Code__c: code });
    const invalid = await create({ Code__c: code, Rank__c: 'first' });
    assert.equal(invalid.status, 422, invalid.text);
    const missing = await create({ Code__c: code, AccountId__c: randomUUID() });
    assert.equal(missing.status, 422, missing.text);
    assert.equal(missing.body.errors[0].code, 'REFERENCE_NOT_FOUND');
    const blocked = await create({ Code__c: code });
    assert.deepEqual(firedRules(blocked), [`${OBJECT}.SameCode`]);
    const { confirmable, confirmationToken, confirmationExpiresAt, rules } = blocked.body.details;
    assert.deepEqual([confirmable, confirmationToken, confirmationExpiresAt], [false, null, null]);
    assert.equal(rules[0].action, 'block');
    assert.equal(rules[0].label, 'Same code');
  });

  it('block all matches together when one of the rules blocks', async () => {
    const [code, taxId] = [unique('C'), unique('T')];
    await created({ Code__c: code, TaxId__c: taxId });
    const reply = await create({ Code__c: code, TaxId__c: taxId });
    assert.deepEqual(firedRules(reply).sort(), [`${OBJECT}.SameCode`, `${OBJECT}.SameTaxId`]);
    assert.equal(reply.body.details.confirmable, false);
    assert.equal(reply.body.details.confirmationToken, null);
  });

  it('refuse a confirmation of any other request, and store nothing', async () => {
    const taxId = unique('T');
    await created({ TaxId__c: taxId });
    const target = await created({});
    const body = { name: unique('Twin'), TaxId__c: taxId };
    const post = (given: unknown, token: string, who = sam) => who.post(`/data/${OBJECT}`, given, confirming(token));
    const tokenOf = async (given: unknown = body): Promise<string> =>
      (await sam.post(`/data/${OBJECT}`, given)).body.details.confirmationToken;
    const token = await tokenOf();
    const count = async () => Number((await query(`SELECT count(*) AS n FROM ${schema}."${OBJECT}"`))[0]!['n']);
    const before = await count();
    const refused = async (what: string, reply: Promise<Answer>): Promise<void> => {
      const { status, body: error, text } = await reply;
      assert.equal(status, 400, `${what}: ${text}`);
      assert.equal(error.code, 'CONFIRMATION_TOKEN_INVALID', what);
      assert.equal(error.errors[0].pointer, 'header:X-Duplicate-Confirmation');
    };
    for (const bad of ['', 'dct_', 'dct_AAAA', `x${token}`, `${token}A`, token.slice(0, -2)])
      await refused(`altered: ${bad.slice(0, 12)}`, post(body, bad));
    const at = Math.floor(token.length / 2);
    await refused(
      'one character',
      post(body, `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`),
    );
    await refused('another body', post({ ...body, City__c: 'Ulm' }, token));
    await refused(
      'another record',
      sam.patch(`/data/${OBJECT}/${target.body.id}`, body, confirming(token, { etag: '"1"' })),
    );
    await refused('another object', sam.post('/data/Account', { name: 'x' }, confirming(token)));
    await refused('without a match', post({ name: unique('Alone') }, token));
    await refused('another user', post(body, token, sue));
    const second = await signIn({ ...SECOND_CLIENT, baseUrl: platform.baseUrl });
    await refused('another client', post(body, token, api(platform.baseUrl, second.access_token)));
    const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    await refused('another tenant', eve.post('/data/Account', { name: 'x' }, confirming(token)));
    assert.equal(await count(), before, 'nothing was stored');

    const stored = await post({ TaxId__c: body.TaxId__c, name: body.name }, token);
    assert.equal(stored.status, 201, 'the order of the members makes no other body');
    await refused('used before', post(body, token));
    assert.equal(await count(), before + 1);
  });

  it('apply to an upsert, whether it creates or updates', async () => {
    const taxId = unique('T');
    await created({ TaxId__c: taxId });
    const path = `/data/${OBJECT}/by/Extern__c/${encodeURIComponent(unique('E'))}`;
    const body = { name: unique('Upserted'), TaxId__c: taxId };
    const refused = await sam.put(path, body);
    assert.deepEqual(firedRules(refused), [`${OBJECT}.SameTaxId`]);
    const token = refused.body.details.confirmationToken;
    assert.equal((await sam.put(`${path}x`, body, confirming(token))).status, 400, 'another address');
    const made = await sam.put(path, body, confirming(token));
    assert.equal(made.status, 201, made.text);
    const changed = { ...body, TaxId__c: `${taxId}.` };
    const again = await sam.put(path, changed);
    assert.deepEqual(firedRules(again), [`${OBJECT}.SameTaxId`]);
    const stored = await sam.put(path, changed, confirming(again.body.details.confirmationToken));
    assert.equal(stored.status, 200, stored.text);
  });

  it('apply to a transition, which continues with the token', async () => {
    const taxId = unique('T');
    const first = await created({ TaxId__c: taxId });
    const [target, other] = [await created({}), await created({})];
    const take = (id: string, input: object, options: CallOptions = {}): Promise<Answer> =>
      sam.post(`/data/${OBJECT}/${id}/transitions/take`, { input }, { etag: '"1"', ...options });
    const refused = await take(target.body.id, { taxId });
    assert.deepEqual(firedRules(refused), [`${OBJECT}.SameTaxId`]);
    assert.equal(refused.body.details.rules[0].matches[0].id, first.body.id);
    assert.equal((await sam.get(`/data/${OBJECT}/${target.body.id}`)).body.Phase__c, 'open', 'nothing has happened');
    const token = refused.body.details.confirmationToken;
    for (const [id, input] of [
      [target.body.id, { taxId: `${taxId}.` }],
      [other.body.id, { taxId }],
    ])
      assert.equal((await take(id, input, confirming(token))).body.code, 'CONFIRMATION_TOKEN_INVALID');
    const dry = await sam.post(`/data/${OBJECT}/check`, {
      operation: 'transition',
      id: target.body.id,
      transitionKey: 'take',
      ifMatch: '"1"',
      input: { taxId },
      duplicateConfirmation: token,
    });
    assert.deepEqual([dry.status, dry.body.valid], [200, true], dry.text);
    const options = confirming(token, { idempotencyKey: randomUUID() });
    const done = await take(target.body.id, { taxId }, options);
    assert.deepEqual([done.status, done.body.record.Phase__c, done.body.record.TaxId__c], [201, 'taken', taxId]);
    const again = await take(target.body.id, { taxId }, options);
    assert.deepEqual([again.status, again.text], [201, done.text]);
  });

  it('use a confirmation once when two requests carry it at the same time', async () => {
    const taxId = unique('T');
    await created({ TaxId__c: taxId });
    const body = { name: unique('Twin'), TaxId__c: taxId };
    const token = (await sam.post(`/data/${OBJECT}`, body)).body.details.confirmationToken;
    const replies = await Promise.all(
      Array.from({ length: 4 }, () => sam.post(`/data/${OBJECT}`, body, confirming(token))),
    );
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [201, 400, 400, 400]);
  });

  it('require confirmation again when there are new matches', async () => {
    const taxId = unique('T');
    const first = await created({ TaxId__c: taxId });
    const body = { name: unique('Late'), TaxId__c: taxId };
    const shown = await sam.post(`/data/${OBJECT}`, body);
    const other = { name: unique('Meanwhile'), TaxId__c: taxId };
    const token = (await sam.post(`/data/${OBJECT}`, other)).body.details.confirmationToken;
    const second = await sam.post(`/data/${OBJECT}`, other, confirming(token));
    assert.equal(second.status, 201, second.text);

    const again = await sam.post(`/data/${OBJECT}`, body, confirming(shown.body.details.confirmationToken));
    assert.deepEqual(firedRules(again), [`${OBJECT}.SameTaxId`]);
    assert.deepEqual(
      again.body.details.rules[0].matches.map((match: { id: string }) => match.id).sort(),
      [first.body.id, second.body.id].sort(),
    );
    assert.notEqual(again.body.details.confirmationToken, shown.body.details.confirmationToken);
    const { etag } = { etag: '"1"' };
    assert.equal((await sam.delete(`/data/${OBJECT}/${first.body.id}`, { etag })).status, 200);
    const fewer = await sam.post(`/data/${OBJECT}`, body, confirming(again.body.details.confirmationToken));
    assert.equal(fewer.status, 201, fewer.text);
  });

  it('report the result in a dry run, and use nothing up', async () => {
    const taxId = unique('T');
    const first = await created({ TaxId__c: taxId });
    const body = { name: unique('Dry'), TaxId__c: taxId };
    const dry = await sam.post(`/data/${OBJECT}/check`, { operation: 'create', fields: body });
    assert.equal(dry.status, 200, dry.text);
    assert.equal(dry.body.valid, false);
    assert.equal(dry.body.duplicates[0].matches[0].id, first.body.id);
    const token = (await sam.post(`/data/${OBJECT}`, body)).body.details.confirmationToken;
    const check = { operation: 'create', fields: body, duplicateConfirmation: token };
    const tried = await sam.post(`/data/${OBJECT}/check`, check);
    assert.deepEqual([tried.status, tried.body.valid, tried.body.duplicates], [200, true, []]);
    assert.equal((await sam.post(`/data/${OBJECT}`, body, confirming(token))).status, 201);
  });

  it('find other spellings', async () => {
    const same: [field: string, a: string, b: string][] = [
      ['TaxId__c', 'ÄÖ-1 2', 'ao12'],
      ['Phone__c', '+49 (0)30 777001', '0049 30/777 001'],
      ['Mail__c', 'Ada.Müller@Example.com', 'ada.müller@example.COM'],
      ['Site__c', 'https://www.Example.com/a/', 'http://example.com/a'],
      ['Code__c', 'Größe 7', 'GRÖßE 7'],
      ['Motto__c', 'x'.repeat(3_000), 'X'.repeat(3_000)],
    ];
    for (const [field, a, b] of same) {
      await created({ [field]: a });
      assert.equal(firedRules(await create({ [field]: b })).length, 1, field);
    }
    const different: [field: string, a: string, b: string][] = [
      ['Phone__c', '+49 30 888001', '030 888001'],
      ['Phone__c', '+49 30 888002 x1', '+49 30 888002 x2'],
      ['Mail__c', 'a.b@example.com', 'ab@example.com'],
      ['Site__c', 'https://example.com/b', 'https://example.com/c'],
      ['Code__c', 'Grosse 8', 'Größe 8'],
      ['Motto__c', `${'y'.repeat(3_000)}1`, `${'y'.repeat(3_000)}2`],
      ['TaxId__c', '---', '...'],
    ];
    for (const [field, a, b] of different) {
      await created({ [field]: a });
      assert.equal((await create({ [field]: b })).status, 201, field);
    }
  });

  it('score by weight and similarity, list the best match first and name the matching fields', async () => {
    const near = await created({ name: 'Nordwind Maschinenbau Handels', City__c: 'Kiel' });
    const nearer = await created({ name: 'Nordwind Maschinenbau Handel', City__c: 'Bremen' });
    const reply = await create({ name: 'Nordwind Maschinenbau', City__c: 'KIEL ' });
    assert.deepEqual(firedRules(reply), [`${OBJECT}.NameAndCity`]);
    const [match, ...others] = reply.body.details.rules[0].matches;
    assert.equal(match.id, near.body.id);
    assert.deepEqual(match.matchedFields, ['name', 'City__c']);
    assert.ok(match.score > 0.7 && match.score < 1, String(match.score));
    assert.deepEqual(match.record, { name: 'Nordwind Maschinenbau Handels', City__c: 'Kiel' });
    assert.deepEqual(others, [], `${nearer.body.id} is in another city`);
    const [{ score }] = (await query(
      `SELECT round(((2 * public.similarity('nordwind maschinenbau handels', 'nordwind maschinenbau') + 1) / 3)::numeric, 4)::float8 AS score`,
    )) as [{ score: number }];
    assert.equal(match.score, score);
  });

  it('compare similar texts of any script', async () => {
    await created({ Title__c: 'Заместитель директора' });
    assert.deepEqual(firedRules(await create({ Title__c: 'заместитель  директорa' })), [`${OBJECT}.LikeTitle`]);
    await created({ Title__c: '東京都港区赤坂支店長' });
    assert.deepEqual(firedRules(await create({ Title__c: '東京都港区赤坂支店' })), [`${OBJECT}.LikeTitle`]);
    assert.equal((await create({ Title__c: 'Assistant' })).status, 201);
    await created({ Title__c: 'Prokurist' });
    assert.deepEqual(firedRules(await create({ Title__c: 'PROKURIST.' })), [`${OBJECT}.LikeTitle`], 'a short text');
    assert.deepEqual(firedRules(await create({ Title__c: 'Prokuristen' })), [`${OBJECT}.LikeTitle`], 'a short text');
  });

  it('find the match among thousands that share a value', async () => {
    await query(
      `INSERT INTO ${schema}."${OBJECT}" (id, "ownerId", "createdAt", "createdById", "updatedAt", "updatedById", name, "Firm__c", "Town__c")
        SELECT ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, u.id, now(), u.id, now(), u.id, 'Firm ' || n, md5(n::text), 'Berlin'
        FROM generate_series(1, 3000) n, ${schema}."User" u WHERE u.username = 'sam@demo.example'`,
    );
    const last = await created({ Firm__c: 'Oderbruch Landtechnik', Town__c: 'Berlin' });
    const reply = await create({ Firm__c: 'Oderbruch Landtechnik KG', Town__c: 'BERLIN' });
    assert.deepEqual(firedRules(reply), [`${OBJECT}.LikeFirm`]);
    assert.deepEqual(
      reply.body.details.rules[0].matches.map((match: { id: string }) => match.id),
      [last.body.id],
    );
    assert.equal((await create({ Firm__c: 'Oderbruch Landtechnik KG', Town__c: 'Bern' })).status, 201);
  });

  it('search texts of every length that similar ones can have', async () => {
    const [{ wrong }] = (await query(
      `SELECT count(*)::int AS wrong FROM generate_series(1, 300) a, generate_series(1, 300) b, (VALUES (0.1), (0.5), (0.8), (1)) v(s)
        WHERE least(a, b) >= s * greatest(a, b)
          AND erp.size_class(b) NOT BETWEEN erp.size_class(ceil(a * s)::bigint) AND erp.size_class(floor(a / s)::bigint)`,
    )) as [{ wrong: number }];
    assert.equal(wrong, 0);
    const [{ classes, none }] = (await query(
      `SELECT erp.fuzzy_classes('Prokurist', 0.8::float8) AS classes, erp.fuzzy_class(' - ') AS none`,
    )) as [{ classes: number[]; none: null }];
    assert.deepEqual([classes, none], [[8, 9, 10, 11, 12], null], 'Prokurist has ten trigrams');
  });

  it('compare references, also those given by an external id, and numbers', async () => {
    const account = await sam.post('/data/Account', { name: unique('Account') });
    await created({ AccountId__c: account.body.id, Rank__c: 7 });
    assert.deepEqual(firedRules(await create({ AccountId__c: account.body.id, Rank__c: 7 })), [
      `${OBJECT}.AccountRank`,
    ]);
    assert.equal((await create({ AccountId__c: account.body.id, Rank__c: 8 })).status, 201);
    assert.equal((await create({ AccountId__c: account.body.id })).status, 201, 'half of the fields is not enough');
    const other = await created({ Rank__c: 7 });
    const moved = await sam.patch(
      `/data/${OBJECT}/${other.body.id}`,
      { AccountId__c: account.body.id },
      { etag: '"1"' },
    );
    assert.deepEqual(firedRules(moved), [`${OBJECT}.AccountRank`], 'the stored number counts with the new reference');
  });

  it('show ten matches at most', async () => {
    const taxId = unique('T');
    for (let i = 0; i < 12; i++) {
      const body = { name: unique('Many'), TaxId__c: taxId };
      const reply = await sam.post(`/data/${OBJECT}`, body);
      if (reply.status === 409) {
        const stored = await sam.post(`/data/${OBJECT}`, body, confirming(reply.body.details.confirmationToken));
        assert.equal(stored.status, 201, stored.text);
      }
    }
    const ids = (await create({ TaxId__c: taxId })).body.details.rules[0].matches.map(
      (match: { id: string }) => match.id,
    );
    assert.equal(ids.length, 10);
    assert.deepEqual(ids, [...ids].sort(), 'equal scores stand in the order of ids');
  });

  describe('and hidden data', () => {
    const shapeOf = (reply: Answer): string =>
      JSON.stringify([
        reply.status,
        { ...reply.body, id: '', name: '', createdAt: '', updatedAt: '', requestId: '' },
        [...reply.headers.keys()].sort(),
      ]);

    it('a hidden match looks exactly like no match', async () => {
      const taxId = unique('T');
      await created({ TaxId__c: taxId, City__c: 'Hidden' }, sue);
      const hidden = await create({ TaxId__c: taxId });
      const none = await create({ TaxId__c: taxId.replace('T', 'U') });
      assert.equal(hidden.status, 201, hidden.text);
      assert.equal(shapeOf(hidden).replaceAll(taxId, ''), shapeOf(none).replaceAll(taxId.replace('T', 'U'), ''));
      const seen = await create({ TaxId__c: taxId });
      assert.deepEqual(
        seen.body.details.rules[0].matches.map((match: { id: string }) => match.id),
        [hidden.body.id],
        'the hidden one is not listed beside the visible one',
      );
      assert.equal(seen.body.details.rules[0].hiddenMatchCount, 0);
    });

    it('a rule over all records fires without naming matches, and counts them only when configured to', async () => {
      const key = unique('K');
      await created({ Key__c: key }, sue);
      const blocked = await create({ Key__c: key });
      assert.deepEqual(firedRules(blocked), [`${OBJECT}.SameKey`]);
      assert.deepEqual(blocked.body.details.rules[0].matches, []);
      assert.equal(blocked.body.details.rules[0].hiddenMatchCount, 0);

      await created({ Phone__c: '+49 30 555001' }, sue);
      const counted = await create({ Phone__c: '+49 30 555001' });
      assert.deepEqual(counted.body.details.rules[0].matches, []);
      assert.equal(counted.body.details.rules[0].hiddenMatchCount, 1);
      assert.equal(counted.body.details.confirmable, true);

      await created({ Mail__c: 'hidden@example.com' }, sue);
      const body = { name: unique('M'), Mail__c: 'hidden@example.com' };
      const uncounted = await sam.post(`/data/${OBJECT}`, body);
      assert.deepEqual(uncounted.body.details.rules[0].matches, []);
      assert.equal(uncounted.body.details.rules[0].hiddenMatchCount, 0);
      const stored = await sam.post(`/data/${OBJECT}`, body, confirming(uncounted.body.details.confirmationToken));
      assert.equal(stored.status, 201, stored.text);
    });

    it('a rule over visible records counts hidden ones only together with a visible match', async () => {
      await created({ Site__c: 'https://hidden.example' }, sue);
      const own = await created({ Site__c: 'https://hidden.example' });
      const reply = await create({ Site__c: 'https://hidden.example' });
      assert.equal(reply.body.details.rules[0].hiddenMatchCount, 1);
      assert.deepEqual(
        reply.body.details.rules[0].matches.map((match: { id: string }) => match.id),
        [own.body.id],
      );
    });

    it('an unreadable field has no part in the score, and a rule of such fields does not run', async () => {
      const secret = unique('S');
      const city = unique('City');
      const stored = await ada.post(`/data/${OBJECT}`, {
        name: unique('Open'),
        Secret__c: secret,
        City__c: city,
        Rank__c: 3,
      });
      assert.equal(stored.status, 201, stored.text);
      await query(
        `UPDATE ${schema}."${OBJECT}" SET "ownerId" = (SELECT id FROM ${schema}."User" WHERE username = 'sam@demo.example') WHERE id = $1`,
        [stored.body.id],
      );
      const seen = await create({ City__c: city });
      const rule = seen.body.details.rules.find(
        (one: { ruleApiName: string }) => one.ruleApiName === `${OBJECT}.Secret`,
      );
      assert.equal(rule.matches[0].score, 0.8, 'city 4 of city 4 and rank 1');
      assert.deepEqual(rule.matches[0].matchedFields, ['City__c']);
      assert.deepEqual(Object.keys(rule.matches[0].record), ['name', 'City__c', 'Rank__c']);
      assert.equal(seen.text.includes('Secret__c'), false);
      const admin = await ada.post(`/data/${OBJECT}`, { name: unique('Admin'), Secret__c: secret });
      assert.deepEqual(firedRules(admin).sort(), [`${OBJECT}.OnlySecret`, `${OBJECT}.Secret`]);
    });
  });

  describe('and simultaneous requests', () => {
    it('admit one of many equal records', async () => {
      for (const field of ['Code__c', 'Key__c', 'TaxId__c']) {
        const value = unique('R');
        const replies = await Promise.all(Array.from({ length: 8 }, () => create({ [field]: value })));
        assert.deepEqual(replies.map((reply) => reply.status).sort(), [201, 409, 409, 409, 409, 409, 409, 409], field);
      }
    });

    it('admit one of many similar records when similarity blocks', async () => {
      const words = unique('Oberingenieur Wasserwirtschaft');
      const replies = await Promise.all(Array.from({ length: 6 }, (_, i) => create({ Title__c: `${words} ${i}` })));
      assert.deepEqual(replies.map((reply) => reply.status).sort(), [201, 409, 409, 409, 409, 409]);
    });

    it('store no two similar records without confirmation', async () => {
      const letters = 'abcdefghiklmnoprstuvw';
      const random = (below: number): number => Math.floor(Math.random() * below);
      const word = (): string => Array.from({ length: 3 + random(9) }, () => letters[random(letters.length)]).join('');
      const twinOf = (text: string): string => {
        const at = random(text.length);
        return [text.slice(0, at) + text.slice(at + 1), `${text} ${word()}`, text.replace(/ \S+$/, '')][random(3)]!;
      };
      const texts = Array.from({ length: 40 }, () => Array.from({ length: 1 + random(9) }, word).join(' '));
      const nicks = texts.flatMap((text) => [text, twinOf(text), twinOf(text)]);
      const replies = await Promise.all(nicks.map((Nick__c) => create({ Nick__c })));
      const stored = replies.filter((reply) => reply.status === 201).length;
      assert.ok(stored >= 40, `${stored} are stored`);
      assert.deepEqual([...new Set(replies.map((reply) => reply.status))].sort(), [201, 409]);
      const pairs = await query(
        `SELECT a."Nick__c" AS a, b."Nick__c" AS b FROM ${schema}."${OBJECT}" a JOIN ${schema}."${OBJECT}" b ON a.id < b.id
          AND public.similarity(erp.fuzzy_text(a."Nick__c"), erp.fuzzy_text(b."Nick__c")) >= 0.6`,
      );
      assert.deepEqual(pairs, []);
    });

    it('block each other also when they read different fields of the rule', async () => {
      for (let round = 0; round < 5; round++) {
        const alias = unique('Alias');
        const replies = await Promise.all([sam, ada].map((who) => create({ Alias__c: alias }, who)));
        assert.deepEqual(replies.map((reply) => reply.status).sort(), [201, 409]);
      }
    });

    it('admit one of two updates to the same value', async () => {
      const code = unique('R');
      const records = await Promise.all([created({}), created({})]);
      const replies = await Promise.all(
        records.map(({ body }) => sam.patch(`/data/${OBJECT}/${body.id}`, { Code__c: code }, { etag: '"1"' })),
      );
      assert.deepEqual(replies.map((reply) => reply.status).sort(), [200, 409]);
    });

    it('answer the same key with the outcome of the first', async () => {
      const body = { name: unique('Key'), Code__c: unique('R') };
      const idempotencyKey = randomUUID();
      const replies = await Promise.all(
        Array.from({ length: 4 }, () => sam.post(`/data/${OBJECT}`, body, { idempotencyKey })),
      );
      for (const reply of replies) assert.equal(reply.status, 201, reply.text);
      assert.equal(new Set(replies.map((reply) => reply.body.id)).size, 1);
    });
  });

  // Last, because it disables the rules.
  describe('and their deployment', () => {
    it('they are described, validated when deployed, retrieved unchanged, and switched by the feature', async () => {
      assert.equal((await sam.get(`/objects/${OBJECT}/describe`)).body.duplicateRulesActive, true);
      assert.equal((await sam.get('/objects/Contact/describe')).body.duplicateRulesActive, false);
      const { body } = await ada.post('/metadata/retrieve', {
        package: { version: 1, types: [{ name: 'DuplicateRule', members: [`${OBJECT}.*`] }] },
      });
      const path = `objects/${OBJECT}/duplicateRules/SameTaxId.yaml`;
      assert.equal(body.files[path], RULES[path]);

      const problems = async (rule: string): Promise<string[]> => {
        const files = {
          [`objects/${OBJECT}/duplicateRules/X.yaml`]: `type: DuplicateRule\napiName: X\nobject: ${OBJECT}\n${rule}`,
        };
        const reply = await ada.post('/metadata/validate', project(files));
        return reply.body.blocked.map(
          (problem: { code: string; message: string }) => `${problem.code} ${problem.message}`,
        );
      };
      const item = (field: string, more = ''): string => `match:\n  - field: ${field}\n${more}`;
      assert.deepEqual(await problems(item('TaxId__c')), []);
      for (const [rule, wanted] of [
        [item('Nope__c'), /DEPENDENCY_MISSING.*Nope__c/],
        [item('Rank__c', '    method: fuzzy\n'), /REFERENCE_INVALID Rank__c is integer and is compared by: exact/],
        [item('createdAt'), /REFERENCE_INVALID.*cannot be compared/],
        [item('TaxId__c', '    weight: 0\n'), /YAML_SCHEMA_INVALID/],
        [item('TaxId__c', '    method: like\n'), /YAML_SCHEMA_INVALID/],
        [`threshold: 0\n${item('TaxId__c')}`, /YAML_SCHEMA_INVALID/],
        [`threshold: 1.01\n${item('TaxId__c')}`, /YAML_SCHEMA_INVALID/],
        [`action: warn\n${item('TaxId__c')}`, /YAML_SCHEMA_INVALID/],
        ['match: []\n', /YAML_SCHEMA_INVALID/],
        [`${item('TaxId__c')}  - field: TaxId__c\n`, /YAML_SCHEMA_INVALID.*Duplicate field/],
      ] as const) {
        const found = await problems(rule);
        assert.match(found.join('\n'), wanted, rule);
      }
      const contact = {
        'objects/Contact/duplicateRules/X.yaml':
          'type: DuplicateRule\napiName: X\nobject: Contact\nmatch:\n  - field: name\n',
      };
      const warned = await ada.post('/metadata/validate', project(contact));
      assert.match(warned.body.warnings[0].message, /features\.duplicates/);

      const indexes = async () =>
        (
          await query(
            `SELECT indexdef FROM pg_indexes WHERE tablename = $1 AND indexname LIKE '\\_d%' ORDER BY indexname`,
            [OBJECT],
          )
        ).map((row) => String(row['indexdef']));
      const all = await indexes();
      assert.equal(all.filter((text) => /TaxId__c/.test(text)).length, 1);
      assert.ok(
        all.some((text) =>
          /gin \(erp\.fuzzy_text\("Title__c"\) gin_trgm_ops, erp\.fuzzy_class\("Title__c"\)\)/.test(text),
        ),
        all.join('\n'),
      );
      assert.equal(
        all.some((text) => /AccountId__c/.test(text)),
        false,
        'the index of the reference serves',
      );
      await deploy(ruleFile('SameTaxId', { active: false, match: [['TaxId__c', 'normalized']] }));
      assert.equal(
        (await indexes()).some((text) => /TaxId__c/.test(text)),
        false,
        'nobody needs it any more',
      );
      const taxId = unique('T');
      await created({ TaxId__c: taxId });
      await created({ TaxId__c: taxId });
      await deploy(
        objectFiles(
          OBJECT,
          {},
          `sharingDefault: private\n${DUPLICATES_ON.replace('duplicates: true', 'duplicates: false')}`,
        ),
      );
      assert.deepEqual(await indexes(), []);
      assert.equal((await sam.get(`/objects/${OBJECT}/describe`)).body.duplicateRulesActive, false);
    });
  });
});
