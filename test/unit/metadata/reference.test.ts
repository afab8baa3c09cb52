/** The examples of the reference hold: components can be deployed, expressions fit their object, JSON is JSON. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkExpression } from '../../../lib/expression/check.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import type { State } from '../../../services/metadata/kinds/component.ts';
import { makePlan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { aSnapshot } from '../../support/snapshots.ts';
import { read, root } from '../../support/sources.ts';

const OPTIONS = { platform: true, allowDestructiveChanges: false } as const;
const pages = readdirSync(join(root, 'docs/reference')).map((name) => `docs/reference/${name}`);
const blocks = (path: string, language: string): string[] =>
  [...read(path).matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map((match) => match[1]!);

/** Path of a component, from the first lines of its text. */
function pathOf(text: string): string {
  const key = (name: string): string => text.match(new RegExp(`^${name}: (.+)$`, 'm'))?.[1] ?? '';
  const folder: Record<string, string> = {
    CustomField: 'fields',
    DuplicateRule: 'duplicateRules',
    Layout: 'layouts',
    ListView: 'listViews',
    NotificationTemplate: 'notificationTemplates',
    SharingRule: 'sharingRules',
    StateModel: 'stateModels',
    ValidationRule: 'validationRules',
  };
  if (key('type') === 'AgentPolicy') return `agentPolicies/${key('apiName')}.yaml`;
  if (key('type') === 'IdentityProvider') return `identityProviders/${key('apiName')}.yaml`;
  if (key('type') === 'Translation') return `translations/${key('apiName')}.yaml`;
  return `objects/${key('object')}/${folder[key('type')]}/${key('apiName')}.yaml`;
}

const object = (apiName: string): string =>
  `type: CustomObject\napiName: ${apiName}\nlabel: ${apiName}\nlabelPlural: ${apiName}\nnameField:\n  label: Name\n  fieldType: text\nsharingDefault: private\napi:\n  published: true\nfeatures:\n  duplicates: true\n`;
const field = (owner: string, apiName: string, rest: string): string =>
  `type: CustomField\napiName: ${apiName}\nobject: ${owner}\nlabel: ${apiName}\n${rest}\n`;

/** Configuration that the examples build on. */
const GROUND: Readonly<Record<string, string>> = Object.fromEntries([
  ...['Account', 'Invoice__c', 'InvoiceLine__c', 'Order__c', 'OrderLine__c'].map((name) => [
    `objects/${name}/object.yaml`,
    object(name),
  ]),
  ...(
    [
      ['Account', 'TaxId__c', 'fieldType: text'],
      ['Invoice__c', 'Amount__c', 'fieldType: decimal'],
      ['Invoice__c', 'DueDate__c', 'fieldType: date'],
      ['Invoice__c', 'IssueDate__c', 'fieldType: date'],
      ['Invoice__c', 'LedgerNumber__c', 'fieldType: text'],
      ['Invoice__c', 'SentAt__c', 'fieldType: dateTime'],
      [
        'Invoice__c',
        'Status__c',
        'fieldType: picklist\npicklist:\n  restricted: true\n  values:\n    - value: draft\n      label: Draft\n    - value: sent\n      label: Sent',
      ],
      ['InvoiceLine__c', 'Amount__c', 'fieldType: decimal'],
      [
        'InvoiceLine__c',
        'InvoiceId__c',
        'fieldType: masterDetail\nreferenceTo:\n  - Invoice__c\nrelationshipName: Lines__r',
      ],
      ['Invoice__c', 'AccountId__c', 'fieldType: reference\nreferenceTo:\n  - Account'],
      ['InvoiceLine__c', 'NetAmount__c', 'fieldType: decimal'],
      ['Order__c', 'Net__c', 'fieldType: decimal'],
      ['Order__c', 'Rate__c', 'fieldType: percent'],
      ['OrderLine__c', 'Amount__c', 'fieldType: decimal'],
      ['OrderLine__c', 'OrderId__c', 'fieldType: masterDetail\nreferenceTo:\n  - Order__c'],
    ] as const
  ).map(([owner, name, rest]) => [`objects/${owner}/fields/${name}.yaml`, field(owner, name, rest)]),
  [
    'objects/Invoice__c/recordTypes/Export.yaml',
    'type: RecordType\napiName: Export\nobject: Invoice__c\nlabel: Export\nactive: true\n',
  ],
  ['profiles/Accountant.yaml', 'type: Profile\napiName: Accountant\nlabel: Accountant\n'],
  ['profiles/Standard.yaml', 'type: Profile\napiName: Standard\nlabel: Standard\n'],
  ['profiles/SalesRep.yaml', 'type: Profile\napiName: SalesRep\nlabel: Sales rep\n'],
  ['roles/SalesManager.yaml', 'type: Role\napiName: SalesManager\nlabel: Sales manager\n'],
  ['groups/Finance.yaml', 'type: Group\napiName: Finance\nlabel: Finance\n'],
]);

describe('the examples of the reference', () => {
  let ground: State;
  before(async () => {
    const plan = makePlan(new Map(), await readProject(GROUND, null), OPTIONS);
    assert.deepEqual(plan.blocked, []);
    ground = plan.after;
  });

  for (const page of pages) {
    const components = blocks(page, 'yaml').filter((text) => /^type: /.test(text));
    if (components.length)
      it(`${page}: ${components.length} components can be deployed`, async () => {
        for (const text of components) {
          const plan = makePlan(ground, await readProject({ [pathOf(text)]: text }, null), OPTIONS);
          assert.deepEqual([plan.blocked, plan.warnings], [[], []], text);
        }
      });

    const json = blocks(page, 'json');
    if (json.length)
      it(`${page}: ${json.length} bodies are JSON`, () => {
        for (const text of json) assert.doesNotThrow(() => JSON.parse(text), text);
      });
  }

  it('docs/reference/expressions.md: expressions compile for an invoice', () => {
    const { fields } = compileSnapshot(aSnapshot([]).tenant, 1, ground).objects['Invoice__c']!;
    const schema = {
      object: 'Invoice__c',
      fieldType: (name: string) => fields[name] && valueTypeName(fields[name]),
    };
    const lines = blocks('docs/reference/expressions.md', '')[0]!.trim().split('\n');
    assert.equal(lines.length, 3);
    for (const line of lines) checkExpression(line, schema, ['boolean']);
  });
});
