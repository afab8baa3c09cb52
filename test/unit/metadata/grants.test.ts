import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import type { Principal } from '../../../lib/access/types.ts';
import type { State } from '../../../services/metadata/kinds/component.ts';
import type { Plan } from '../../../services/metadata/planner/plan.ts';
import { fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { actingIn, planBy } from '../../support/plans.ts';

type Files = Record<string, string>;

const bundle = (type: 'Profile' | 'PermissionSet', name: string, body: string): Files => ({
  [`${type === 'Profile' ? 'profiles' : 'permissionSets'}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nlabel: ${name}\n${body}`,
});
const profile = (name: string, body: string): Files => bundle('Profile', name, body);
const role = (name: string, parent?: string): Files => ({
  [`roles/${name}.yaml`]: `type: Role\napiName: ${name}\nlabel: ${name}\n${parent ? `parent: ${parent}\n` : ''}`,
});
const group = (name: string, members = ''): Files => ({
  [`groups/${name}.yaml`]: `type: Group\napiName: ${name}\nlabel: ${name}\n${members && `members:\n${members}`}`,
});
const child = (folder: string, type: string, name: string, body: string): Files => ({
  [`objects/Deal__c/${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nobject: Deal__c\n${body}`,
});
const sharingRule = (name: string, body: string): Files => child('sharingRules', 'SharingRule', name, body);
const validationRule = (name: string, condition: string): Files =>
  child('validationRules', 'ValidationRule', name, `condition: ${condition}\nmessage: no\n`);
const client = (body: string): Files => ({
  'externalClients/App.yaml': `type: ExternalClient\napiName: App\nname: App\ngrantTypes: [client_credentials]\nconfidential: true\n${body}`,
});
const identityProvider = (body: string): Files => ({
  'identityProviders/Corp.yaml': `type: IdentityProvider\napiName: Corp\nlabel: Corp\nissuer: https://id.corp.example\nclientId: erp\ndomains: [corp.example]\n${body}`,
});
const deals = (sharingDefault: string): Files => objectFiles('Deal__c', {}, `sharingDefault: ${sharingDefault}\n`);
const STAGE = 'fieldType: picklist\npicklist: {values: [{value: open}, {value: won}]}';
const lifecycle = (transition: string, more = ''): Files =>
  child(
    'stateModels',
    'StateModel',
    'Life',
    `field: Stage__c\ninitial: open\n${more}transitions:\n  - key: win\n    label: Win\n    from: [open]\n    to: won\n${transition}`,
  );
const remind = (effects: string): Files => child('actions', 'CustomAction', 'Remind', `label: Remind\n${effects}`);

const BUILDER = 'system: [apiEnabled, metadataManage, metadataRead]\n';

/** Private deals with a salary that only bosses see; Bea configures and may do little else. */
const GROUND: Files = {
  ...objectFiles(
    'Deal__c',
    {
      Amount__c: 'fieldType: currency',
      Salary__c: 'fieldType: currency',
      Stage__c: STAGE,
      Other__c: 'fieldType: reference\nreferenceTo: [Far__c]\nonDelete: restrict',
    },
    'sharingDefault: private\n',
  ),
  ...objectFiles('Open__c', { Deal__c: 'fieldType: reference\nreferenceTo: [Deal__c]' }, 'sharingDefault: readWrite\n'),
  ...objectFiles('Far__c'),
  ...role('Top'),
  ...role('Lead', 'Top'),
  ...role('Rep', 'Lead'),
  ...role('Aside'),
  ...group('Closed', '  users: [boss@x.example]\n'),
  ...group('Mine', '  users: [bea@x.example]\n'),
  ...sharingRule('Led', 'kind: owner\nfrom: {role: Rep}\nto: {role: Lead}\naccess: read\n'),
  ...sharingRule('OfMine', 'kind: owner\nfrom: {group: Mine}\nto: {role: Aside}\naccess: read\n'),
  ...validationRule('Paid', 'record.Salary__c > 0'),
  ...lifecycle('    permission: Deal__c.win\n'),
  ...remind('effects: []\n'),
  ...profile(
    'Builder',
    `${BUILDER}objects:\n  Deal__c: {read: true, update: true}\nfields:\n  Deal__c.Amount__c: {read: true}\n`,
  ),
  ...profile('Boss', `system: [apiEnabled, manageAccess, manageUsers, manageClients, metadataManage]\n`),
  ...profile('Data', `system: [apiEnabled, metadataManage, viewAllData]\n`),
  ...profile('Everything', 'system: [apiEnabled, viewAllData]\nobjects:\n  Deal__c: {read: true, modifyAll: true}\n'),
  ...bundle('PermissionSet', 'Clients', 'system: [manageClients, manageUsers]\n'),
  ...identityProvider('createUsers: {profileApiName: Builder}\n'),
  ...client('integrationUser: robot@x.example\nscopes: ["data:read"]\n'),
};

const BEA = { username: 'bea@x.example', profileApiName: 'Builder', roleApiName: 'Lead' } satisfies Partial<Principal>;
const DATA = { username: 'dan@x.example', profileApiName: 'Data' } satisfies Partial<Principal>;
const BOSS = { username: 'boss@x.example', profileApiName: 'Boss' } satisfies Partial<Principal>;
const ROBOT = { username: 'robot@x.example', profileApiName: 'Everything' } satisfies Partial<Principal>;
const EQUAL = { username: 'equal@x.example', profileApiName: 'Builder' } satisfies Partial<Principal>;

describe('permission checks of a deployment', () => {
  let ground: State;
  before(async () => {
    const made = await planBy(new Map(), GROUND, null);
    assert.deepEqual(made.blocked, []);
    ground = made.after;
  });

  const plan = (files: Files, by: Partial<Principal> = BEA): Promise<Plan> =>
    planBy(ground, files, actingIn(ground, by, ROBOT, EQUAL));
  const problems = async (files: Files, by?: Partial<Principal>) =>
    (await plan(files, by)).blocked.map(({ code, fullName, line, message }) => {
      assert.equal(code, 'COMPONENT_PERMISSION_DENIED', message);
      return `${fullName}:${line ?? '-'}`;
    });

  type Case = readonly [what: string, files: () => Files, refused: readonly string[], by?: Partial<Principal>];

  const cases: readonly Case[] = [
    ['a system permission', () => profile('New', 'system: [apiEnabled, viewAudit]\n'), ['New:4']],
    [
      'modifyAll, viewAll and what they include, all at once and each where it stands',
      () => profile('New', 'objects:\n  Deal__c:\n    read: true\n    viewAll: true\n    modifyAll: true\n'),
      ['New:7', 'New:8'],
    ],
    [
      'create on an object that they only change',
      () => profile('New', 'objects:\n  Deal__c: {read: true, create: true}\n'),
      ['New:5'],
    ],
    [
      'a field that is hidden from them',
      () => profile('New', 'fields:\n  Deal__c.Salary__c: {read: true}\n'),
      ['New:5'],
    ],
    [
      'edit on a field that they only read',
      () => profile('New', 'fields:\n  Deal__c.Amount__c: {read: true, edit: true}\n'),
      ['New:5'],
    ],
    ['a transition that they may not take', () => profile('New', 'actions: [Deal__c.win]\n'), ['New:4']],
    [
      'more to a profile that has some of it',
      () =>
        profile(
          'Builder',
          `${BUILDER}objects:\n  Deal__c: {read: true, update: true, delete: true}\nfields:\n  Deal__c.Amount__c: {read: true}\n`,
        ),
      ['Builder:6'],
    ],
    [
      'nothing, when they take it from who holds it',
      () => profile('Data', 'system: [apiEnabled, metadataManage]\n'),
      ['Data:1'],
    ],
    [
      'a profile that they do not hold, to those who sign in',
      () => identityProvider('createUsers: {profileApiName: Everything}\n'),
      ['Corp:7'],
    ],
    ['the sign-in of others, though not its label', () => identityProvider(''), ['Corp:1']],
    [
      'the label of a sign-in alone',
      () => ({
        'identityProviders/Corp.yaml': identityProvider('createUsers: {profileApiName: Builder}\n')[
          'identityProviders/Corp.yaml'
        ]!.replace('label: Corp', 'label: Company'),
      }),
      [],
    ],
    ['the sign-in of others, by who manages access', () => identityProvider('passwordSignIn: false\n'), [], BOSS],
    ['the reach of a role beside theirs, to themselves', () => role('Aside', 'Lead'), ['Aside:4']],
    ['the reach of a role above theirs', () => role('Top', 'Aside'), ['Top:4']],
    ['a group that they are not in', () => group('Closed', '  users: [bea@x.example, boss@x.example]\n'), ['Closed:4']],
    ['it by a group inside', () => group('Closed', '  groups: [Mine]\n'), ['Closed:4']],
    ['it by a role', () => group('Closed', '  roles: [Lead]\n'), ['Closed:4']],
    [
      'records of others by a group whose records a rule opens',
      () => group('Mine', '  users: [bea@x.example, boss@x.example]\n'),
      ['Mine:4'],
    ],
    [
      'the same by a group inside',
      () => ({
        ...group('Inner', '  users: [boss@x.example]\n'),
        ...group('Mine', '  groups: [Inner]\n  users: [bea@x.example]\n'),
      }),
      ['Inner:4', 'Mine:4'],
    ],
    ['records that they do not see, by a default', () => deals('read'), ['Deal__c:10']],
    [
      'records that they do not see, by criteria',
      () => sharingRule('New', 'kind: criteria\ncriteria: record.Amount__c > 0\nto: {role: Lead}\naccess: read\n'),
      ['Deal__c.New:7'],
    ],
    [
      'records that they do not see, by owners',
      () => sharingRule('New', 'kind: owner\nfrom: {role: Top}\nto: {role: Lead}\naccess: read\n'),
      ['Deal__c.New:7'],
    ],
    [
      'edit of records that they only see',
      () => sharingRule('New', 'kind: criteria\ncriteria: record.Amount__c > 0\nto: {role: Lead}\naccess: readWrite\n'),
      ['Deal__c.New:7'],
      DATA,
    ],
    [
      'a wider rule',
      () => sharingRule('OfMine', 'kind: owner\nfrom: {group: Mine}\nto: {role: Aside}\naccess: readWrite\n'),
      ['Deal__c.OfMine:7'],
    ],
    [
      'a hidden field by a formula',
      () =>
        fieldFile(
          'Deal__c',
          'Copy__c',
          'fieldType: formula\nformula:\n  expression: record.Salary__c\n  resultType: currency',
        ),
      ['Deal__c.Copy__c:7'],
    ],
    [
      'a hidden field by a formula in other words',
      () =>
        fieldFile(
          'Deal__c',
          'Copy__c',
          'fieldType: formula\nformula:\n  expression: ((record)).Salary__c\n  resultType: currency',
        ),
      ['Deal__c.Copy__c:7'],
    ],
    [
      'a hidden field by a rule that refuses',
      () => validationRule('Probe', 'record.Salary__c > 1000'),
      ['Deal__c.Probe:4'],
    ],
    [
      'a hidden field by another condition',
      () => validationRule('Paid', 'record.Salary__c > 1000'),
      ['Deal__c.Paid:4'],
    ],
    [
      'a hidden field by a guard',
      () => remind('guard: record.Salary__c > 1000\n'),
      ['Deal__c.Remind:5', 'Deal__c.Remind:5'],
    ],
    [
      'a hidden field by criteria',
      () => sharingRule('New', 'kind: criteria\ncriteria: record.Salary__c > 0\nto: {role: Lead}\naccess: read\n'),
      ['Deal__c.New:5', 'Deal__c.New:7'],
    ],
    [
      'a hidden field by an effect that copies it',
      () =>
        child(
          'actions',
          'CustomAction',
          'Copy',
          'label: C\neffects:\n  - verb: updateFields\n    fields:\n      Amount__c: record.Salary__c\n',
        ),
      ['Deal__c.Copy:8', 'Deal__c.Copy:8'],
    ],
    [
      'a field to whoever takes an action',
      () =>
        child(
          'actions',
          'CustomAction',
          'Set',
          'label: C\neffects:\n  - verb: updateFields\n    fields:\n      Salary__c: "1"\n',
        ),
      ['Deal__c.Set:8'],
    ],
    [
      'hidden values by a duplicate rule',
      () =>
        child(
          'duplicateRules',
          'DuplicateRule',
          'Same',
          'label: S\nactive: false\naction: block\nscope: visible\nmatch: [{field: Salary__c, method: exact}]\nthreshold: 1\n',
        ),
      ['Deal__c.Same:8'],
    ],
    [
      'records that they do not see, by a duplicate rule',
      () =>
        child(
          'duplicateRules',
          'DuplicateRule',
          'Same',
          'label: S\nactive: false\naction: block\nscope: all\nmatch: [{field: name, method: exact}]\nthreshold: 1\n',
        ),
      ['Deal__c.Same:7'],
    ],
    [
      'a count of records that they do not see',
      () => ({
        ...fieldFile('Deal__c', 'Up__c', 'fieldType: reference\nreferenceTo: [Open__c]'),
        ...fieldFile(
          'Open__c',
          'Count__c',
          'fieldType: rollup\nrollup:\n  childObject: Deal__c\n  referenceField: Up__c\n  function: count',
        ),
      }),
      ['Open__c.Count__c:6'],
    ],
    ['a transition to those who lack its permission', () => lifecycle(''), ['Deal__c.Life:4', 'Deal__c.Life:6']],
    [
      'a state to be typed in',
      () => lifecycle('    permission: Deal__c.win\n', 'allowDirectEdit: true\n'),
      ['Deal__c.Life:4', 'Deal__c.Life:6'],
    ],
    [
      'the end of a life',
      () => lifecycle('    permission: Deal__c.win\n', 'active: false\n'),
      ['Deal__c.Life:4', 'Deal__c.Life:6'],
    ],
    [
      'another effect of an action that they may not take',
      () => remind('requiresComment: true\n'),
      ['Deal__c.Remind:5'],
    ],
    [
      'deletion by way of another record',
      () => fieldFile('Deal__c', 'Other__c', 'fieldType: reference\nreferenceTo: [Far__c]\nonDelete: cascade'),
      ['Deal__c.Other__c:7'],
    ],
    ['a client', () => client('integrationUser: robot@x.example\nscopes: []\n'), ['App:1', 'App:6']],
  ].map((it) => it as unknown as Case);

  for (const [what, files, refused, by] of cases)
    it(`refuse to grant ${what}`, async () => {
      assert.deepEqual((await problems(files(), by)).sort(), [...refused].sort());
      assert.deepEqual((await plan(files(), BOSS)).blocked, [], 'but for those who manage access');
    });

  /** Components over fields that others built and switched off or hid; Bea finds them. */
  const formula = (expression: string, resultType = 'currency'): string =>
    `fieldType: formula\nformula:\n  expression: ${expression}\n  resultType: ${resultType}`;
  const rollup = (childObject: string, referenceField: string, more = 'function: count'): string =>
    `fieldType: rollup\nrollup:\n  childObject: ${childObject}\n  referenceField: ${referenceField}\n  ${more}`;
  const duplicates = (more: string): Files =>
    child('duplicateRules', 'DuplicateRule', 'Same', `${more}match: [{field: name, method: exact}]\nthreshold: 1\n`);
  const onUser = (folder: string, type: string, name: string, body: string): Files => ({
    [`objects/User/${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nobject: User\n${body}`,
  });
  const BUILT: Files = {
    ...objectFiles(
      'Deal__c',
      {
        Weighted__c: formula('record.Amount__c'),
        Twice__c: formula('record.Weighted__c * 2'),
        IsPublic__c: formula('record.Amount__c > 5', 'boolean'),
        Mixed__c: formula('record.Shown__c + record.Salary__c'),
        Shown__c: formula('record.Amount__c + 1'),
        Ready__c: formula('record.Amount__c > 1', 'boolean'),
        Free__c: formula('record.Amount__c > 2', 'boolean'),
        Flag__c: 'fieldType: boolean',
        Note__c: 'fieldType: text',
        Up__c: 'fieldType: reference\nreferenceTo: [Open__c]',
      },
      'sharingDefault: private\n',
    ),
    ...fieldFile('Open__c', 'Sum__c', rollup('Deal__c', 'Up__c', 'function: sum\n  field: Twice__c')),
    ...objectFiles(
      'Far__c',
      { ToOpen__c: 'fieldType: reference\nreferenceTo: [Open__c]' },
      'sharingDefault: readWrite\n',
    ),
    ...sharingRule('Public', 'kind: criteria\ncriteria: record.IsPublic__c\nto: {role: Lead}\naccess: read\n'),
    ...sharingRule('Flagged', 'kind: criteria\ncriteria: record.Flag__c == true\nto: {role: Lead}\naccess: read\n'),
    ...sharingRule('Noted', 'kind: criteria\ncriteria: record.Note__c == "x"\nto: {role: Lead}\naccess: read\n'),
    ...child('actions', 'CustomAction', 'Pay', 'label: Pay\nguard: record.Ready__c\n'),
    ...validationRule('Spare', 'record.Free__c'),
    ...duplicates('scope: all\n'),
    ...objectFiles('User', { Level__c: 'fieldType: integer', Odd__c: formula('record.Level__c > 9', 'boolean') }),
    ...onUser('validationRules', 'ValidationRule', 'Even', 'condition: record.Odd__c\nmessage: no\n'),
    ...profile(
      'Builder',
      `${BUILDER}objects:\n  Deal__c: {read: true, update: true}\n  Open__c: {read: true, update: true}\nfields:\n${[
        'Amount__c',
        'Weighted__c',
        'Twice__c',
        'IsPublic__c',
        'Mixed__c',
        'Shown__c',
        'Ready__c',
        'Free__c',
        'Up__c',
        'Note__c',
      ]
        .map((it) => `  Deal__c.${it}: {read: true}\n`)
        .join(
          '',
        )}  Deal__c.Flag__c: {read: true, edit: true}\n  User.Level__c: {read: true}\n  User.Odd__c: {read: true}\n`,
    ),
  };
  const bea = (name: string, more: string): Files => fieldFile('Deal__c', name, more);

  const indirect: readonly (readonly [what: string, files: Files, refused: readonly string[], why: RegExp])[] = [
    [
      'records by a formula that a sharing rule asks',
      bea('IsPublic__c', formula('record.Amount__c > -1', 'boolean')),
      ['Deal__c.IsPublic__c:6'],
      /SharingRule Deal__c\.Public depends on it, and it opens records/,
    ],
    [
      'sums of hidden records by a formula under a formula under a rollup',
      bea('Weighted__c', formula('record.Amount__c * 3')),
      ['Deal__c.Weighted__c:6'],
      /CustomField Open__c\.Sum__c depends on it, and it tells of records of Deal__c/,
    ],
    [
      'a hidden field by the rest of a sum that it is in',
      bea('Shown__c', formula('record.Amount__c * 0')),
      ['Deal__c.Shown__c:6'],
      /Deal__c\.Mixed__c depends on it, and it takes read on Deal__c\.Salary__c/,
    ],
    [
      'an action by the formula that guards it',
      bea('Ready__c', formula('record.Amount__c > -1', 'boolean')),
      ['Deal__c.Ready__c:6'],
      /CustomAction Deal__c\.Pay depends on it, and it takes Deal__c\.Pay/,
    ],
    [
      'records by a default value that a sharing rule asks',
      bea('Flag__c', 'fieldType: boolean\ndefaultValue: true'),
      ['Deal__c.Flag__c:6'],
      /SharingRule Deal__c\.Flagged depends on it/,
    ],
    [
      'values to all records',
      bea('Flag__c', 'fieldType: boolean\nrequired: true\ndefaultValue: false'),
      ['Deal__c.Flag__c:6', 'Deal__c.Flag__c:7'],
      /records of Deal__c that you may not change|Flagged depends/,
    ],
    [
      'a default value to a field that they may not edit',
      bea('Note__c', 'fieldType: text\ndefaultValue: y'),
      ['Deal__c.Note__c:6'],
      /edit on Deal__c\.Note__c|Deal__c\.Noted depends on it/,
    ],
    [
      'the count of hidden duplicates',
      duplicates('revealHiddenCount: true\n'),
      ['Deal__c.Same:4'],
      /tells of records that you do not see all of/,
    ],
    [
      'hidden duplicates by waking a rule of others',
      objectFiles('Deal__c', {}, 'sharingDefault: private\nfeatures:\n  duplicates: true\n'),
      ['Deal__c:12'],
      /DuplicateRule Deal__c\.Same would wake up/,
    ],
    [
      'a count of records of an object that there is not for them',
      fieldFile('Open__c', 'Far__c', rollup('Far__c', 'ToOpen__c')),
      ['Open__c.Far__c:6', 'Open__c.Far__c:8'],
      /records of Far__c that you do not reach|read on Far__c\.ToOpen__c/,
    ],
    [
      'a refusal of every change of a user',
      onUser('validationRules', 'ValidationRule', 'Never', 'condition: "true"\nmessage: no\n'),
      ['User.Never:3'],
      /which changes of users are refused/,
    ],
    [
      'the same by a duplicate rule',
      onUser('duplicateRules', 'DuplicateRule', 'Never', 'match: [{field: name, method: exact}]\nthreshold: 1\n'),
      ['User.Never:3'],
      /which changes of users are refused/,
    ],
    [
      'the same by the formula of a rule of others',
      fieldFile('User', 'Odd__c', formula('record.Level__c == null || true', 'boolean')),
      ['User.Odd__c:6'],
      /ValidationRule User\.Even depends on it, and it takes manageAccess/,
    ],
    [
      'the same by a field that takes few values',
      fieldFile('User', 'Level__c', 'fieldType: integer\nmaximum: 1'),
      ['User.Level__c:6'],
      /which changes of users are refused/,
    ],
    [
      'the end of administration',
      profile('Boss', 'system: [apiEnabled, manageAccess, manageUsers, manageClients]\n'),
      ['Boss:1'],
      /Only who holds manageAccess can take metadataManage/,
    ],
    [
      'the same by what others have who manage access',
      profile('Data', 'system: [metadataManage, viewAllData]\n'),
      ['Data:1'],
      /Only who holds manageAccess can take apiEnabled/,
    ],
    [
      'an object away from everybody',
      Object.fromEntries(
        Object.entries(deals('private')).map(([path, text]) => [
          path,
          text.replace('published: true', 'published: false'),
        ]),
      ),
      ['Deal__c:9'],
      /Only who may delete all records/,
    ],
    [
      'the end of the history of records',
      Object.fromEntries(
        Object.entries(deals('private')).map(([path, text]) => [path, `${text}features: {history: false}\n`]),
      ),
      ['Deal__c:11'],
      /Only who may delete all records .* stop keeping its history/,
    ],
  ];

  for (const [what, files, refused, why] of indirect)
    it(`refuse to grant, through components of others, ${what}`, async () => {
      const built = await planBy(ground, BUILT, null);
      assert.deepEqual(built.blocked, []);
      const by = (user: Partial<Principal>) => planBy(built.after, files, actingIn(built.after, user));
      const { blocked } = await by(BEA);
      assert.deepEqual([...new Set(blocked.map(({ fullName, line }) => `${fullName}:${line}`))].sort(), [...refused]);
      for (const { code, message } of blocked) {
        assert.equal(code, 'COMPONENT_PERMISSION_DENIED', message);
        assert.match(message, why);
      }
      assert.deepEqual((await by(BOSS)).blocked, [], 'but for those who manage access');
    });

  it('allow components that depend on nothing that the actor lacks', async () => {
    const { after } = await planBy(ground, BUILT, null);
    for (const files of [
      bea('Free__c', formula('record.Amount__c > 3', 'boolean')),
      bea('Note__c', 'fieldType: text\nhelpText: Anything'),
      bea('IsPublic__c', `${formula('record.Amount__c > 5', 'boolean')}\nhelpText: In words`),
      fieldFile('User', 'Hobby__c', 'fieldType: text\nlength: 20'),
    ])
      assert.deepEqual((await planBy(after, files, actingIn(after, BEA))).blocked, [], JSON.stringify(files));
  });

  it('allow granting what the actor holds, and keep existing grants', async () => {
    for (const files of [
      profile(
        'New',
        'system: [metadataRead]\nobjects:\n  Deal__c: {read: true, update: true}\nfields:\n  Deal__c.Amount__c: {read: true}\n',
      ),
      profile(
        'Everything',
        'system: [apiEnabled, viewAllData]\nobjects:\n  Deal__c: {read: true, modifyAll: true}\nfields:\n  Deal__c.Amount__c: {read: true}\n',
      ),
      role('Rep', 'Top'),
      role('New', 'Top'),
      sharingRule('New', 'kind: owner\nfrom: {role: Rep}\nto: {group: Mine}\naccess: readWrite\n'),
      sharingRule('Led', 'kind: owner\nfrom: {role: Rep}\nto: {role: Top}\naccess: read\n'),
      child('validationRules', 'ValidationRule', 'Paid', 'condition: record.Salary__c > 0\nmessage: Another text\n'),
      fieldFile(
        'Deal__c',
        'Twice__c',
        'fieldType: formula\nformula:\n  expression: record.Amount__c * 2\n  resultType: currency',
      ),
      lifecycle('    permission: Deal__c.win\n    description: Hooray\n'.replace('    description: Hooray\n', '')),
    ])
      assert.deepEqual(await problems(files), [], JSON.stringify(files));
  });

  it('allow granting access to components that the deployment creates', async () => {
    const files = {
      ...objectFiles('New__c', { Pay__c: 'fieldType: currency' }, 'sharingDefault: readWrite\n'),
      ...fieldFile('Deal__c', 'More__c', 'fieldType: text'),
      ...child('actions', 'CustomAction', 'Send', 'label: Send\n'),
      ...group('Fresh', '  users: [boss@x.example]\n  roles: [Rep]\n'),
      'objects/New__c/sharingRules/All.yaml':
        'type: SharingRule\napiName: All\nobject: New__c\nkind: criteria\ncriteria: record.Pay__c > 0\nto: {group: Fresh}\naccess: readWrite\n',
      ...profile(
        'New',
        'objects:\n  New__c: {create: true, read: true, modifyAll: true}\nfields:\n  New__c.Pay__c: {read: true, edit: true}\n  Deal__c.More__c: {read: true, edit: true}\nactions: [Deal__c.Send]\n',
      ),
    };
    const made = await plan(files);
    assert.deepEqual(made.blocked, []);
    // For the next deployment it exists, so granting it needs the permission.
    const later = await planBy(
      made.after,
      profile('Later', 'fields:\n  New__c.Pay__c: {read: true}\n'),
      actingIn(made.after, BEA),
    );
    assert.deepEqual(
      later.blocked.map(({ code }) => code),
      ['COMPONENT_PERMISSION_DENIED'],
    );
  });

  it('refuse a transition of a field that the actor cannot edit', async () => {
    const files = {
      'objects/Open__c/stateModels/Life.yaml':
        'type: StateModel\napiName: Life\nobject: Open__c\nfield: Phase__c\ninitial: open\ntransitions:\n  - key: win\n    label: Win\n    from: [open]\n    to: won\n',
    };
    const before = (await planBy(ground, fieldFile('Open__c', 'Phase__c', STAGE), null)).after;
    const by = (rights: string) =>
      planBy(before, profile('Builder', `${BUILDER}objects:\n  Open__c: {read: true}\nfields:\n  ${rights}\n`), null);
    for (const [rights, refused] of [
      ['Open__c.Phase__c: {read: true}', 1],
      ['Open__c.Phase__c: {read: true, edit: true}', 0],
    ] as const) {
      const { after } = await by(rights);
      assert.equal((await planBy(after, files, actingIn(after, BEA))).blocked.length, refused);
    }
  });

  it('block changes whose record checks would reveal hidden values to the actor', async () => {
    const narrower = (field: string): Files =>
      fieldFile('Deal__c', field, 'fieldType: currency\nprecision: 6\nscale: 2');
    const hidden = await plan(narrower('Salary__c'));
    assert.deepEqual(
      hidden.blocked.map(({ message, line }) => [message, line]),
      [['Only users who hold read on Deal__c.Salary__c learn whether the records allow it.', 6]],
    );
    assert.deepEqual(hidden.dataChecks, []);
    const shown = await plan(narrower('Amount__c'));
    assert.deepEqual([shown.blocked, shown.dataChecks.length], [[], 1]);
    const asked = await plan(narrower('Salary__c'), BOSS);
    assert.deepEqual([asked.blocked, asked.dataChecks.length], [[], 1]);
    const none = await plan(fieldFile('Far__c', 'New__c', 'fieldType: text\nrequired: true'));
    assert.deepEqual([none.blocked.length, none.dataChecks], [1, []], 'nor whether there are any');
  });

  it('allow a client to act as users who hold no more than the actor, with a warning', async () => {
    const dealer = { ...BEA, permissionSetApiNames: ['Clients'] };
    const refused = async (body: string): Promise<string[]> => (await problems(client(body), dealer)).sort();
    assert.deepEqual(await refused('integrationUser: ROBOT@x.example\n'), ['App:6']);
    assert.deepEqual(
      await refused('integrationUser: robot@x.example\nscopes: ["data:write"]\n'),
      ['App:6'],
      'its scopes',
    );
    const { x, y } = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
    const jwks = JSON.stringify({ keys: [{ kty: 'EC', crv: 'P-256', x, y }] });
    assert.deepEqual(await refused(`integrationUser: robot@x.example\njwks: ${jwks}\n`), ['App:6'], 'its keys');
    assert.deepEqual(
      await refused('integrationUser: nobody@x.example\n'),
      ['App:1', 'App:6'],
      'a name to be taken later',
    );
    assert.deepEqual(await refused('integrationUser: equal@x.example\n'), ['App:1'], 'away from who holds more');
    const fresh = {
      'externalClients/Own.yaml': client('integrationUser: equal@x.example\n')['externalClients/App.yaml']!.replaceAll(
        'App',
        'Own',
      ),
    };
    const made = await plan(fresh, dealer);
    assert.deepEqual(made.blocked, []);
    assert.deepEqual(
      made.warnings.map(({ code, fullName, line }) => [code, fullName, line]),
      [['ACTS_AS_USER', 'Own', 6]],
    );
    assert.deepEqual(
      (await plan(fresh)).blocked.map(({ message }) => message),
      [
        'Changing clients needs manageClients.',
        'A client that acts as a user is changed by those who hold manageUsers.',
      ],
    );
  });
});
