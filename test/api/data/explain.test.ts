/** Explanations of access over HTTP: each layer in turn, and their agreement with the actual outcome. */
import assert from 'node:assert/strict';
import { uuidv7 } from '../../../lib/values/ids.ts';
import type { Answer, Api } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { type Deals, startDeals } from './deals.ts';

type Step = {
  layer: string;
  result: string;
  grantedBy: { kind: string; apiName: string | null }[];
  remedy: string | null;
};

const LAYERS = ['scope', 'publication', 'objectPermission', 'fieldPermission', 'sharing', 'recordState', 'agentPolicy'];

const FILES: Record<string, string> = {
  ...fieldFile(
    'Deal__c',
    'State__c',
    'fieldType: picklist\npicklist:\n  restricted: true\n  values:\n    - value: open\n      label: Open\n      default: true\n    - value: won\n      label: Won\n    - value: paid\n      label: Paid',
  ),
  ...fieldFile(
    'Deal__c',
    'Shout__c',
    'fieldType: formula\nformula:\n  expression: record.Stage__c.upper()\n  resultType: text',
  ),
  ...fieldFile('Deal__c', 'Number__c', 'fieldType: autoNumber\nformat: D-{000}'),
  'objects/Deal__c/stateModels/Life.yaml': [
    'type: StateModel',
    'apiName: Life',
    'object: Deal__c',
    'field: State__c',
    'initial: open',
    'allowDirectEdit: false',
    'transitions:',
    '  - key: win',
    '    label: Win',
    '    from:',
    '      - open',
    '    to: won',
    '    guard: record.Stage__c == "signed" && !inGroup("Admins")',
    '  - key: pay',
    '    label: Pay',
    '    from:',
    '      - won',
    '    to: paid',
    '    permission: Deal__c.pay',
    '  - key: note',
    '    label: Note',
    '    from:',
    '      - open',
    '    to: won',
    '    effects:',
    '      - verb: createRecord',
    '        object: Account',
    '        fields:',
    '          name: record.name',
    '          creditLimit: "1"',
    '  - key: log',
    '    label: Log',
    '    from:',
    '      - open',
    '    to: won',
    '    effects:',
    '      - verb: createRecord',
    '        object: Account',
    '        fields:',
    '          name: record.name',
    '',
  ].join('\n'),
  'objects/Deal__c/sharingRules/Signed.yaml':
    'type: SharingRule\napiName: Signed\nobject: Deal__c\nkind: criteria\ncriteria: record.Shout__c == "SIGNED"\nto:\n  group: Auditors\naccess: read\n',
  'objects/Deal__c/sharingRules/ByAda.yaml':
    'type: SharingRule\napiName: ByAda\nobject: Deal__c\nkind: owner\nfrom:\n  group: Admins\nto:\n  role: SalesRep\naccess: readWrite\n',
  'groups/Admins.yaml': 'type: Group\napiName: Admins\nlabel: Admins\nmembers:\n  users:\n    - ada@demo.example\n',
  'permissionSets/DealState.yaml':
    'type: PermissionSet\napiName: DealState\nlabel: State\nfields:\n  Deal__c.Number__c:\n    read: true\n    edit: false\n  Deal__c.State__c:\n    read: true\n    edit: true\n',
  'permissionSets/DealPay.yaml': 'type: PermissionSet\napiName: DealPay\nlabel: Pay\nactions:\n  - Deal__c.pay\n',
};

describe('explanations of access over HTTP', () => {
  let deals: Deals;
  let ada: Api;
  let mia: Api;
  let sam: Api;
  let sue: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, mia, sam, sue } = deals.as);
    await deals.deploy(FILES);
    await deals.setUser('mia', { permissionSetApiNames: ['Deals', 'DealState', 'DealPay'] });
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'DealState'] });
    await deals.setUser('sue', { permissionSetApiNames: ['DealsRead'] });
  });
  after(() => deals?.platform.stop());

  const ask = (who: Api, id: string, body: object, object = 'Deal__c'): Promise<Answer> =>
    who.post(`/data/${object}/${id}/access/explain`, body, { idempotencyKey: null });
  /** The layers as `layer result`, without those that are notApplicable; and the steps by layer. */
  const explained = async (who: Api, id: string, body: object, object?: string) => {
    const reply = await ask(who, id, body, object);
    assert.equal(reply.status, 200, reply.text);
    const steps = reply.body.steps as Step[];
    assert.deepEqual(
      steps.map((step) => step.layer),
      LAYERS,
      'all layers in their order',
    );
    for (const { result, grantedBy, remedy } of steps) {
      assert.equal(remedy !== null, result === 'deny');
      if (result !== 'pass') assert.deepEqual(grantedBy, []);
    }
    assert.equal(reply.body.allowed, !steps.some((step) => step.result === 'deny'));
    return {
      allowed: reply.body.allowed as boolean,
      denied: steps.filter((step) => step.result === 'deny').map((step) => step.layer),
      of: Object.fromEntries(steps.map((step) => [step.layer, step])) as Record<string, Step>,
    };
  };
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);
  const newDeal = async (more = {}, owner = sam): Promise<string> => (await deals.deal(owner, more)).body.id;

  it("name the grounds of an owner's full access", async () => {
    const id = await newDeal();
    for (const operation of ['read', 'update', 'delete']) {
      const { allowed, of } = await explained(sam, id, { operation });
      assert.equal(allowed, true);
      assert.equal(of['scope']!.result, 'pass');
      assert.equal(of['publication']!.result, 'pass');
      assert.deepEqual(of['objectPermission']!.grantedBy, [{ kind: 'permissionSet', apiName: 'Deals' }]);
      assert.equal(of['fieldPermission']!.result, 'notApplicable');
      assert.deepEqual(of['sharing']!.grantedBy, [{ kind: 'owner', apiName: 'sam@demo.example' }]);
      assert.equal(of['agentPolicy']!.result, 'notApplicable');
    }
  });

  it('name every grant of access to a record', async () => {
    const id = await newDeal({ Stage__c: 'signed' });
    const grants = async (who: Api, operation = 'read') =>
      (await explained(who, id, { operation })).of['sharing']!.grantedBy.map(
        ({ kind, apiName }) => `${kind} ${apiName}`,
      );
    assert.deepEqual(await grants(mia), ['role SalesManager']);
    assert.deepEqual(await grants(ada), ['profile Administrator', 'role Ceo']);
    assert.deepEqual(await grants(sue), ['sharingRule Deal__c.Signed']);
    for (const [principalType, principalId, access] of [
      ['user', deals.ids.sue, 'read'],
      ['role', 'SalesRep', 'read'],
      ['group', 'Auditors', 'edit'],
    ])
      assert.equal((await sam.post(`/data/Deal__c/${id}/shares`, { principalType, principalId, access })).status, 201);
    assert.deepEqual(await grants(sue), [
      'sharingRule Deal__c.Signed',
      'manualShare sue@demo.example',
      'manualShare SalesRep',
      'manualShare Auditors',
    ]);
    assert.deepEqual(await grants(sue, 'update'), ['manualShare Auditors']);
    const byAda = await newDeal({}, ada);
    const rule = (await explained(sam, byAda, { operation: 'update' })).of['sharing']!;
    assert.deepEqual(rule.grantedBy, [{ kind: 'sharingRule', apiName: 'Deal__c.ByAda' }]);
    const account = await sam.post('/data/Account', { name: 'A' });
    const open = await explained(sam, account.body.id, { operation: 'read' }, 'Account');
    assert.ok(open.allowed);
  });

  it('name a rule by reference, and suggest one where a field names the user', async () => {
    await deals.deploy({
      ...fieldFile('Deal__c', 'Agent__c', 'fieldType: reference\nreferenceTo: [User]'),
      'permissionSets/DealAgents.yaml':
        'type: PermissionSet\napiName: DealAgents\nlabel: Agents\nfields:\n  Deal__c.Agent__c:\n    read: true\n    edit: true\n',
    });
    const sets = { permissionSetApiNames: ['Deals', 'DealState', 'DealAgents'] };
    await deals.setUser('sam', sets);
    await deals.setUser('sue', sets);
    const id = await newDeal({ Agent__c: deals.ids.sue });
    const about = { operation: 'read', userId: deals.ids.sue };
    const before = (await explained(ada, id, about)).of['sharing']!;
    assert.equal(before.result, 'deny');
    assert.match(before.remedy!, /kind reference through Agent__c, which shares it with the user named there/);
    await deals.deploy({
      'objects/Deal__c/sharingRules/ByAgent.yaml':
        'type: SharingRule\napiName: ByAgent\nobject: Deal__c\nkind: reference\nthrough: Agent__c\naccess: read\n',
    });
    const after = await explained(ada, id, about);
    assert.deepEqual(after.of['sharing']!.grantedBy, [{ kind: 'sharingRule', apiName: 'Deal__c.ByAgent' }]);
    assert.equal((await sue.get(`/data/Deal__c/${id}`)).status, 200);
    const others = (await explained(ada, await newDeal(), about)).of['sharing']!;
    assert.match(others.remedy!, /set Agent__c to the user \(sharing rule Deal__c\.ByAgent\)/);
    const denied = (await explained(sue, id, { operation: 'update' })).of['sharing']!;
    assert.equal(denied.result, 'deny', 'read is not readWrite');
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'DealState'] });
    await deals.setUser('sue', { permissionSetApiNames: ['DealsRead'] });
  });

  it('report a missing scope', async () => {
    const id = await newDeal();
    const reader = await deals.sign('sam', 'data:read');
    for (const [operation, scope] of [
      ['update', 'data:write'],
      ['create', 'data:write'],
      ['delete', 'data:delete'],
    ]) {
      const { denied, of } = await explained(reader, id, { operation });
      assert.deepEqual(denied, ['scope'], operation);
      assert.match(of['scope']!.remedy!, new RegExp(`the scope ${scope}\\.`));
    }
    assert.equal((await explained(reader, id, { operation: 'read' })).allowed, true);
    const patch = await reader.patch(`/data/Deal__c/${id}`, { Stage__c: 'x' }, { etag: '"1"' });
    refused(patch, 403, 'SCOPE_INSUFFICIENT');
    assert.equal(patch.body.details.layer, 'scope');
  });

  it('report a missing permission on the object', async () => {
    const id = await newDeal({ Stage__c: 'signed' });
    const { denied, of } = await explained(sue, id, { operation: 'update' });
    assert.deepEqual(denied, ['objectPermission', 'sharing']);
    assert.match(of['objectPermission']!.remedy!, /Give update on Deal__c/);
    assert.match(of['sharing']!.remedy!, /can read the record, but may not change it.*access edit/);
    const patch = await sue.patch(`/data/Deal__c/${id}`, { Stage__c: 'x' }, { etag: '"1"' });
    refused(patch, 403, 'OBJECT_PERMISSION_DENIED');
    assert.equal(patch.body.details.layer, 'objectPermission', 'the first denying layer');
    assert.deepEqual((await explained(sue, id, { operation: 'create' })).denied, ['objectPermission']);
  });

  it('report fields: their grants, denials, and the read-only ones', async () => {
    const id = await newDeal();
    const of = async (body: object, who = sam) => (await explained(who, id, body)).of['fieldPermission']!;
    assert.deepEqual((await of({ operation: 'read', field: 'Stage__c' })).grantedBy, [
      { kind: 'permissionSet', apiName: 'Deals' },
    ]);
    assert.deepEqual((await of({ operation: 'read', field: 'name' })).grantedBy, [
      { kind: 'permissionSet', apiName: 'Deals' },
    ]);
    assert.equal((await of({ operation: 'update', field: 'Stage__c' })).result, 'pass');
    for (const field of ['Number__c', 'createdAt', 'id'])
      assert.match((await of({ operation: 'update', field })).remedy!, /cannot be written/, field);
    // Sue reads the stage and may not edit it; her permission on the object is missing, too.
    const signed = await newDeal({ Stage__c: 'signed' });
    const edit = await explained(sue, signed, { operation: 'update', field: 'Stage__c' });
    assert.deepEqual(edit.denied, ['objectPermission', 'fieldPermission', 'sharing']);
    assert.match(edit.of['fieldPermission']!.remedy!, /Give edit on Deal__c\.Stage__c/);
  });

  it('treat hidden names like unknown ones', async () => {
    const id = await newDeal();
    const answer = async (body: object, name: string) => (await ask(sam, id, body)).text.replaceAll(name, '…');
    for (const operation of ['read', 'update', 'create'])
      assert.equal(
        await answer({ operation, field: 'Secret__c' }, 'Secret__c'),
        await answer({ operation, field: 'Nothing__c' }, 'Nothing__c'),
      );
    const hidden = await explained(sam, id, { operation: 'read', field: 'Secret__c' });
    assert.deepEqual(hidden.denied, ['fieldPermission']);
    assert.deepEqual((await explained(sam, id, { operation: 'read', field: 'constructor' })).denied, [
      'fieldPermission',
    ]);
    // Sue cannot read the state, so there are no transitions for her.
    const signed = await newDeal({ Stage__c: 'signed' });
    const transition = async (transitionKey: string) =>
      (await ask(sue, signed, { operation: 'transition', transitionKey })).text.replaceAll(transitionKey, '…');
    assert.equal(await transition('win'), await transition('fly'));
    assert.equal(await transition('pay'), await transition('fly'));
  });

  it('report a record in the wrong state, or a state that only transitions change', async () => {
    const id = await newDeal({ Stage__c: 'signed' });
    const direct = await explained(sam, id, { operation: 'update', field: 'State__c' });
    assert.deepEqual(direct.denied, ['recordState']);
    assert.match(direct.of['recordState']!.remedy!, /only be changed by transitions/);
    assert.equal((await explained(sam, id, { operation: 'transition', transitionKey: 'win' })).allowed, true);
    const early = await explained(mia, id, { operation: 'transition', transitionKey: 'pay' });
    assert.deepEqual(early.denied, ['recordState']);
    assert.match(early.of['recordState']!.remedy!, /only be executed in the state won.*has the state open/);
    assert.deepEqual(early.of['objectPermission']!.grantedBy, [
      { kind: 'permissionSet', apiName: 'Deals' },
      { kind: 'permissionSet', apiName: 'DealPay' },
    ]);
    const unsigned = await newDeal();
    const guarded = await explained(sam, unsigned, { operation: 'transition', transitionKey: 'win' });
    assert.deepEqual(guarded.denied, ['recordState']);
    const grouped = await explained(ada, id, { operation: 'transition', transitionKey: 'win' });
    assert.deepEqual(grouped.denied, ['recordState'], 'a guard asks for groups');
    const notPermitted = await explained(sam, id, { operation: 'transition', transitionKey: 'pay' });
    assert.deepEqual(notPermitted.denied, ['objectPermission', 'recordState']);
    assert.match(notPermitted.of['objectPermission']!.remedy!, /Deal__c\.pay/);
    const unknown = await explained(sam, id, { operation: 'transition', transitionKey: 'fly' });
    assert.deepEqual(unknown.denied, ['recordState']);
  });

  it('follow the parent where it controls access', async () => {
    const id = await newDeal({ Stage__c: 'signed' });
    const line = (await sam.post('/data/DealLine__c', { name: 'L', Deal__c: id })).body.id;
    const mine = await explained(sam, line, { operation: 'delete' }, 'DealLine__c');
    assert.deepEqual(mine.of['sharing']!.grantedBy, [
      { kind: 'orgDefault', apiName: 'DealLine__c' },
      { kind: 'owner', apiName: 'sam@demo.example' },
    ]);
    const hers = await explained(sue, line, { operation: 'update' }, 'DealLine__c');
    assert.deepEqual(hers.denied, ['objectPermission', 'sharing']);
    assert.match(hers.of['sharing']!.remedy!, /follows their parents\. Give the user edit access/);
    const beside = await explained(sue, line, { operation: 'create' }, 'DealLine__c');
    assert.deepEqual(beside.denied, ['objectPermission', 'sharing']);
    assert.match(beside.of['sharing']!.remedy!, /edit access to the Deal__c record that Deal__c refers to/);
    const alsoMine = await explained(sam, line, { operation: 'create' }, 'DealLine__c');
    assert.deepEqual(alsoMine.of['sharing']!.grantedBy, [{ kind: 'owner', apiName: 'sam@demo.example' }]);
  });

  it('predict that a transition moves a record under a parent that the user may not edit', async () => {
    const create = (value: string) =>
      `effects:\n  - verb: createRecord\n    object: DealLine__c\n    fields:\n      name: record.name\n      Deal__c: ${value}\n`;
    const action = (object: string, key: string, rest: string) => ({
      [`objects/${object}/actions/${key}.yaml`]: `type: CustomAction\napiName: ${key}\nobject: ${object}\nlabel: ${key}\n${rest}`,
    });
    await deals.deploy({
      ...fieldFile('Deal__c', 'Next__c', 'fieldType: reference\nreferenceTo: [Deal__c]'),
      ...fieldFile(
        'DealLine__c',
        'Next__c',
        'fieldType: reference\nreferenceTo: [Deal__c]\nrelationshipName: Moved__r',
      ),
      'permissionSets/DealNext.yaml':
        'type: PermissionSet\napiName: DealNext\nlabel: Next\nfields:\n  Deal__c.Next__c:\n    read: true\n    edit: true\nactions: [Deal__c.addHere, Deal__c.addThere, Deal__c.addAnywhere, DealLine__c.moveThere]\n',
      ...action('Deal__c', 'addHere', create('record.id')),
      ...action('Deal__c', 'addThere', create('record.Next__c')),
      ...action(
        'Deal__c',
        'addAnywhere',
        `input:\n  type: object\n  properties:\n    to:\n      type: string\n${create('input.to')}`,
      ),
      ...action(
        'DealLine__c',
        'moveThere',
        'effects:\n  - verb: updateFields\n    fields:\n      Deal__c: coalesce(record.Next__c, record.Deal__c)\n',
      ),
    });
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'DealState', 'DealNext'] });
    const hidden = await newDeal({}, mia);
    const edited = await newDeal({}, mia);
    const read = await newDeal({}, mia);
    for (const [id, access] of [
      [edited, 'edit'],
      [read, 'read'],
    ])
      await mia.post(`/data/Deal__c/${id}/shares`, { principalType: 'user', principalId: deals.ids.sam, access });

    /** Compares the explanation, an administrator's explanation and the list with the actual outcome. */
    const tried = async (id: string, transitionKey: string, object = 'Deal__c', input?: object) => {
      const path = `/data/${object}/${id}`;
      const question = { operation: 'transition', transitionKey };
      const told = await explained(sam, id, question, object);
      const about = await ask(ada, id, { ...question, userId: deals.ids.sam }, object);
      assert.equal(about.body.allowed, told.allowed);
      const list = (await sam.get(`${path}/transitions`)).body;
      const listed = list.records.find((item: { transitionKey: string }) => item.transitionKey === transitionKey);
      assert.equal(listed.available, told.allowed);
      const done = await sam.post(`${path}/transitions/${transitionKey}`, input ? { input } : {}, { etag: list.etag });
      if (!told.allowed) {
        assert.deepEqual(told.denied, [done.body.details.layer]);
        assert.deepEqual(listed.unavailableReasons, [{ code: done.body.code, message: done.body.message }]);
      }
      return [told.allowed, done.status];
    };
    const deal = (next: string) => newDeal({ Next__c: next });
    const denied = await explained(sam, await deal(read), { operation: 'transition', transitionKey: 'addThere' });
    assert.match(denied.of['sharing']!.remedy!, /edit access to that record/);
    assert.deepEqual(await tried(await deal(read), 'addThere'), [false, 403]);
    assert.deepEqual(await tried(await deal(edited), 'addThere'), [true, 201]);
    assert.deepEqual(await tried(await newDeal(), 'addHere'), [true, 201]);
    // A hidden record is indistinguishable from a missing one, and the input is not known beforehand.
    const unseen = (await sam.post('/data/Deal__c', { name: 'Unseen' })).body.id;
    await ada.patch(`/data/Deal__c/${unseen}`, { Next__c: hidden }, { etag: '"1"' });
    assert.deepEqual(await tried(unseen, 'addThere'), [true, 422]);
    assert.deepEqual(await tried(await newDeal(), 'addThere'), [true, 422]);
    assert.deepEqual(await tried(await newDeal(), 'addAnywhere', 'Deal__c', { to: read }), [true, 403]);
    const line = async (next: string | null) => {
      const { id } = (await sam.post('/data/DealLine__c', { name: 'L', Deal__c: await newDeal() })).body;
      const moved = await ada.patch(`/data/DealLine__c/${id}`, { Next__c: next, name: 'Line' }, { etag: '"1"' });
      assert.equal(moved.status, 200, moved.text);
      return id;
    };
    assert.deepEqual(await tried(await line(read), 'moveThere', 'DealLine__c'), [false, 403]);
    assert.deepEqual(await tried(await line(edited), 'moveThere', 'DealLine__c'), [true, 201]);
    assert.deepEqual(await tried(await line(null), 'moveThere', 'DealLine__c'), [true, 201], 'it stays where it is');
    await deals.setUser('sam', { permissionSetApiNames: ['Deals', 'DealState'] });
  });

  it('about other users are for administrators only', async () => {
    const id = await newDeal();
    const about = (userId: string, more = {}) => ({ operation: 'read', userId, ...more });
    const hers = await explained(ada, id, about(deals.ids.sue));
    assert.deepEqual(hers.denied, ['sharing']);
    assert.equal(hers.of['scope']!.result, 'notApplicable');
    assert.match(hers.of['sharing']!.remedy!, /does not let the user read the record/);
    const his = await explained(ada, id, about(deals.ids.sam, { operation: 'update', field: 'Secret__c' }));
    assert.deepEqual(his.denied, ['fieldPermission']);
    assert.match(his.of['fieldPermission']!.remedy!, /Give read on Deal__c\.Secret__c/);
    const state = await explained(ada, id, about(deals.ids.sue, { operation: 'transition', transitionKey: 'win' }));
    assert.ok(state.denied.includes('fieldPermission'));
    const pat = (await ada.get(`/data/User?where=${encodeURIComponent('{"username":"pat@demo.example"}')}`)).body
      .records[0];
    assert.match(
      (await explained(ada, id, about(pat.id))).of['objectPermission']!.remedy!,
      /system permission apiEnabled/,
    );
    await ada.patch(`/data/User/${pat.id}`, { active: false }, { etag: `"${pat.recordVersion}"` });
    assert.match((await explained(ada, id, about(pat.id))).of['objectPermission']!.remedy!, /activate/);

    refused(await ask(sam, id, about(deals.ids.sue)), 403, 'METADATA_PERMISSION_DENIED');
    const withoutSetup = await deals.sign('ada', 'data:read');
    const scope = await ask(withoutSetup, id, about(deals.ids.sue));
    refused(scope, 403, 'SCOPE_INSUFFICIENT');
    assert.match(scope.headers.get('www-authenticate')!, /insufficient_scope.*setup:read/);
    for (const nobody of [uuidv7(), deals.ids.eve, 'sue@demo.example'])
      refused(await ask(ada, id, about(nobody)), 422, 'VALIDATION_FAILED');
    // About the caller it needs neither.
    assert.equal((await explained(sam, id, about(deals.ids.sam.toUpperCase()))).allowed, true);
    refused(await ask(sue, id, about(deals.ids.sam)), 404, 'RECORD_NOT_FOUND');
  });

  it('do not reveal that a record exists', async () => {
    const id = await newDeal();
    const shapeOf = ({ status, body }: Answer): unknown => ({ status, body: { ...body, requestId: '' } });
    const hidden = await ask(sue, id, { operation: 'read' });
    refused(hidden, 404, 'RECORD_NOT_FOUND');
    assert.deepEqual(shapeOf(hidden), shapeOf(await ask(sue, uuidv7(), { operation: 'read' })));
    refused(await ask(sam, 'x', { operation: 'read' }), 400, 'PARAMETER_INVALID');
    refused(await ask(sam, id, { operation: 'read' }, 'Nope__c'), 404, 'OBJECT_NOT_FOUND');
    await deals.deploy({
      'objects/Hidden__c/object.yaml':
        'type: CustomObject\napiName: Hidden__c\nlabel: H\nlabelPlural: H\nnameField:\n  label: Name\n  fieldType: text\n',
    });
    refused(await ask(ada, id, { operation: 'read' }, 'Hidden__c'), 404, 'OBJECT_NOT_FOUND');
  });

  it('report faults in the question', async () => {
    const id = await newDeal();
    refused(await ask(sam, id, { operation: 'fly' }), 400, 'PARAMETER_INVALID');
    refused(await ask(sam, id, {}), 400, 'PARAMETER_REQUIRED');
    refused(await ask(sam, id, { operation: 'read', fields: 'x' }), 400, 'BODY_PROPERTY_UNKNOWN');
    refused(await ask(sam, id, { operation: 'transition' }), 400, 'PARAMETER_REQUIRED');
    for (const body of [
      { operation: 'read', transitionKey: 'win' },
      { operation: 'delete', field: 'name' },
      { operation: 'transition', transitionKey: 'win', field: 'name' },
    ])
      refused(await ask(sam, id, body), 400, 'PARAMETER_CONFLICT');
    refused(await ask(sam, id, { operation: 'read', field: 'x'.repeat(81) }), 400, 'PARAMETER_INVALID');
  });

  it('agree with the actual outcome', async () => {
    const people: [string, Api][] = [
      ['mia', mia],
      ['sam', sam],
      ['sue', sue],
      ['ada', ada],
    ];
    const records = [
      await newDeal(),
      await newDeal({ Stage__c: 'signed' }),
      await newDeal({}, mia),
      await newDeal({}, ada),
    ];
    await sam.post(`/data/Deal__c/${records[0]}/shares`, {
      principalType: 'group',
      principalId: 'Auditors',
      access: 'edit',
    });
    for (const [name, who] of people)
      for (const [index, id] of records.entries()) {
        const path = `/data/Deal__c/${id}`;
        const told = await ask(who, id, { operation: 'read' });
        const read = await who.get(path);
        assert.equal(told.status, read.status, `${name} ${index}`);
        if (read.status !== 200) continue;
        assert.equal(told.body.allowed, true);
        const etag = read.headers.get('etag')!;
        const update = await explained(who, id, { operation: 'update', field: 'name' });
        const patch = await who.patch(path, { name: `by ${name}` }, { etag });
        assert.equal(patch.status === 200, update.allowed, `${name} ${index} ${patch.text}`);
        if (!update.allowed) assert.equal(patch.body.details.layer, update.denied[0]);
        const remove = await explained(who, id, { operation: 'delete' });
        const shares = await who.get(`${path}/shares`);
        if (name !== 'sue') assert.equal(shares.status === 200, remove.allowed, `${name} ${index}`);
        const gone = await who.delete(`${path}`, { etag: '"never"' });
        if (remove.allowed) refused(gone, 412, 'ETAG_MISMATCH');
        else assert.equal(gone.body.details.layer, remove.denied[0], `${name} ${index} ${gone.text}`);
      }
  });

  it('agree with the actual outcome for each field, of users too', async () => {
    const id = await newDeal();
    const fieldsOf = async (object: string): Promise<string[]> =>
      (await ada.get(`/objects/${object}/describe`)).body.fields.map((field: { apiName: string }) => field.apiName);
    const people = { ada, mia, sam, sue };
    let [allowed, denied] = [0, 0];
    for (const [object, record] of [
      ['User', deals.ids.sue],
      ['Deal__c', id],
    ] as const)
      for (const [name, who] of Object.entries(people)) {
        const path = `/data/${object}/${record}`;
        const { status, body, headers } = await who.get(path);
        if (status !== 200) continue;
        for (const field of [...(await fieldsOf(object)), 'Nothing__c']) {
          const told = await explained(who, record, { operation: 'update', field }, object);
          const value = Object.hasOwn(body, field) ? body[field] : null;
          const check = { operation: 'update', id: record, ifMatch: headers.get('etag'), fields: { [field]: value } };
          const done = await who.post(`/data/${object}/check`, check);
          const codes = (done.body.errors ?? []).map((error: { code: string }) => error.code);
          const refusal = ['FIELD_UNKNOWN', 'FIELD_READ_ONLY', 'FIELD_PERMISSION_DENIED'];
          const may = done.status !== 403 && !codes.some((code: string) => refusal.includes(code));
          assert.equal(told.allowed, may, `${name} ${object}.${field} ${done.text}`);
          if (may) allowed++;
          else denied++;
        }
      }
    assert.ok(allowed > 20 && denied > 40, `${allowed} ${denied}`);
    const user = `/data/User/${deals.ids.sue}`;
    const etag = (await ada.get(user)).headers.get('etag')!;
    const owner = await ada.patch(user, { ownerId: deals.ids.ada }, { etag });
    assert.equal(owner.body.errors[0].code, 'FIELD_READ_ONLY', 'users belong to nobody');
  });

  it('agree with the outcome of transitions', async () => {
    await deals.setUser('sue', { permissionSetApiNames: ['Deals', 'DealState'] });
    const statuses: Record<string, number> = {};
    for (const [name, who, owner, stages] of [
      ['mia', mia, mia, ['signed', 'new']],
      ['sam', sam, sam, ['signed', 'new']],
      // By a sharing rule she reads signed records, and changes none.
      ['sue', sue, sam, ['signed']],
    ] as const)
      for (const transitionKey of ['win', 'pay', 'note', 'log'])
        for (const stage of stages) {
          const id = await newDeal({ name: `${name} ${transitionKey} ${stage}`, Stage__c: stage }, owner);
          const told = await explained(who, id, { operation: 'transition', transitionKey });
          const { records } = (await who.get(`/data/Deal__c/${id}/transitions`)).body;
          const listed = records.find((item: { transitionKey: string }) => item.transitionKey === transitionKey);
          const done = await who.post(`/data/Deal__c/${id}/transitions/${transitionKey}`, {}, { etag: '"1"' });
          const what = `${name} ${transitionKey} ${stage}`;
          assert.equal(listed.available, told.allowed, what);
          if (done.status === 403) assert.equal(listed.unavailableReasons[0].code, done.body.code, what);
          statuses[what] = done.status;
          assert.equal(done.status === 201, told.allowed, `${what}: ${done.text}`);
          if (done.status === 403) assert.equal(done.body.details.layer, told.denied[0], what);
          if (done.status === 409) assert.deepEqual(told.denied, ['recordState'], what);
        }
    assert.deepEqual(statuses, {
      'mia win signed': 201,
      'mia win new': 409,
      'mia pay signed': 409,
      'mia pay new': 409,
      'mia note signed': 403,
      'mia note new': 403,
      'mia log signed': 201,
      'mia log new': 201,
      'sam win signed': 201,
      'sam win new': 409,
      'sam pay signed': 403,
      'sam pay new': 403,
      'sam note signed': 403,
      'sam note new': 403,
      'sam log signed': 201,
      'sam log new': 201,
      'sue win signed': 403,
      'sue pay signed': 403,
      'sue note signed': 403,
      'sue log signed': 403,
    });
  });
});
