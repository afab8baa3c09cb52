import assert from 'node:assert/strict';
import { PARENTS_MAX } from '../../../lib/access/sharing.ts';
import { fieldsThatShare } from '../../../lib/schema/shares-through.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import { componentKey } from '../../../services/metadata/kinds/component.ts';
import { GROUPS_MAX } from '../../../services/metadata/kinds/group.ts';
import { ROLES_MAX } from '../../../services/metadata/kinds/role.ts';
import { SHARING_RULES_PER_OBJECT_MAX } from '../../../services/metadata/kinds/sharing-rule.ts';
import type { Plan } from '../../../services/metadata/planner/plan.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { planOf } from '../../support/plans.ts';
import { aSnapshot } from '../../support/snapshots.ts';

type Files = Record<string, string>;

const BILL = objectFiles('Bill__c', { Amount__c: 'fieldType: currency', Status__c: 'fieldType: text' });

const role = (name: string, parent?: string): Files => ({
  [`roles/${name}.yaml`]: `type: Role\napiName: ${name}\nlabel: ${name}\n${parent ? `parent: ${parent}\n` : ''}`,
});
const group = (name: string, members = ''): Files => ({
  [`groups/${name}.yaml`]: `type: Group\napiName: ${name}\nlabel: ${name}\n${members}`,
});
const groups = (name: string, inside: readonly string[]): Files =>
  group(name, `members:\n  groups:\n${inside.map((other) => `    - ${other}\n`).join('')}`);
const RULE = 'objects/Bill__c/sharingRules/Sent.yaml';
const rule = (body: string, name = 'Sent'): Files => ({
  [RULE.replace('Sent', name)]: `type: SharingRule\napiName: ${name}\nobject: Bill__c\n${body}`,
});
const byCriteria = (criteria: string, name?: string): Files =>
  rule(`kind: criteria\ncriteria: ${criteria}\nto:\n  group: Finance\naccess: read\n`, name);
const FINANCE = group('Finance');

const places = (result: Plan) =>
  result.blocked.map(({ code, fullName, line, column }) => `${code} ${fullName} ${line}:${column}`);

describe('metadata: groups', () => {
  it('are in the snapshot, in canonical form', async () => {
    const files = {
      ...role('Rep'),
      ...FINANCE,
      ...group('All', 'members:\n  users: [sam@x.example, Ada@x.example]\n  roles: [Rep]\n  groups: [Finance]\n'),
    };
    const { blocked, after } = await planOf(new Map(), files);
    assert.deepEqual(blocked, []);
    assert.equal(
      after.get(componentKey('Group', 'All'))!.yaml,
      'type: Group\napiName: All\nlabel: All\nmembers:\n  roles:\n    - Rep\n  groups:\n    - Finance\n  users:\n    - Ada@x.example\n    - sam@x.example\n',
    );
    assert.equal(after.get(componentKey('Group', 'Finance'))!.yaml, files['groups/Finance.yaml']);
    assert.deepEqual(compileSnapshot(aSnapshot([]).tenant, 1, after).groups, {
      All: {
        apiName: 'All',
        label: 'All',
        members: { roles: ['Rep'], groups: ['Finance'], users: ['Ada@x.example', 'sam@x.example'] },
      },
      Finance: { apiName: 'Finance', label: 'Finance', members: { roles: [], groups: [], users: [] } },
    });
  });

  it('must name existing roles and groups', async () => {
    const found = await planOf(new Map(), group('A', 'members:\n  roles:\n    - Nobody\n  groups:\n    - None\n'));
    assert.deepEqual(places(found), ['DEPENDENCY_MISSING A 6:7', 'DEPENDENCY_MISSING A 8:7']);
  });

  it('are not members of themselves, directly or indirectly', async () => {
    assert.deepEqual(places(await planOf(new Map(), groups('A', ['A']))), ['REFERENCE_INVALID A 6:7']);
    const chain = { ...groups('A', ['X', 'B']), ...group('X'), ...groups('B', ['C']), ...groups('C', ['A']) };
    assert.deepEqual(places(await planOf(new Map(), chain)), [
      'REFERENCE_INVALID A 7:7',
      'REFERENCE_INVALID B 6:7',
      'REFERENCE_INVALID C 6:7',
    ]);
    // A diamond is no cycle, and a cycle elsewhere is not the fault of who looks at it.
    const diamond = { ...groups('A', ['B', 'C']), ...groups('B', ['D']), ...groups('C', ['D']), ...group('D') };
    assert.deepEqual(places(await planOf(new Map(), diamond)), []);
    const { after } = await planOf(new Map(), { ...groups('A', ['B']), ...group('B') });
    assert.deepEqual(places(await planOf(after, groups('B', ['A']))), [
      'REFERENCE_INVALID A null:null',
      'REFERENCE_INVALID B 6:7',
    ]);
  });

  it(`are limited to ${GROUPS_MAX}`, async () => {
    const many: Files = {};
    for (let i = 0; i < GROUPS_MAX; i++) Object.assign(many, group(`G${i}`));
    const { after, blocked } = await planOf(new Map(), many);
    assert.deepEqual(blocked, []);
    assert.deepEqual(
      (await planOf(after, group('Last'))).blocked.map(({ code }) => code),
      ['LIMIT_EXCEEDED'],
    );
  });
});

describe('metadata: roles', () => {
  it('are not their own ancestors', async () => {
    assert.deepEqual(places(await planOf(new Map(), role('A', 'A'))), ['REFERENCE_INVALID A 4:1']);
    const { after } = await planOf(new Map(), { ...role('A', 'B'), ...role('B', 'C'), ...role('C') });
    assert.deepEqual(places(await planOf(after, role('C', 'A'))), [
      'REFERENCE_INVALID A null:null',
      'REFERENCE_INVALID B null:null',
      'REFERENCE_INVALID C 4:1',
    ]);
  });

  it(`are limited to ${ROLES_MAX}`, async () => {
    const many: Files = {};
    for (let i = 0; i < ROLES_MAX; i++) Object.assign(many, role(`R${i}`, i > 0 ? `R${i - 1}` : undefined));
    const { after, blocked } = await planOf(new Map(), many);
    assert.deepEqual(blocked, []);
    assert.deepEqual(
      (await planOf(after, role('Last'))).blocked.map(({ code }) => code),
      ['LIMIT_EXCEEDED'],
    );
  });
});

describe('metadata: parents', () => {
  const detail = (name: string, ...of: string[]): Files => ({
    ...objectFiles(
      name,
      Object.fromEntries(of.map((to, n) => [`Parent${n}__c`, `fieldType: masterDetail\nreferenceTo: [${to}]`])),
    ),
    [`objects/${name}/object.yaml`]: objectFiles(name)[`objects/${name}/object.yaml`]!.replace(
      'api:',
      'sharingDefault: controlledByParent\napi:',
    ),
  });

  it('are not children of their details, so access never follows a cycle', async () => {
    const cycle = await planOf(new Map(), { ...detail('A__c', 'B__c'), ...detail('B__c', 'A__c') });
    assert.ok(cycle.blocked.some(({ code, message }) => code === 'REFERENCE_INVALID' && /cycle/.test(message)));
    const self = await planOf(new Map(), detail('A__c', 'A__c'));
    assert.ok(self.blocked.some(({ code, message }) => code === 'REFERENCE_INVALID' && /cycle/.test(message)));
    assert.deepEqual((await planOf(new Map(), { ...BILL, ...detail('A__c', 'Bill__c') })).blocked, []);
  });

  it(`are followed over at most ${PARENTS_MAX} objects and few paths`, async () => {
    const chain: Files = { ...BILL, ...detail('D2__c', 'Bill__c') };
    for (let n = 3; n <= PARENTS_MAX; n++) Object.assign(chain, detail(`D${n}__c`, `D${n - 1}__c`));
    const { after, blocked } = await planOf(new Map(), chain);
    assert.deepEqual(blocked, []);
    const longer = await planOf(after, detail('D9__c', 'D8__c'));
    assert.deepEqual(places(longer), ['LIMIT_EXCEEDED D9__c 8:1']);
    assert.match(longer.blocked[0]!.message, /over at most 8 objects, not 9/);
    // One that decides for itself begins anew.
    const own = objectFiles('D9__c', { Parent0__c: 'fieldType: masterDetail\nreferenceTo: [D8__c]' });
    assert.deepEqual((await planOf(after, { ...own, ...detail('D10__c', 'D9__c') })).blocked, []);

    const pairs: Files = { ...BILL };
    for (const [name, of] of [
      ['P2', 'Bill'],
      ['P3', 'P2'],
      ['P4', 'P3'],
    ]) {
      Object.assign(pairs, detail(`${name}__c`, `${of}__c`, `${of}__c`));
      for (const which of [0, 1]) {
        const path = `objects/${name}__c/fields/Parent${which}__c.yaml`;
        pairs[path] += `relationshipName: ${name}${which}\n`;
      }
    }
    const wide = await planOf(new Map(), pairs);
    assert.deepEqual(places(wide), []);
    const wider = await planOf(wide.after, detail('P5__c', 'P4__c', 'P3__c'));
    assert.match(wider.blocked[0]!.message, /may follow at most 14 parents, not 22/);
  });
});

describe('metadata: sharing rules', () => {
  it('are in the snapshot of their object, in canonical form', async () => {
    const files = {
      ...BILL,
      ...role('Rep'),
      ...FINANCE,
      ...rule('access: readWrite\nto: {role: Rep}\nfrom: {group: Finance}\nkind: owner\n', 'Owned'),
      ...byCriteria('record.Status__c == "sent"'),
    };
    const { blocked, after } = await planOf(new Map(), files);
    assert.deepEqual(blocked, []);
    assert.deepEqual(compileSnapshot(aSnapshot([]).tenant, 1, after).objects['Bill__c']!.sharingRules, [
      {
        apiName: 'Owned',
        kind: 'owner',
        from: { group: 'Finance' },
        criteria: null,
        to: { role: 'Rep' },
        access: 'readWrite',
      },
      {
        apiName: 'Sent',
        kind: 'criteria',
        from: null,
        criteria: 'record.Status__c == "sent"',
        to: { group: 'Finance' },
        access: 'read',
      },
    ]);
    assert.equal(after.get(componentKey('SharingRule', 'Bill__c.Sent'))!.yaml, files[RULE]);
    assert.equal(
      after.get(componentKey('SharingRule', 'Bill__c.Owned'))!.yaml,
      'type: SharingRule\napiName: Owned\nobject: Bill__c\nkind: owner\nfrom:\n  group: Finance\nto:\n  role: Rep\naccess: readWrite\n',
    );
  });

  const malformed: [what: string, files: Files, places: string[]][] = [
    ['owner without from', rule('kind: owner\nto: {group: Finance}\naccess: read\n'), ['YAML_SCHEMA_INVALID 1:1']],
    [
      'owner with criteria',
      rule('kind: owner\nfrom: {group: Finance}\ncriteria: "true"\nto: {group: Finance}\naccess: read\n'),
      ['YAML_SCHEMA_INVALID 6:1'],
    ],
    [
      'criteria without criteria',
      rule('kind: criteria\nto: {group: Finance}\naccess: read\n'),
      ['YAML_SCHEMA_INVALID 1:1'],
    ],
    [
      'criteria with from',
      rule('kind: criteria\nfrom: {group: Finance}\ncriteria: "true"\nto: {group: Finance}\naccess: read\n'),
      ['YAML_SCHEMA_INVALID 5:1'],
    ],
    [
      'nobody to share with',
      rule('kind: criteria\ncriteria: "true"\nto: {}\naccess: read\n'),
      ['YAML_SCHEMA_INVALID 1:1'],
    ],
    [
      'a role and a group at once',
      rule('kind: criteria\ncriteria: "true"\nto: {role: R, group: Finance}\naccess: read\n'),
      ['DEPENDENCY_MISSING 6:6', 'YAML_SCHEMA_INVALID 6:1'],
    ],
    ['a user', rule('kind: criteria\ncriteria: "true"\nto: {user: x}\naccess: read\n'), ['YAML_SCHEMA_INVALID 6:6']],
    [
      'full access',
      rule('kind: criteria\ncriteria: "true"\nto: {group: Finance}\naccess: full\n'),
      ['YAML_SCHEMA_INVALID 7:1'],
    ],
    ['reference without through', rule('kind: reference\naccess: read\n'), ['YAML_SCHEMA_INVALID 1:1']],
    [
      'reference with to',
      rule('kind: reference\nthrough: Agent__c\nto: {group: Finance}\naccess: read\n'),
      ['DEPENDENCY_MISSING 5:1', 'YAML_SCHEMA_INVALID 6:1'],
    ],
    [
      'reference through a field that is no reference',
      rule('kind: reference\nthrough: Status__c\naccess: read\n'),
      ['REFERENCE_INVALID 5:1'],
    ],
    [
      'reference through a field of the platform',
      rule('kind: reference\nthrough: ownerId\naccess: read\n'),
      ['REFERENCE_INVALID 5:1'],
    ],
    ['another kind', rule('kind: manual\nto: {group: Finance}\naccess: read\n'), ['YAML_SCHEMA_INVALID 4:1']],
    [
      'roles and groups that are nowhere',
      rule('kind: owner\nfrom: {role: Gone}\nto: {group: Nowhere}\naccess: read\n'),
      ['DEPENDENCY_MISSING 5:8', 'DEPENDENCY_MISSING 6:6'],
    ],
  ];
  for (const [what, files, expected] of malformed)
    it(`are refused: ${what}`, async () => {
      const { blocked } = await planOf(new Map(), { ...BILL, ...FINANCE, ...files });
      assert.deepEqual(
        blocked.map(({ code, line, column }) => `${code} ${line}:${column}`),
        expected,
        JSON.stringify(blocked, null, 1),
      );
    });

  const criteria: [string, RegExp][] = [
    ['record.Amont__c > 0', /5:18 There is no field Amont__c/],
    ['record.Amount__c', /5:11 It gives number where boolean is needed/],
    ['record.Amount__c > "1"', /5:11 number and text cannot be compared/],
    ['user.id == record.ownerId', /5:11 user has no meaning here; there is record\./],
    ['old == null', /5:11 old has no meaning here/],
    ['record.createdAt < now', /5:30 now has no meaning here/],
    ['date(record.createdAt) < today', /5:36 today has no meaning here/],
    ['hasPermission("manageUsers")', /5:11 hasPermission\(\) has no meaning here/],
    ['inGroup("Finance")', /5:11 inGroup\(\) has no meaning here/],
    ['isChanged(record.name)', /5:11 isChanged\(\) has no meaning here/],
    ['name == "x"', /5:11 There is no variable name; there is record\./],
    ['(record.name', /5:2\d It is not well-formed/],
  ];
  for (const [text, expected] of criteria)
    it(`require consistent criteria: ${text}`, async () => {
      const { blocked } = await planOf(new Map(), { ...BILL, ...FINANCE, ...byCriteria(text) });
      assert.equal(blocked[0]?.code, 'EXPRESSION_INVALID');
      assert.match(`${blocked[0]!.line}:${blocked[0]!.column} ${blocked[0]!.message}`, expected);
    });

  it('are checked again when one of their fields changes', async () => {
    const { after } = await planOf(new Map(), { ...BILL, ...FINANCE, ...byCriteria('record.Status__c == "sent"') });
    const { blocked } = await planOf(after, fieldFile('Bill__c', 'Status__c', 'fieldType: boolean'));
    assert.ok(blocked.some(({ code, fullName }) => code === 'EXPRESSION_INVALID' && fullName === 'Bill__c.Sent'));
  });

  it('share through a reference field, whose type cannot change meanwhile', async () => {
    const files = {
      ...BILL,
      ...fieldFile('Bill__c', 'Agent__c', 'fieldType: reference\nreferenceTo: [Bill__c]'),
      ...rule('kind: reference\nthrough: Agent__c\naccess: readWrite\n', 'ByAgent'),
    };
    const { blocked, after } = await planOf(new Map(), files);
    assert.deepEqual(blocked, []);
    const bill = compileSnapshot(aSnapshot([]).tenant, 1, after).objects['Bill__c']!;
    const [meta] = bill.sharingRules;
    assert.deepEqual([meta!.kind, meta!.through, meta!.to, meta!.access], ['reference', 'Agent__c', {}, 'readWrite']);
    assert.deepEqual(
      fieldsThatShare(bill).map(({ field, toUser }) => [field.apiName, toUser]),
      [['Agent__c', false]],
    );
    const changed = await planOf(after, fieldFile('Bill__c', 'Agent__c', 'fieldType: text'));
    assert.ok(
      changed.blocked.some(({ code, fullName }) => code === 'REFERENCE_INVALID' && fullName === 'Bill__c.ByAgent'),
    );
  });

  it('are refused for objects controlled by parent and for users', async () => {
    const line = (shared: string): Files => ({
      ...objectFiles('Line__c', { Bill__c: 'fieldType: masterDetail\nreferenceTo: [Bill__c]' }),
      'objects/Line__c/object.yaml': objectFiles('Line__c')['objects/Line__c/object.yaml']!.replace(
        'api:',
        `sharingDefault: ${shared}\napi:`,
      ),
    });
    const ofLine = {
      'objects/Line__c/sharingRules/R.yaml':
        'type: SharingRule\napiName: R\nobject: Line__c\nkind: criteria\ncriteria: record.name == "x"\nto:\n  group: Finance\naccess: read\n',
    };
    const refused = await planOf(new Map(), { ...BILL, ...FINANCE, ...line('controlledByParent'), ...ofLine });
    assert.ok(
      refused.blocked.some((p) => p.code === 'REFERENCE_INVALID' && p.fullName === 'Line__c.R' && p.line === 3),
    );
    const { after, blocked } = await planOf(new Map(), { ...BILL, ...FINANCE, ...line('private'), ...ofLine });
    assert.deepEqual(blocked, []);
    assert.deepEqual(
      (await planOf(after, line('controlledByParent'))).blocked.map(({ code, fullName }) => `${code} ${fullName}`),
      ['REFERENCE_INVALID Line__c'],
    );
    // A public object may keep its rules: they apply again when it becomes private.
    assert.deepEqual((await planOf(after, line('readWrite'))).blocked, []);
  });

  it(`are ${SHARING_RULES_PER_OBJECT_MAX} per object at most, with names that differ in more than case`, async () => {
    const many: Files = {};
    for (let i = 0; i < SHARING_RULES_PER_OBJECT_MAX; i++)
      Object.assign(many, byCriteria('record.name == "x"', `R${i}`));
    const { after, blocked } = await planOf(new Map(), { ...BILL, ...FINANCE, ...many });
    assert.deepEqual(blocked, []);
    assert.deepEqual(
      (await planOf(after, byCriteria('record.name == "x"', 'Last'))).blocked.map(({ code }) => code),
      ['LIMIT_EXCEEDED'],
    );
    const twins = { ...byCriteria('record.name == "x"', 'Same'), ...byCriteria('record.name == "x"', 'SAME') };
    assert.deepEqual(
      (await planOf(new Map(), { ...BILL, ...FINANCE, ...twins })).blocked.map(({ code }) => code),
      ['NAME_CONFLICT'],
    );
  });
});

describe('metadata: groups in validation rules', () => {
  const guarded = (name: string): Files => ({
    'objects/Bill__c/validationRules/R.yaml': `type: ValidationRule\napiName: R\nobject: Bill__c\nactive: true\ncondition: '!inGroup("${name}")'\nmessage: No.\n`,
  });
  it('must exist and are dependencies', async () => {
    const { blocked } = await planOf(new Map(), { ...BILL, ...guarded('Finance') });
    assert.deepEqual(
      blocked.map(({ code, line, column, message }) => `${code} ${line}:${column} ${message}`),
      ['EXPRESSION_INVALID 5:22 There is no group Finance.'],
    );
    const { after, blocked: none } = await planOf(new Map(), { ...BILL, ...FINANCE, ...guarded('Finance') });
    assert.deepEqual(none, []);
    const { updates } = await planOf(after, group('Finance', 'members:\n  users: [a]\n'));
    assert.deepEqual(updates[0]!.impact.dependents, [{ type: 'ValidationRule', fullName: 'Bill__c.R' }]);
  });
});
