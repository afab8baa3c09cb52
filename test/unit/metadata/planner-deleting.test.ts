import assert from 'node:assert/strict';
import type { Principal } from '../../../lib/access/types.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import { type Component, componentKey, type State } from '../../../services/metadata/kinds/component.ts';
import { KINDS } from '../../../services/metadata/kinds/registry.ts';
import { ddl } from '../../../services/metadata/physical/ddl.ts';
import { type Model, physicalModel } from '../../../services/metadata/physical/model.ts';
import { modelWithRetained } from '../../../services/metadata/physical/retained.ts';
import { drift, makePlan, type Plan, type PlanOptions, planHash } from '../../../services/metadata/planner/plan.ts';
import { prepare } from '../../../services/metadata/prepare.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { destructiveManifest, fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { acting, actingIn, planBy } from '../../support/plans.ts';
import { aSnapshot } from '../../support/snapshots.ts';

type Files = Record<string, string>;

const child = (object: string, folder: string, type: string, name: string, body: string): Files => ({
  [`objects/${object}/${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\nobject: ${object}\n${body}`,
});
const top = (folder: string, type: string, name: string, body = ''): Files => ({
  [`${folder}/${name}.yaml`]: `type: ${type}\napiName: ${name}\n${body}`,
});

const USER = {
  ...objectFiles('User', {
    profileApiName: 'fieldType: text',
    roleApiName: 'fieldType: text',
    permissionSetApiNames: 'fieldType: multiPicklist\npicklist: {restricted: false}',
  }),
};

/** Every kind, and in most of them something that another component uses. */
const GROUND: Files = {
  ...USER,
  ...objectFiles(
    'Deal__c',
    {
      Amount__c: 'fieldType: currency\ncurrencyField: Currency__c',
      Currency__c: 'fieldType: text\nlength: 3',
      Code__c: 'fieldType: text',
      Free__c: 'fieldType: text',
      Stage__c: 'fieldType: picklist\npicklist: {values: [{value: open}, {value: won}]}',
      Land__c: 'fieldType: picklist\npicklist: {valueSet: Country}',
      City__c: 'fieldType: picklist\npicklist: {controllingField: Land__c, values: [{value: here, validFor: [de]}]}',
      Helper__c: 'fieldType: reference\nreferenceTo: [User]',
    },
    'features: {search: true, duplicates: true}\ndefaultSearchFields: [name, Code__c]\nsharingDefault: private\n',
  ),
  ...objectFiles('Line__c', {
    Deal__c: 'fieldType: masterDetail\nreferenceTo: [Deal__c]',
    Price__c: 'fieldType: currency',
  }),
  ...fieldFile(
    'Deal__c',
    'Total__c',
    'fieldType: rollup\nrollup: {childObject: Line__c, referenceField: Deal__c, function: sum, field: Price__c}',
  ),
  ...child('Deal__c', 'recordTypes', 'RecordType', 'Large', 'label: Large\npicklistValues: {Stage__c: [open]}\n'),
  ...child('Deal__c', 'validationRules', 'ValidationRule', 'Paid', 'condition: record.Amount__c < 0\nmessage: no\n'),
  ...child('Deal__c', 'duplicateRules', 'DuplicateRule', 'Same', 'match: [{field: Code__c}]\n'),
  ...child(
    'Deal__c',
    'sharingRules',
    'SharingRule',
    'OfReps',
    'kind: owner\nfrom: {role: Rep}\nto: {group: Readers}\naccess: read\n',
  ),
  ...child(
    'Deal__c',
    'stateModels',
    'StateModel',
    'Life',
    'field: Stage__c\ninitial: open\ntransitions:\n  - {key: win, label: Win, from: [open], to: won, permission: Deal__c.win}\n',
  ),
  ...child(
    'Deal__c',
    'actions',
    'CustomAction',
    'Remind',
    'label: Remind\neffects: [{verb: sendNotification, type: Reminder, to: Helper__c}]\n',
  ),
  ...child(
    'Deal__c',
    'notificationTemplates',
    'NotificationTemplate',
    'Said',
    'label: Said\ntexts: {en: {title: Said}}\n',
  ),
  ...child('Deal__c', 'actions', 'CustomAction', 'Nudge', 'label: Nudge\npermission: Deal__c.Remind\neffects: []\n'),
  ...child(
    'Deal__c',
    'layouts',
    'Layout',
    'Large',
    'label: Large\nsections: [{label: Facts, columns: [[name, Free__c]]}]\nassignments: [{recordType: Large}]\n',
  ),
  ...child(
    'Deal__c',
    'listViews',
    'ListView',
    'All',
    'label: All\ncolumns: [name, Code__c]\nsharedWith: {groups: [Readers]}\n',
  ),
  ...top('valueSets', 'ValueSet', 'Country', 'label: Country\nvalues: [{value: de}]\n'),
  ...top('roles', 'Role', 'Lead', 'label: Lead\n'),
  ...top('roles', 'Role', 'Rep', 'label: Rep\nparent: Lead\n'),
  ...top('groups', 'Group', 'Readers', 'label: Readers\n'),
  ...top(
    'profiles',
    'Profile',
    'Seller',
    'label: Seller\nsystem: [apiEnabled]\nobjects:\n  Deal__c: {read: true}\nfields:\n  Deal__c.Amount__c: {read: true}\nactions: [Deal__c.Remind, Deal__c.win]\n',
  ),
  ...top('permissionSets', 'PermissionSet', 'Free', 'label: Free\n'),
  ...top(
    'externalClients',
    'ExternalClient',
    'Robot',
    'name: Robot\ngrantTypes: [client_credentials]\nconfidential: true\nintegrationUser: robot@x.example\nscopes: ["data:read"]\n',
  ),
  ...top(
    'identityProviders',
    'IdentityProvider',
    'Corp',
    'label: Corp\nissuer: https://id.corp.example\nclientId: erp\ndomains: [corp.example]\n',
  ),
  ...top(
    'agentPolicies',
    'AgentPolicy',
    'Careful',
    'appliesTo: {clients: [Robot]}\nrules: [{objects: [Deal__c], decision: approve, approvers: [{role: Lead}]}]\n',
  ),
  ...top(
    'dashboards',
    'Dashboard',
    'Sales',
    'name: Sales\nsharedWith: [{principalType: group, principalId: Readers, access: view}]\nvisibility: shared\nwidgets: []\n',
  ),
  ...top('translations', 'Translation', 'de', 'labels: {createdAt: Angelegt am}\n'),
  ...top('settings', 'TenantSettings', 'General', 'locale: en-US\ntimezone: UTC\ncurrency: EUR\n'),
};

const platform = { platform: true, allowDestructiveChanges: true } as const;
const anybody = { platform: false, allowDestructiveChanges: true, ...acting() } as const;

const stored = (result: Plan, version = 1): State =>
  new Map(
    [...result.after].map(([key, component]): [string, Component] => [
      key,
      component.changedAtVersion === 0
        ? { ...component, changedAtVersion: version, updatedAt: '2026-11-01T00:00:00.000Z' }
        : component,
    ]),
  );

const shown = ({ blocked }: Pick<Plan, 'blocked'>): string[] =>
  blocked.map(({ code, type, fullName, details }) => {
    const members = (details?.['members'] ?? []) as { fullName: string }[];
    return [code, type, fullName, ...members.map((member) => member.fullName)].join(' ');
  });

describe('metadata: a component in a destructive manifest', () => {
  let ground: State;
  before(async () => {
    const made = makePlan(new Map(), await readProject(GROUND, null), platform);
    assert.deepEqual(made.blocked, []);
    ground = stored(made);
  });

  const plan = async (
    types: Record<string, readonly string[]>,
    files: Files = {},
    options: PlanOptions = anybody,
    before: State = ground,
  ): Promise<Plan> => makePlan(before, await readProject({ ...files, ...destructiveManifest(types) }, null), options);

  it('is listed in the plan and removed from configuration and snapshot', async () => {
    const result = await plan({ ValidationRule: ['Deal__c.Paid'], AgentPolicy: ['Careful'] });
    assert.deepEqual(result.blocked, []);
    assert.deepEqual(
      result.deletes.map(({ type, fullName, path, properties, destructive, reversible }) => ({
        type,
        fullName,
        path,
        properties,
        destructive,
        reversible,
      })),
      [
        {
          type: 'ValidationRule',
          fullName: 'Deal__c.Paid',
          path: 'objects/Deal__c/validationRules/Paid.yaml',
          properties: [],
          destructive: true,
          reversible: true,
        },
        {
          type: 'AgentPolicy',
          fullName: 'Careful',
          path: 'agentPolicies/Careful.yaml',
          properties: [],
          destructive: true,
          reversible: true,
        },
      ],
    );
    const snapshot = compileSnapshot(aSnapshot([]).tenant, 2, result.after);
    assert.deepEqual([snapshot.objects['Deal__c']?.validationRules, snapshot.agentPolicies], [[], {}]);
    assert.equal(result.after.size, ground.size - 2);
  });

  it('requires the flag', async () => {
    const asked = await plan({ ValidationRule: ['Deal__c.Paid'] }, {}, { ...anybody, allowDestructiveChanges: false });
    assert.deepEqual(shown(asked), ['DESTRUCTIVE_CHANGES_NOT_ALLOWED ValidationRule Deal__c.Paid']);
  });

  it('must exist', async () => {
    const result = await plan({ Role: ['Nobody'], Unheard: ['X'] });
    assert.deepEqual(shown(result), ['MEMBER_NOT_FOUND Role Nobody', 'TYPE_UNKNOWN Unheard X']);
    assert.deepEqual(result.deletes, []);
  });

  it('cannot be deployed by the same project', async () => {
    const file = { 'roles/Rep.yaml': GROUND['roles/Rep.yaml']! };
    assert.ok(shown(await plan({ Role: ['Rep'] }, file)).includes('PACKAGE_FILE_MISMATCH Role Rep'));
  });

  const dependents: [what: string, types: Record<string, string[]>, problems: string[]][] = [
    ['a role: sharing rules that open records of it', { Role: ['Rep'] }, ['DEPENDENT_EXISTS Role Rep Deal__c.OfReps']],
    [
      'a role: the roles below it and the policies by which it approves',
      { Role: ['Lead'] },
      ['DEPENDENT_EXISTS Role Lead Rep Careful'],
    ],
    [
      'a group: rules and dashboards that share with it',
      { Group: ['Readers'] },
      ['DEPENDENT_EXISTS Group Readers Deal__c.OfReps Sales Deal__c.All'],
    ],
    [
      'a value set: the picklists, and those that their values control',
      { ValueSet: ['Country'] },
      ['DEPENDENT_EXISTS ValueSet Country Deal__c.Land__c', 'REFERENCE_INVALID CustomField Deal__c.City__c'],
    ],
    [
      'an action: who may take it, and what is protected like it',
      { CustomAction: ['Deal__c.Remind'] },
      ['DEPENDENT_EXISTS CustomAction Deal__c.Remind Deal__c.Nudge Seller'],
    ],
    [
      'a state model: who may take its transitions',
      { StateModel: ['Deal__c.Life'] },
      ['DEPENDENT_EXISTS StateModel Deal__c.Life Seller'],
    ],
    [
      'a record type: the layouts for it',
      { RecordType: ['Deal__c.Large'] },
      ['DEPENDENT_EXISTS RecordType Deal__c.Large Deal__c.Large'],
    ],
    [
      'an object: details, rollups are its own; references, permissions and policies are not',
      { CustomObject: ['Deal__c'] },
      [
        'DEPENDENT_EXISTS CustomObject Deal__c Line__c.Deal__c Seller Careful',
        'DEPENDENT_EXISTS CustomField Deal__c.Amount__c Seller',
        'DEPENDENT_EXISTS StateModel Deal__c.Life Seller',
        'DEPENDENT_EXISTS CustomAction Deal__c.Remind Seller',
      ],
    ],
    [
      'the object that a rollup is over',
      { CustomObject: ['Line__c'] },
      [
        'DEPENDENT_EXISTS CustomObject Line__c Deal__c.Total__c',
        'DEPENDENT_EXISTS CustomField Line__c.Deal__c Deal__c.Total__c',
        'DEPENDENT_EXISTS CustomField Line__c.Price__c Deal__c.Total__c',
      ],
    ],
    [
      'a field: conditions and permissions',
      { CustomField: ['Deal__c.Amount__c'] },
      ['DEPENDENT_EXISTS CustomField Deal__c.Amount__c Deal__c.Paid Seller'],
    ],
    [
      'a field: the currency of another',
      { CustomField: ['Deal__c.Currency__c'] },
      ['DEPENDENT_EXISTS CustomField Deal__c.Currency__c Deal__c.Amount__c'],
    ],
    [
      'a field: the search, duplicate rules and list views',
      { CustomField: ['Deal__c.Code__c'] },
      ['DEPENDENT_EXISTS CustomField Deal__c.Code__c Deal__c Deal__c.Same Deal__c.All'],
    ],
    [
      'a field: record types and state models',
      { CustomField: ['Deal__c.Stage__c'] },
      ['DEPENDENT_EXISTS CustomField Deal__c.Stage__c Deal__c.Large Deal__c.Life'],
    ],
    [
      'a field: picklists that it controls',
      { CustomField: ['Deal__c.Land__c'] },
      ['DEPENDENT_EXISTS CustomField Deal__c.Land__c Deal__c.City__c'],
    ],
    [
      'a field: whom actions notify',
      { CustomField: ['Deal__c.Helper__c'] },
      ['DEPENDENT_EXISTS CustomField Deal__c.Helper__c Deal__c.Remind'],
    ],
    [
      'a field: layouts',
      { CustomField: ['Deal__c.Free__c'] },
      ['DEPENDENT_EXISTS CustomField Deal__c.Free__c Deal__c.Large'],
    ],
    ['a client: its policies', { ExternalClient: ['Robot'] }, ['DEPENDENT_EXISTS ExternalClient Robot Careful']],
  ];
  for (const [what, types, problems] of dependents)
    it(`is not in use any more; of ${what}`, async () => {
      assert.deepEqual(shown(await plan(types)), problems);
    });

  it('may be used by components that the same plan deletes or changes', async () => {
    const seller = GROUND['profiles/Seller.yaml']!.replace('actions: [Deal__c.Remind, Deal__c.win]\n', '');
    const result = await plan(
      { StateModel: ['Deal__c.Life'], CustomAction: ['Deal__c.Remind', 'Deal__c.Nudge'] },
      { 'profiles/Seller.yaml': seller },
    );
    assert.deepEqual(shown(result), []);
    assert.equal(result.deletes.length, 3);
  });

  it('is not used by an equally named label', async () => {
    const deleted = async (key: string): Promise<string[]> => {
      const files = {
        ...child('Deal__c', 'layouts', 'Layout', 'Large', 'sections: [{label: Main, columns: [[Free__c]]}]\n'),
        ...top('translations', 'Translation', 'fr', `labels: {'${key}': Nom}\n`),
      };
      const before = stored(await plan({}, files));
      return shown(await plan({ RecordType: ['Deal__c.Large'] }, {}, anybody, before));
    };
    assert.deepEqual(await deleted('Deal__c.Large#Main'), []);
    assert.deepEqual(await deleted('RecordType:Deal__c.Large'), ['DEPENDENT_EXISTS RecordType Deal__c.Large fr']);
  });

  it('cannot be the tenant settings or a platform component', async () => {
    const system = new Map(
      [...ground].map(([key, component]) => [key, { ...component, system: component.type === 'Role' }]),
    );
    assert.deepEqual(shown(await plan({ TenantSettings: ['General'] })), [
      'SYSTEM_COMPONENT_READ_ONLY TenantSettings General',
    ]);
    const result = await plan({ Role: ['Rep'], SharingRule: ['Deal__c.OfReps'] }, {}, anybody, system);
    assert.deepEqual(shown(result), ['SYSTEM_COMPONENT_READ_ONLY Role Rep']);
  });

  it('is checked against the records that hold it', async () => {
    const { dataChecks } = await plan({
      Profile: ['Seller'],
      PermissionSet: ['Free'],
      Role: ['Rep'],
      SharingRule: ['Deal__c.OfReps'],
      RecordType: ['Deal__c.Large'],
      Layout: ['Deal__c.Large'],
    });
    assert.deepEqual(
      dataChecks.map(({ code, object, question }) => [code, object, question]),
      [
        ['DEPENDENT_EXISTS', 'Deal__c', { kind: 'anyOf', field: 'recordTypeApiName', values: ['Large'], list: false }],
        ['DEPENDENT_EXISTS', 'User', { kind: 'anyOf', field: 'roleApiName', values: ['Rep'], list: false }],
        ['DEPENDENT_EXISTS', 'User', { kind: 'anyOf', field: 'profileApiName', values: ['Seller'], list: false }],
        ['DEPENDENT_EXISTS', 'User', { kind: 'anyOf', field: 'permissionSetApiNames', values: ['Free'], list: true }],
      ],
    );
  });

  it('changes the plan hash, as does another version of the deleted component', async () => {
    const types = { ValidationRule: ['Deal__c.Paid'] };
    const key = componentKey('ValidationRule', 'Deal__c.Paid');
    const newer = new Map(ground).set(key, { ...ground.get(key)!, changedAtVersion: 7 });
    const hashes = [
      planHash(await plan({}), ground),
      planHash(await plan(types), ground),
      planHash(await plan(types, {}, anybody, newer), newer),
    ];
    assert.equal(new Set(hashes).size, 3);
  });

  it('is drift when changed meanwhile, as is redeploying a component deleted meanwhile', async () => {
    const names = async (files: Files, before: State, retained: State = new Map()): Promise<string[]> =>
      drift(before, retained, await readProject(files, null), 5).map(({ fullName }) => fullName);
    const key = componentKey('Role', 'Rep');
    const rep = { ...ground.get(key)!, changedAtVersion: 6 };
    const newer = new Map(ground).set(key, rep);
    assert.deepEqual(await names(destructiveManifest({ Role: ['Rep', 'Lead'] }), newer), ['Rep']);
    assert.deepEqual(await names(destructiveManifest({}, { Role: ['Rep'] }), newer), ['Rep']);
    const without = new Map(ground);
    without.delete(key);
    const file = { 'roles/Rep.yaml': GROUND['roles/Rep.yaml']! };
    assert.deepEqual(await names(file, without), []);
    assert.deepEqual(await names(file, without, new Map([[key, rep]])), ['Rep']);
  });

  it('is restored byte for byte by the inverse plan', async () => {
    const forth = await plan(
      { AgentPolicy: ['Careful'], ExternalClient: ['Robot'] },
      { ...top('roles', 'Role', 'New', 'label: New\n'), ...top('roles', 'Role', 'Lead', 'label: Boss\n') },
    );
    assert.deepEqual(forth.blocked, []);
    const { files, deletes } = forth.inverse;
    assert.deepEqual(deletes, [{ name: 'Role', members: ['New'] }]);
    const manifest = destructiveManifest(Object.fromEntries(deletes.map(({ name, members }) => [name, members])));
    const back = makePlan(stored(forth, 2), await readProject({ ...files, ...manifest }, null), {
      ...anybody,
      allowDestructiveChanges: false,
      restores: true,
      retained: forth.retained.after,
    });
    assert.deepEqual(back.blocked, []);
    const texts = (state: State) => [...state.values()].map(({ path, yaml, system }) => [path, yaml, system]).sort();
    assert.deepEqual(texts(back.after), texts(ground));
    assert.equal(back.retained.after.has(componentKey('AgentPolicy', 'Careful')), false);
  });

  const OLD = objectFiles('Old__c', {
    Code__c: 'fieldType: text\nunique: true\nrequired: true',
    Number__c: 'fieldType: autoNumber\nformat: N-{0}',
    Helper__c: 'fieldType: reference\nreferenceTo: [User]',
  });
  const oldOnes = async (): Promise<State> => stored(makePlan(ground, await readProject(OLD, null), platform));
  const columnsOf = (model: Model): string[] =>
    [...model.values()].flatMap(({ name, columns, indexes, foreignKeys, sequences }) => [
      ...[...columns.values()].map(
        (column) => `${name}.${column.name} ${column.type}${column.notNull ? ' NOT NULL' : ''}`,
      ),
      ...indexes.keys(),
      ...foreignKeys.keys(),
      ...sequences.keys(),
    ]);

  it('deletes the parts of an object, keeping its table without indexes, keys and constraints', async () => {
    const before = await oldOnes();
    const result = await plan({ CustomObject: ['Old__c'] }, {}, anybody, before);
    assert.deepEqual(shown(result), []);
    assert.deepEqual(
      result.deletes.map(({ fullName }) => fullName),
      ['Old__c', 'Old__c.Code__c', 'Old__c.Helper__c', 'Old__c.Number__c'],
    );
    const only = new Set(['Old__c']);
    const kept = modelWithRetained(result.after, result.retained.after, only).get('Old__c');
    assert.ok(kept);
    assert.deepEqual([kept.indexes.size, kept.foreignKeys.size, kept.sequences.size], [0, 0, 1]);
    const { statements } = ddl(
      modelWithRetained(before, result.retained.before, only),
      modelWithRetained(result.after, result.retained.after, only),
      '"s"',
      '"r"',
    );
    const text = statements.map(({ sql }) => sql).join('\n');
    assert.match(text, /DROP INDEX[\s\S]*DROP CONSTRAINT/);
    assert.doesNotMatch(text, /DROP TABLE|DROP COLUMN/);
  });

  it('keeps the column of a field, whose name stays reserved as long', async () => {
    const before = await oldOnes();
    const result = await plan({ CustomField: ['Old__c.Code__c'] }, {}, anybody, before);
    assert.deepEqual(shown(result), []);
    const after = stored(result, 2);
    const deleted = componentKey('CustomField', 'Old__c.Code__c');
    const retained = new Map([[deleted, { ...before.get(deleted)!, updatedAt: '2026-11-02T00:00:00.000Z' }]]);
    for (const name of ['Code__c', 'code__c']) {
      const again = await plan({}, fieldFile('Old__c', name, 'fieldType: text'), { ...anybody, retained }, after);
      assert.deepEqual(
        [shown(again), again.dataChecks.map(({ code, question, details }) => [code, question, details])],
        [
          [],
          [
            [
              'NAME_RESERVED',
              { kind: 'keptValues', field: 'Code__c', list: false },
              { until: '2026-12-02T00:00:00.000Z' },
            ],
          ],
        ],
      );
      assert.equal(again.retained.after.size, 0, 'without a value it makes room');
    }
    const file = { 'objects/Old__c/fields/Code__c.yaml': OLD['objects/Old__c/fields/Code__c.yaml']! };
    const back = await plan({}, file, { ...anybody, retained, restores: true }, after);
    assert.deepEqual(shown(back), []);
    assert.deepEqual(
      back.dataChecks.map(({ question }) => question.kind),
      ['blank', 'duplicates'],
      'records have come and changed without it',
    );
    const only = new Set(['Old__c']);
    const model = modelWithRetained(back.after, back.retained.after, only);
    assert.deepEqual(columnsOf(model).sort(), columnsOf(physicalModel(before, only)).sort());
  });

  const questions = ({ dataChecks }: Plan): string[] =>
    dataChecks.map(({ code, question }) => `${code} ${question.kind}`);

  it('reserves the names of objects with records, and frees those of others', async () => {
    const before = await oldOnes();
    const result = await plan({ CustomObject: ['Old__c'] }, {}, anybody, before);
    const retained = new Map(
      [...result.retained.after].map(([key, one]) => [key, { ...one, updatedAt: '2026-11-02T00:00:00.000Z' }]),
    );
    const again = await plan({}, OLD, { ...anybody, retained }, stored(result, 2));
    assert.deepEqual([shown(again), questions(again)], [[], ['NAME_RESERVED keptRecords']]);
    assert.deepEqual([again.replaced.length, again.retained.before.size, again.retained.after.size], [4, 0, 0]);
    const prepared = prepare(aSnapshot([]).tenant, 3, result.after, again, { deploymentId: null });
    const statements = prepared?.ddl.statements.map(({ sql }) => sql) ?? [];
    const at = (text: RegExp): number => statements.findIndex((sql) => text.test(sql));
    assert.ok(at(/DROP TABLE IF EXISTS .*"Old__c"/) >= 0);
    assert.ok(at(/DROP TABLE/) < at(/CREATE TABLE .*"Old__c"/));
    assert.equal(JSON.parse(prepared?.commit.forgotten ?? '[]').length, 4 + again.changed.length);
  });

  it('restores only the deleted component, not a later one of the same name', async () => {
    const before = await oldOnes();
    const result = await plan({ CustomObject: ['Old__c'] }, {}, anybody, before);
    const retained = new Map(
      [...result.retained.after].map(([key, one]) => [key, { ...one, updatedAt: '2026-11-02T00:00:00.000Z' }]),
    );
    const options = { ...anybody, retained, restores: true };
    const back = await plan({}, OLD, options, stored(result, 2));
    assert.deepEqual([shown(back), back.dataChecks, back.replaced], [[], [], []]);
    const other = { ...OLD, ...fieldFile('Old__c', 'Code__c', 'fieldType: integer') };
    const another = await plan({}, other, options, stored(result, 2));
    assert.deepEqual([shown(another), questions(another)], [[], ['NAME_RESERVED keptRecords']]);
  });

  it('reveals nothing about records to actors who may not read them', async () => {
    const before = await oldOnes();
    const result = await plan({ CustomField: ['Old__c.Code__c'] }, {}, anybody, before);
    const retained = new Map(
      [...result.retained.after].map(([key, one]) => [key, { ...one, updatedAt: '2026-11-02T00:00:00.000Z' }]),
    );
    const again = await plan(
      {},
      fieldFile('Old__c', 'Code__c', 'fieldType: text'),
      { ...anybody, retained, ...acting(['apiEnabled', 'metadataManage']) },
      stored(result, 2),
    );
    assert.ok(shown(again).includes('COMPONENT_PERMISSION_DENIED CustomField Old__c.Code__c'));
    assert.deepEqual(questions(again), []);
  });

  it('is decided for every kind', () => {
    const tested = new Set(Object.values(GROUND).map((text) => /^type: (\w+)/.exec(text)?.[1]));
    assert.deepEqual(
      KINDS.map(({ type }) => type).filter((type) => !tested.has(type)),
      [],
    );
  });
});

/** Bea configures and may do little else. */
describe('metadata: deleting requires the permission to change', () => {
  const BEA = {
    username: 'bea@x.example',
    profileApiName: 'Builder',
    roleApiName: 'Lead',
  } satisfies Partial<Principal>;
  const BOSS = { username: 'boss@x.example', profileApiName: 'Boss' } satisfies Partial<Principal>;
  const FILES: Files = {
    ...GROUND,
    ...top('roles', 'Role', 'Alone', 'label: Alone\n'),
    ...child(
      'Deal__c',
      'sharingRules',
      'SharingRule',
      'OfAlone',
      'kind: owner\nfrom: {role: Alone}\nto: {group: Readers}\naccess: read\n',
    ),
    ...top('roles', 'Role', 'Below', 'label: Below\nparent: Lead\n'),
    ...top('groups', 'Group', 'Closed', 'label: Closed\nmembers: {users: [boss@x.example]}\n'),
    ...top('groups', 'Group', 'Mine', 'label: Mine\nmembers: {users: [bea@x.example]}\n'),
    ...top('permissionSets', 'PermissionSet', 'Strong', 'label: Strong\nsystem: [manageUsers]\n'),
    ...child('Deal__c', 'duplicateRules', 'DuplicateRule', 'All', 'scope: all\nmatch: [{field: Code__c}]\n'),
    ...top(
      'profiles',
      'Profile',
      'Builder',
      'label: Builder\nsystem: [apiEnabled, metadataManage, metadataRead]\nobjects:\n  Deal__c: {read: true, update: true}\nfields:\n  User.roleApiName: {read: true}\n',
    ),
    ...top(
      'profiles',
      'Profile',
      'Boss',
      'label: Boss\nsystem: [apiEnabled, manageAccess, manageUsers, manageClients, metadataManage]\n',
    ),
    ...top(
      'identityProviders',
      'IdentityProvider',
      'Corp',
      'label: Corp\nissuer: https://id.corp.example\nclientId: erp\ndomains: [corp.example]\n',
    ),
    ...top(
      'externalClients',
      'ExternalClient',
      'App',
      'name: App\ngrantTypes: [client_credentials]\nconfidential: true\nintegrationUser: boss@x.example\nscopes: ["data:read"]\n',
    ),
  };
  let ground: State;
  before(async () => {
    const made = await planBy(new Map(), FILES, null);
    assert.deepEqual(made.blocked, []);
    ground = stored(made);
  });

  const denials = async (types: Record<string, string[]>, by: Partial<Principal>): Promise<string[]> => {
    const project = await readProject(destructiveManifest(types), null);
    const result = makePlan(ground, project, {
      platform: false,
      allowDestructiveChanges: true,
      ...actingIn(ground, by, BOSS),
    });
    return result.blocked
      .filter(({ code }) => code === 'COMPONENT_PERMISSION_DENIED')
      .map(({ fullName, message }) => `${fullName}: ${message}`);
  };

  const refused: [types: Record<string, string[]>, why: RegExp][] = [
    [{ PermissionSet: ['Strong'] }, /Only who holds manageUsers can take it from others/],
    [{ Profile: ['Seller'] }, /Only who holds .* can take it from others/],
    [{ Role: ['Alone'] }, /Only who stands above the role Alone can delete it/],
    [{ Group: ['Closed'] }, /Only a member of the group can delete it/],
    [{ ValidationRule: ['Deal__c.Paid'] }, /it takes read on Deal__c.Amount__c/],
    [{ DuplicateRule: ['Deal__c.All'] }, /it tells of records that you do not see all of/],
    [{ SharingRule: ['Deal__c.OfAlone'] }, /it opens records that you do not reach/],
    [{ StateModel: ['Deal__c.Life'] }, /it takes Deal__c.win/],
    [{ CustomAction: ['Deal__c.Nudge'] }, /it takes Deal__c.Remind/],
    [{ AgentPolicy: ['Careful'] }, /Only who holds manageAccess can decide what agents/],
    [{ ExternalClient: ['App'] }, /Changing clients needs manageClients/],
    [{ IdentityProvider: ['Corp'] }, /Only who holds manageAccess can decide where users sign in/],
    [{ CustomObject: ['Deal__c'] }, /Only who may delete all records/],
    [{ CustomField: ['Deal__c.Free__c'] }, /Only who holds edit on Deal__c.Free__c can delete it/],
    [{ Profile: ['Builder'] }, /Only users who hold read on User.profileApiName learn/],
  ];
  for (const [types, why] of refused) {
    const [[type, [name]] = ['', ['']]] = Object.entries(types) as [string, string[]][];
    it(`${type} ${name}`, async () => {
      assert.ok(
        (await denials(types, BEA)).some((line) => why.test(line)),
        (await denials(types, BEA)).join('\n'),
      );
      assert.deepEqual(await denials(types, BOSS), []);
    });
  }

  /** Restoring these, as a rollback of their deletion does; with what belongs to an object that is among them. */
  const restoring = async (types: Record<string, string[]>, by: Partial<Principal>): Promise<Plan> => {
    const { deletes } = makePlan(ground, await readProject(destructiveManifest(types), null), platform);
    const keys = new Set(deletes.map(({ type, fullName }) => componentKey(type, fullName)));
    const [retained, left] = [true, false].map((is) => new Map([...ground].filter(([key]) => keys.has(key) === is)));
    const files = Object.fromEntries([...retained!.values()].map(({ path, yaml }) => [path, yaml]));
    return makePlan(left!, await readProject(files, null), {
      platform: false,
      allowDestructiveChanges: false,
      restores: true,
      retained: retained!,
      ...actingIn(left!, by, BOSS),
    });
  };

  const kept: [types: Record<string, string[]>, why: RegExp][] = [
    [{ PermissionSet: ['Strong'] }, /Only who holds manageUsers can give it to others/],
    [{ Role: ['Alone'] }, /Only who stands above the role Alone can restore it/],
    [{ Group: ['Closed'] }, /Only a member of the group can restore it/],
    [{ ValidationRule: ['Deal__c.Paid'] }, /To restore it .* it takes read on Deal__c.Amount__c/],
    [{ DuplicateRule: ['Deal__c.All'] }, /it tells of records that you do not see all of/],
    [{ SharingRule: ['Deal__c.OfAlone'] }, /it opens records that you do not reach/],
    [{ StateModel: ['Deal__c.Life'] }, /it takes Deal__c.win/],
    [{ CustomAction: ['Deal__c.Nudge'] }, /it takes Deal__c.Remind/],
    [{ AgentPolicy: ['Careful'] }, /Only who holds manageAccess can decide what agents/],
    [{ ExternalClient: ['App'] }, /Changing clients needs manageClients/],
    [{ IdentityProvider: ['Corp'] }, /Only who holds manageAccess can decide where users sign in/],
    [{ CustomObject: ['Deal__c'] }, /Only who may delete all records of the object can restore it/],
    [{ CustomObject: ['Line__c'] }, /Only who may delete all records of the object can restore it/],
    [{ CustomField: ['Deal__c.Free__c'] }, /Only who holds edit on Deal__c.Free__c can restore it/],
    [{ CustomField: ['Deal__c.Total__c'] }, /Only who holds read on Deal__c.Total__c can restore it/],
    [
      { CustomObject: ['Deal__c'], Profile: ['Seller'] },
      /Only who holds read on Deal__c.Amount__c can give it to others/,
    ],
    [{ CustomAction: ['Deal__c.Remind'], Profile: ['Seller'] }, /Only who holds Deal__c.Remind can give it to others/],
  ];
  for (const [types, why] of kept)
    it(`nor brings back ${JSON.stringify(types)}`, async () => {
      const denied = ({ blocked }: Plan): string[] =>
        blocked.filter(({ code }) => code === 'COMPONENT_PERMISSION_DENIED').map(({ message }) => message);
      assert.match(denied(await restoring(types, BEA)).join('\n'), why);
      assert.deepEqual(denied(await restoring(types, BOSS)), []);
    });

  it('and deletes what she may', async () => {
    const types = { Role: ['Below'], Group: ['Mine'], PermissionSet: [], RecordType: ['Deal__c.Large'] };
    assert.deepEqual(await denials(types, BEA), []);
  });
});

describe('metadata: a project with an invalid file', () => {
  it('reports no problems for references to the component of this file', async () => {
    const planned = async (files: Files): Promise<string[]> =>
      makePlan(new Map(), await readProject(files, null), platform).blocked.map(
        ({ path, message }) => `${path}: ${message}`,
      );
    assert.deepEqual(await planned(GROUND), []);
    const found = await Promise.all(
      Object.entries(GROUND).map(([path, text]) => planned({ ...GROUND, [path]: `${text}\nnonsense: 1\n` })),
    );
    assert.deepEqual(
      found,
      Object.keys(GROUND).map((path) => [`${path}: There is no property "nonsense" here.`]),
    );
  });
});
