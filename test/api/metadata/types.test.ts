/** `GET /metadata/types` publishes the rules that files are validated by: for editors and for authors. */
import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { COMPONENT_TYPES } from '../../../lib/schema/snapshot.ts';
import { templateFiles } from '../../../templates/read.ts';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { deployOverHttp, wholePackage } from '../../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

interface Published {
  readonly type: string;
  readonly pathPattern: string;
  readonly schema: Record<string, unknown>;
  readonly dependsOn: readonly string[];
}

/** One file of each kind that a small business has, as the platform writes them. */
const CANONICAL: Record<string, string> = {
  'objects/Bill__c/object.yaml': `type: CustomObject
apiName: Bill__c
label: Bill
labelPlural: Bills
description: Customer bills
nameField:
  label: Number
  fieldType: autoNumber
  format: BILL-{00000}
sharingDefault: private
api:
  published: true
features:
  history: true
  search: true
  events: true
defaultSearchFields:
  - name
`,
  'objects/Bill__c/fields/Amount__c.yaml': `type: CustomField
apiName: Amount__c
object: Bill__c
label: Amount
fieldType: currency
required: true
precision: 18
scale: 2
semantics: Net amount of this bill; not a price list value.
dataClassification: internal
`,
  'objects/Bill__c/fields/Status__c.yaml': `type: CustomField
apiName: Status__c
object: Bill__c
label: Status
fieldType: picklist
picklist:
  restricted: true
  values:
    - value: draft
      label: Draft
      default: true
    - value: sent
      label: Sent
    - value: paid
      label: Paid
`,
  'objects/Bill__c/stateModels/Lifecycle.yaml': `type: StateModel
apiName: Lifecycle
object: Bill__c
field: Status__c
initial: draft
allowDirectEdit: false
transitions:
  - key: send
    label: Send
    from:
      - draft
    to: sent
    guard: record.Amount__c > 0
    permission: Bill__c.send
    risk: medium
    requiresComment: false
`,
  'objects/Bill__c/validationRules/AmountPositive.yaml': `type: ValidationRule
apiName: AmountPositive
object: Bill__c
active: true
condition: record.Amount__c <= 0
errorField: Amount__c
message: Amount must be positive.
`,
  'objects/Account/duplicateRules/SameWebsite.yaml': `type: DuplicateRule
apiName: SameWebsite
object: Account
active: true
action: confirm
scope: visible
revealHiddenCount: false
threshold: 1
match:
  - field: TaxId__c
    method: normalized
    weight: 1
`,
  'permissionSets/BillsApi.yaml': `type: PermissionSet
apiName: BillsApi
label: Bills API
system:
  - apiEnabled
objects:
  Bill__c:
    create: true
    read: true
    update: true
    delete: false
    viewAll: false
    modifyAll: false
fields:
  Bill__c.Amount__c:
    read: true
    edit: true
actions:
  - Bill__c.send
`,
  'groups/Collectors.yaml': `type: Group
apiName: Collectors
label: Collectors
members:
  roles:
    - SalesManager
`,
  'objects/Bill__c/sharingRules/FinanceRead.yaml': `type: SharingRule
apiName: FinanceRead
object: Bill__c
kind: criteria
criteria: record.Status__c == "sent"
to:
  group: Collectors
access: read
`,
  'agentPolicies/Careful.yaml': `type: AgentPolicy
apiName: Careful
appliesTo:
  clients:
    - "*"
rules:
  - operationIds:
      - data.records.delete
    decision: approve
    approvers:
      - role: SalesManager
    requiredApprovals: 1
    expiresInSeconds: 86400
  - risk: high
    decision: approve
    approvers:
      - manager: true
  - risk: low
    decision: allow
budgets:
  maxCost: 500
  maxMutations: 20
  maxRecords: 200
allowSelfApproval: false
`,
};

describe('API: types of components', () => {
  let platform: TestPlatform;
  let ada: Api;
  let types: readonly Published[];
  const validators = new Map<string, ValidateFunction>();
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    types = (await ada.get('/metadata/types')).body.records;
    for (const { type, schema } of types)
      validators.set(type, new Ajv2020({ strict: true, allErrors: true }).compile(schema));
  });
  after(() => platform?.stop());

  /** The type that a path belongs to. */
  const typeAt = (path: string): string | undefined =>
    types.find(({ pathPattern }) =>
      new RegExp(`^${pathPattern.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
    )?.type;

  /** The reasons why a file does not match its published schema. */
  const mistakes = (path: string, text: string): string[] => {
    const validate = validators.get(typeAt(path) ?? '');
    assert.ok(validate, path);
    validate(parse(text, { version: '1.2' }));
    return (validate.errors ?? []).map(({ instancePath, message }) => `${path}${instancePath} ${message}`);
  };

  it('are complete, each with a schema that is self-contained and documented', () => {
    assert.deepEqual(types.map(({ type }) => type).sort(), [...COMPONENT_TYPES].sort());
    for (const { type, schema, dependsOn } of types) {
      assert.deepEqual([schema['$schema'], schema['title']], ['https://json-schema.org/draft/2020-12/schema', type]);
      assert.doesNotMatch(JSON.stringify(schema), /x-erp-|~kind/);
      assert.deepEqual(
        dependsOn.filter((other) => !validators.has(other)),
        [],
      );
      const told = (part: unknown, at: string): string[] => {
        if (typeof part !== 'object' || part === null) return [];
        const { properties = {}, items, patternProperties = {} } = part as Record<string, Record<string, object>>;
        return [
          ...Object.entries(properties).flatMap(([name, property]) => [
            ...('description' in property || 'const' in property ? [] : [`${at}/${name}`]),
            ...told(property, `${at}/${name}`),
          ]),
          ...told(items, `${at}/-`),
          ...Object.values(patternProperties).flatMap((member) => told(member, `${at}/*`)),
        ];
      };
      assert.deepEqual(told(schema, type), [], 'every key has a description');
    }
  });

  it('accept every file that the platform returns, and those of the templates', async () => {
    const pkg = { version: 1, types: types.map(({ type: name }) => ({ name, members: ['*'] })) };
    const { files } = (await ada.post('/metadata/retrieve', { package: pkg })).body;
    const components = Object.entries<string>({ ...(await templateFiles('erp')), ...files }).filter(([path]) =>
      typeAt(path),
    );
    assert.ok(components.length > 200);
    assert.deepEqual(
      components.flatMap(([path, text]) => mistakes(path, text)),
      [],
    );
  });

  it('refuse every form that the platform refuses', () => {
    const field = 'type: CustomField\napiName: A__c\nobject: Bill__c\nlabel: A\n';
    for (const text of [
      field,
      `${field}fieldType: money\n`,
      `${field}fieldType: text\nlenght: 5\n`,
      `${field}fieldType: text\nlength: long\n`,
      `${field}fieldType: picklist\npicklist: [a]\n`,
    ])
      assert.equal(mistakes('objects/Bill__c/fields/A__c.yaml', text).length, 1, text);
  });

  it('accept the files of a small business, which are returned as they were sent', async () => {
    assert.deepEqual(
      Object.entries(CANONICAL).flatMap(([path, text]) => mistakes(path, text)),
      [],
    );
    await deployOverHttp(ada, CANONICAL);
    const { body } = await ada.post('/metadata/retrieve', { package: wholePackage(CANONICAL) });
    for (const [path, text] of Object.entries(CANONICAL)) assert.equal(body.files[path], text);
  });
});
