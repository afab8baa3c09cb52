/** Random configurations for property tests of the planner. */
import fc from 'fast-check';
import { fieldFile, objectFiles } from './metadata-tenant.ts';

export const OBJECTS = ['Alpha__c', 'Beta__c', 'Gamma__c'] as const;

type Files = Record<string, string>;

const flag = (name: string): fc.Arbitrary<string> => fc.boolean().map((on) => (on ? `${name}: true\n` : ''));
const join = (...parts: fc.Arbitrary<string>[]): fc.Arbitrary<string> => fc.tuple(...parts).map((p) => p.join(''));

/** Per field name one type, so that two configurations never disagree about it. */
const FIELDS: Record<string, fc.Arbitrary<string>> = {
  Text__c: join(
    fc.constant('fieldType: text\n'),
    flag('required'),
    flag('unique'),
    flag('externalId'),
    flag('caseSensitive'),
  ),
  Sized__c: fc.integer({ min: 1, max: 4_000 }).map((length) => `fieldType: text\nlength: ${length}\n`),
  Money__c: fc
    .tuple(fc.integer({ min: 10, max: 30 }), fc.integer({ min: 0, max: 8 }))
    .map(([precision, scale]) => `fieldType: decimal\nprecision: ${precision}\nscale: ${scale}\n`),
  Note__c: join(fc.constant('fieldType: longText\n'), flag('required')),
  Choice__c: fc
    .uniqueArray(fc.constantFrom('a', 'b', 'c', 'd'), { minLength: 1 })
    .map((values) => `fieldType: picklist\npicklist:\n  values:\n${values.map((v) => `    - value: ${v}\n`).join('')}`),
  Link__c: fc
    .constantFrom('setNull', 'restrict', 'cascade')
    .map(
      (onDelete) => `fieldType: reference\nreferenceTo: [User]\nonDelete: ${onDelete}\nrelationshipName: RELATION\n`,
    ),
  Count__c: join(fc.constant('fieldType: integer\n'), flag('unique')),
  Serial__c: fc.constantFrom('S-{000}', '{0}').map((format) => `fieldType: autoNumber\nformat: "${format}"\n`),
  When__c: join(fc.constant('fieldType: dateTime\n'), flag('required')),
};

const objectOf = (name: string): fc.Arbitrary<Files> =>
  fc
    .record({
      fields: fc.record(FIELDS, { requiredKeys: [] }),
      label: fc.string({ minLength: 1, maxLength: 20 }).filter((text) => /\S/.test(text) && text.isWellFormed()),
      search: fc.boolean(),
      searched: fc.subarray(['name', 'Text__c', 'Note__c']),
    })
    .map(({ fields, label, search, searched }) => {
      const present = searched.filter((field) => field === 'name' || field in fields);
      const files: Files = {
        [`objects/${name}/object.yaml`]: `type: CustomObject\napiName: ${name}\nlabel: ${JSON.stringify(label)}\nlabelPlural: ${name}s\nnameField:\n  label: Name\n  fieldType: text\nfeatures:\n  search: ${search}\ndefaultSearchFields: [${present.join(', ')}]\n`,
      };
      for (const [field, yaml] of Object.entries(fields) as [string, string][])
        Object.assign(files, fieldFile(name, field, yaml.replace('RELATION', `Linked${name.replace('__c', '')}`)));
      return files;
    });

/** Files of one to three objects with any of the fields above. */
export const configuration: fc.Arbitrary<Files> = fc
  .tuple(...OBJECTS.map((name) => fc.option(objectOf(name), { nil: {} as Files })))
  .map((objects) => Object.assign({}, ...objects) as Files);

const some = (yaml: Files): fc.Arbitrary<Files> => fc.option(fc.constant(yaml), { nil: {} });
const rollupOver = (parent: string, child: string, way: string): Files =>
  fieldFile(
    parent,
    'Children__c',
    `fieldType: rollup\nrollup:\n  childObject: ${child}\n  referenceField: ${way}\n  function: count`,
  );

/** Requirements of the files of `surroundings`. */
export const GROUND: Files = {
  ...Object.assign({}, ...OBJECTS.map((name) => objectFiles(name))),
  'roles/Chief.yaml': 'type: Role\napiName: Chief\nlabel: Chief\n',
  'groups/All.yaml': 'type: Group\napiName: All\nlabel: All\nmembers:\n  roles: [Chief]\n',
};

/** Files of what stands around those objects and ties them together. */
export const surroundings: fc.Arbitrary<Files> = fc
  .tuple(
    some({ 'roles/Clerk.yaml': 'type: Role\napiName: Clerk\nlabel: Clerk\nparent: Chief\n' }),
    some({ 'groups/Few.yaml': 'type: Group\napiName: Few\nlabel: Few\nmembers:\n  groups: [All]\n' }),
    some({
      'objects/Alpha__c/sharingRules/ToAll.yaml':
        'type: SharingRule\napiName: ToAll\nobject: Alpha__c\nkind: criteria\ncriteria: record.name == "a"\nto: {group: All}\naccess: read\n',
    }),
    fc.option(
      fc.integer({ min: 1, max: 9 }).map(
        (n): Files => ({
          'objects/Beta__c/validationRules/Named.yaml': `type: ValidationRule\napiName: Named\nobject: Beta__c\ncondition: record.name == "${n}"\nmessage: No.\n`,
        }),
      ),
      { nil: {} },
    ),
    some({
      'objects/Beta__c/recordTypes/Usual.yaml':
        'type: RecordType\napiName: Usual\nobject: Beta__c\nlabel: Usual\ndefault: true\n',
    }),
    some(fieldFile('Beta__c', 'Alpha__c', 'fieldType: reference\nreferenceTo: [Alpha__c]\nrelationshipName: Betas')),
    some(rollupOver('Alpha__c', 'Beta__c', 'Alpha__c')),
    some(fieldFile('Gamma__c', 'Beta__c', 'fieldType: masterDetail\nreferenceTo: [Beta__c]\nrelationshipName: Gammas')),
    some(
      fieldFile('Gamma__c', 'Shout__c', 'fieldType: formula\nformula:\n  expression: record.name\n  resultType: text'),
    ),
    some({
      'permissionSets/Readers.yaml':
        'type: PermissionSet\napiName: Readers\nlabel: Readers\nobjects:\n  Alpha__c: {read: true}\n',
    }),
  )
  .map((files) => Object.assign({}, ...files) as Files);
