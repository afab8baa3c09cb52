import assert from 'node:assert/strict';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import type { State } from '../../../services/metadata/kinds/component.ts';
import { makePlan, type Plan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { destructiveManifest, objectFiles } from '../../support/metadata-tenant.ts';
import { acting } from '../../support/plans.ts';
import { aSnapshot } from '../../support/snapshots.ts';

const file = (path: string, type: string, rest: string): Record<string, string> => ({
  [`${path}.yaml`]: `type: ${type}\napiName: ${path.split('/').at(-1)}\n${rest}`,
});
const GROUND = {
  ...objectFiles('User'),
  ...objectFiles('Claim__c', {
    Shown__c: 'fieldType: text',
    Listed__c: 'fieldType: text',
    Filtered__c: 'fieldType: text',
    Sorted__c: 'fieldType: text',
    Named__c: 'fieldType: text',
    Free__c: 'fieldType: text',
  }),
  ...objectFiles('Note__c', {
    ClaimId__c: 'fieldType: reference\nreferenceTo: [Claim__c]',
    Column__c: 'fieldType: text',
    Related__c: 'fieldType: text',
  }),
  ...file('objects/Claim__c/recordTypes/Large', 'RecordType', 'object: Claim__c\nlabel: Large\n'),
  ...file('profiles/Clerk', 'Profile', 'label: Clerk\n'),
  ...file('roles/Lead', 'Role', 'label: Lead\n'),
  ...file('groups/Readers', 'Group', 'label: Readers\n'),
  ...file(
    'objects/Claim__c/layouts/Main',
    'Layout',
    'object: Claim__c\nsections: [{label: Facts, columns: [[Shown__c]]}]\nrelatedLists: [{relationshipName: Notes__r, columns: [Column__c]}]\nassignments: [{profile: Clerk, recordType: Large}]\n',
  ),
  ...file(
    'objects/Claim__c/listViews/Mine',
    'ListView',
    `object: Claim__c
label: Mine
columns: [Listed__c]
filters:
  logic: and
  conditions:
    - {id: a, field: Filtered__c, operator: eq, value: x}
    - {id: b, field: id, operator: in_related, value: {objectApiName: Note__c, field: ClaimId__c, conditions: [{id: c, field: Related__c, operator: eq, value: x}]}}
sort: [{id: Sorted__c}]
sharedWith: {roles: [Lead], groups: [Readers]}
`,
  ),
  ...file('translations/de', 'Translation', 'labels: {Claim__c.Named__c: Benannt, Claim__c.Mine: Meine}\n'),
};

describe('metadata: layouts, list views and translations', () => {
  let ground: State;
  const plan = async (files: Record<string, string>, before = ground): Promise<Plan> =>
    makePlan(before, await readProject(files, null), { platform: false, allowDestructiveChanges: true, ...acting() });
  before(async () => {
    const made = await plan(GROUND, new Map());
    assert.deepEqual(
      made.blocked.filter(({ type }) => type !== 'CustomObject'),
      [],
    );
    ground = made.after;
  });

  for (const [type, name, ...users] of [
    ['CustomField', 'Claim__c.Shown__c', 'Layout Claim__c.Main'],
    ['CustomField', 'Claim__c.Listed__c', 'ListView Claim__c.Mine'],
    ['CustomField', 'Claim__c.Filtered__c', 'ListView Claim__c.Mine'],
    ['CustomField', 'Claim__c.Sorted__c', 'ListView Claim__c.Mine'],
    ['CustomField', 'Note__c.Related__c', 'ListView Claim__c.Mine'],
    ['CustomField', 'Claim__c.Named__c', 'Translation de'],
    ['CustomField', 'Claim__c.Free__c'],
    ['RecordType', 'Claim__c.Large', 'Layout Claim__c.Main'],
    ['Profile', 'Clerk', 'Layout Claim__c.Main'],
    ['Role', 'Lead', 'ListView Claim__c.Mine'],
    ['Group', 'Readers', 'ListView Claim__c.Mine'],
    ['ListView', 'Claim__c.Mine', 'Translation de'],
    ['CustomObject', 'Note__c', 'ListView Claim__c.Mine'],
  ] as const)
    it(`keep ${type} ${name} from being deleted${users.length === 0 ? ', unless none names it' : ''}`, async () => {
      const { blocked } = await plan(destructiveManifest({ [type]: [name] }));
      const found = blocked.filter(({ code }) => code === 'DEPENDENT_EXISTS').map(({ message }) => message);
      assert.deepEqual(
        [...new Set(found)],
        users.map((user) => `It is still used by ${user}.`),
      );
    });

  it('block the deletion of a field that a related list shows or is based on', async () => {
    for (const name of ['Note__c.Column__c', 'Note__c.ClaimId__c']) {
      const { blocked } = await plan(destructiveManifest({ CustomField: [name] }));
      const layouts = blocked
        .filter(({ type }) => type === 'Layout')
        .map(({ code, fullName }) => `${code} ${fullName}`);
      assert.deepEqual(layouts, ['REFERENCE_INVALID Claim__c.Main'], name);
    }
  });

  it('are separate from the objects of a snapshot, so record access does not load them', () => {
    const snapshot = compileSnapshot(aSnapshot([]).tenant, 1, ground);
    const objects = JSON.stringify(snapshot.objects);
    for (const text of ['Facts', 'Mine', 'Benannt']) assert.equal(objects.includes(text), false, text);
    assert.deepEqual(Object.keys(snapshot.screens), ['Claim__c']);
    assert.deepEqual(snapshot.translations, { de: { 'Claim__c.Mine': 'Meine', 'Claim__c.Named__c': 'Benannt' } });
  });
});
