/** Templates of notifications in deployments. Source: docs/reference/metadata.md#types. */
import assert from 'node:assert/strict';
import { fieldsOfTemplate, filledTemplate, readTemplate } from '../../../lib/notification-template.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import type { State } from '../../../services/metadata/kinds/component.ts';
import { makePlan, type Plan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { destructiveManifest, fieldFile, objectFiles } from '../../support/metadata-tenant.ts';
import { acting } from '../../support/plans.ts';
import { aSnapshot } from '../../support/snapshots.ts';

const template = (texts: string): Record<string, string> => ({
  'objects/Claim__c/notificationTemplates/Filed.yaml': `type: NotificationTemplate\napiName: Filed\nobject: Claim__c\nlabel: Filed\n${texts}\n`,
});
const action = (effect: string): Record<string, string> => ({
  'objects/Claim__c/actions/File.yaml': `type: CustomAction\napiName: File\nobject: Claim__c\nlabel: File\neffects:\n  - {verb: sendNotification, type: Filed, to: owner, ${effect}}\n`,
});
const GROUND = {
  ...objectFiles('User'),
  ...objectFiles('Claim__c', {
    Amount__c: 'fieldType: currency',
    Due__c: 'fieldType: date',
    Free__c: 'fieldType: text',
    Place__c: 'fieldType: geolocation',
  }),
  ...fieldFile('Claim__c', 'Parent__c', 'fieldType: reference\nreferenceTo: [Claim__c]\nrelationshipName: Parts__r'),
  ...template(
    'texts:\n  en: {title: "{actor} filed {record.name}", body: "Over {record.Amount__c}."}\n  de: {title: Neu}',
  ),
  ...action('template: Filed'),
};

describe('metadata: templates of notifications', () => {
  let ground: State;
  const plan = async (files: Record<string, string>, before = ground): Promise<Plan> =>
    makePlan(before, await readProject(files, null), { platform: false, allowDestructiveChanges: true, ...acting() });
  const problems = async (files: Record<string, string>): Promise<unknown[][]> =>
    (await plan(files)).blocked.map(({ code, line, column, message }) => [code, line, column, message]);
  before(async () => {
    const made = await plan(GROUND, new Map());
    assert.deepEqual(
      made.blocked.filter(({ type }) => type !== 'CustomObject'),
      [],
    );
    ground = made.after;
  });

  it('are in the snapshot, apart from the objects, and effects name them', () => {
    const snapshot = compileSnapshot(aSnapshot([]).tenant, 1, ground);
    assert.deepEqual(snapshot.notificationTemplates, {
      'Claim__c.Filed': {
        texts: {
          de: { title: 'Neu', body: '' },
          en: { title: '{actor} filed {record.name}', body: 'Over {record.Amount__c}.' },
        },
      },
    });
    assert.deepEqual(snapshot.objects['Claim__c']?.actions[0]?.effects, [
      { verb: 'sendNotification', type: 'Filed', to: 'owner', template: 'Filed' },
    ]);
    assert.equal(JSON.stringify(snapshot.objects).includes('Neu'), false);
  });

  it('are refused with the place of each mistake', async () => {
    assert.deepEqual(await problems(template('texts:\n  en:\n    title: "New: {record.Nothing__c}"')), [
      ['DEPENDENCY_MISSING', 7, 5, 'CustomField Claim__c.Nothing__c is neither in the project nor in the tenant.'],
    ]);
    const brace = 'Braces hold `{actor}` or `{record.<Field>}`; a brace that is to be shown is written twice.';
    for (const text of ['New: {name}', 'New: {', 'New: }', 'New: {record.}', 'New: {record.Due__c']) {
      const [[code, line, , message] = []] = await problems(template(`texts:\n  en:\n    title: "${text}"`));
      assert.deepEqual([code, line, message], ['YAML_SCHEMA_INVALID', 7, brace], text);
    }
    for (const name of ['Parent__c', 'Place__c', 'ownerId']) {
      const [[code, line, , message] = []] = await problems(template(`texts:\n  de:\n    title: "{record.${name}}"`));
      assert.deepEqual([code, line, message], ['REFERENCE_INVALID', 7, `${name} cannot be shown in a text.`]);
    }
    const codes = async (texts: string) => (await problems(template(texts))).map(([code]) => code);
    assert.deepEqual(await codes('texts: {}'), ['YAML_SCHEMA_INVALID']);
    assert.deepEqual(await codes('texts: {german: {title: x}}'), ['YAML_SCHEMA_INVALID']);
    assert.deepEqual(await codes(`texts: {en: {title: ${'x'.repeat(201)}}}`), ['YAML_SCHEMA_INVALID']);
    assert.deepEqual(await codes(`texts: {en: {title: x, body: ${'x'.repeat(2_001)}}}`), ['YAML_SCHEMA_INVALID']);
  });

  it('must be there for the effects that name them', async () => {
    assert.deepEqual(
      (await problems(action('template: Closed'))).map(([code]) => code),
      ['DEPENDENCY_MISSING'],
    );
    const deleted = await plan(destructiveManifest({ NotificationTemplate: ['Claim__c.Filed'] }));
    assert.deepEqual(
      deleted.blocked.map(({ code, message }) => [code, message]),
      [['DEPENDENT_EXISTS', 'It is still used by CustomAction Claim__c.File.']],
    );
    const without = await plan({
      ...action('template: null'),
      ...destructiveManifest({ NotificationTemplate: ['Claim__c.Filed'] }),
    });
    assert.deepEqual(without.blocked, []);
  });

  it('keep the fields that they show', async () => {
    const users = async (name: string) =>
      (await plan(destructiveManifest({ CustomField: [`Claim__c.${name}`] }))).blocked.map(({ message }) => message);
    assert.deepEqual(await users('Amount__c'), ['It is still used by NotificationTemplate Claim__c.Filed.']);
    assert.deepEqual(await users('Free__c'), []);
  });
});

describe('a template of a notification', () => {
  const filled = (text: string): string => filledTemplate(text, (field) => `<${field}>`);

  it('shows values in place of its placeholders, and braces that stand twice', () => {
    assert.equal(filled('{actor}: {record.name}{record.A__c}.'), '<null>: <name><A__c>.');
    assert.equal(filled('{{actor}} {{{actor}}} }}{{'), '{actor} {<null>} }{');
    assert.deepEqual(fieldsOfTemplate('{record.b} {actor} {record.a} {record.b}'), ['b', 'a']);
    assert.deepEqual([readTemplate('a {{ b').mistake, readTemplate('a { b').mistake], [null, 2]);
  });

  it('is read in linear time, and values are no templates', () => {
    const started = performance.now();
    for (const text of ['{'.repeat(99_999), '{record.'.repeat(99_999), `{record.${'a'.repeat(99_999)}`])
      readTemplate(text);
    assert.ok(performance.now() - started < 1_000);
    assert.equal(
      filledTemplate('{record.a}', () => '{actor}'),
      '{actor}',
    );
  });
});
