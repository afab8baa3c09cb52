import assert from 'node:assert/strict';
import { CUSTOM_FIELD } from '../../../services/metadata/kinds/bodies/custom-field.ts';
import { compileField } from '../../../services/metadata/kinds/compile-field.ts';
import { componentKey, componentsOf, findComponent, type State } from '../../../services/metadata/kinds/component.ts';
import { makePlan, type Plan } from '../../../services/metadata/planner/plan.ts';
import { type Project, readProject } from '../../../services/metadata/project/project.ts';
import { templateFiles } from '../../../templates/read.ts';
import { read } from '../../support/sources.ts';

interface Bundle {
  system?: string[];
  objects: Record<string, Record<string, boolean>>;
  fields: Record<string, { read: boolean; edit: boolean }>;
}

describe('templates/erp', () => {
  let files: Record<string, string>;
  let project: Project;
  let plan: Plan;
  let state: State;

  before(async () => {
    files = await templateFiles('erp');
    project = await readProject(files, null);
    plan = makePlan(new Map(), project, { platform: true, allowDestructiveChanges: false });
    state = plan.after;
  });

  const bundle = (type: 'Profile' | 'PermissionSet', name: string): Bundle =>
    state.get(componentKey(type, name))!.body as unknown as Bundle;
  const fieldsOf = (object: string): string[] =>
    [...state.values()].filter((c) => c.type === 'CustomField' && c.body['object'] === object).map((c) => c.fullName);
  const objects = (): string[] => [...state.values()].filter((c) => c.type === 'CustomObject').map((c) => c.fullName);

  it('deploys without problems or warnings', () => {
    assert.deepEqual(plan.blocked, []);
    assert.deepEqual(plan.warnings, []);
    assert.equal(plan.creates.length, project.drafts.size);
  });

  it('is in canonical form, file by file', () => {
    for (const draft of project.drafts.values()) assert.equal(files[draft.path], draft.yaml, draft.path);
  });

  it('has a manifest that names every component and no other', () => {
    assert.equal(project.drafts.size, Object.keys(files).length - 1);
    assert.equal(
      project.package.types.reduce((count, type) => count + type.members.length, 0),
      project.drafts.size,
    );
  });

  it('has the size stated in its README, with every rule, transition and sharing rule listed', () => {
    const text = read('templates/erp/README.md');
    const components = [...state.values()];
    const fields = components.filter(({ type }) => type === 'CustomField');
    assert.ok(text.includes(`${objects().length} objects, ${fields.length} fields`));
    for (const { type, fullName, body } of components) {
      if (type === 'SharingRule') assert.ok(text.includes(`\`${fullName}\``), fullName);
      if (type === 'CustomObject') assert.ok(text.includes(`\`${fullName}\``), fullName);
      if (type === 'ValidationRule') assert.ok(text.includes(`\`${body['object']}\``), fullName);
      if (type === 'StateModel')
        for (const { key } of body['transitions'] as { key: string }[]) assert.ok(text.includes(`\`${key}\``), key);
    }
  });

  it('names custom objects and their fields with __c and keeps standard objects without', () => {
    const standard = ['Account', 'Contact', 'Product'];
    for (const object of objects()) assert.equal(object.endsWith('__c'), !standard.includes(object), object);
    for (const object of objects())
      if (!standard.includes(object)) for (const field of fieldsOf(object)) assert.match(field, /__c$/);
  });

  it('describes every object in words, with a plural and fields to search', () => {
    for (const name of objects()) {
      const body = state.get(componentKey('CustomObject', name))!.body;
      for (const key of ['label', 'labelPlural', 'description', 'nameField', 'sharingDefault', 'defaultSearchFields'])
        assert.ok(body[key], `${name} has no ${key}`);
      assert.deepEqual(body['api'], { published: true });
    }
  });

  it('contains the invoice of the documentation', () => {
    const field = (name: string) => compileField(findComponent(state, CUSTOM_FIELD, `Invoice__c.${name}`)!, state);
    assert.equal(field('Amount__c').fieldType, 'currency');
    assert.equal(field('Amount__c').currencyField, 'CurrencyIsoCode__c');
    assert.equal(field('Status__c').defaultValue, 'draft');
    assert.deepEqual(
      field('Status__c')
        .picklistValues!.map((v) => v.value)
        .slice(0, 4),
      ['draft', 'sent', 'overdue', 'paid'],
    );
    assert.deepEqual(field('AccountId__c').referenceTo, ['Account']);
    assert.equal(field('DueDate__c').fieldType, 'date');
    assert.equal(field('CurrencyIsoCode__c').defaultValue, 'EUR');
  });

  it('describes every amount and percentage and gives each amount its currency', () => {
    for (const component of state.values()) {
      const { fieldType, semantics, currencyField } = component.body;
      if (fieldType === 'currency' || fieldType === 'percent') assert.ok(semantics, component.fullName);
      if (fieldType === 'currency') assert.ok(currencyField, component.fullName);
    }
  });

  it('has dependent picklists on existing values only', () => {
    for (const component of componentsOf(state, CUSTOM_FIELD)) {
      const field = compileField(component, state);
      if (!field.controllingField) continue;
      const controller = compileField(
        findComponent(state, CUSTOM_FIELD, `${component.body.object}.${field.controllingField}`)!,
        state,
      );
      const known = new Set(controller.picklistValues!.map((v) => v.value));
      for (const value of field.picklistValues!)
        for (const name of value.validFor ?? []) assert.ok(known.has(name), `${component.fullName}: ${name}`);
    }
  });

  it('gives sales representatives and managers access to every object and decides on every field', () => {
    const hiddenFrom = (name: string): string[] =>
      objects()
        .flatMap(fieldsOf)
        .filter((field) => !bundle('Profile', name).fields[field])
        .sort();
    assert.deepEqual(Object.keys(bundle('Profile', 'SalesRep').objects).sort(), objects().sort());
    assert.deepEqual(hiddenFrom('SalesRep'), [
      'Account.creditLimit',
      'Contact.birthDate',
      'Payment__c.BankReference__c',
      'Product.standardCost',
      'Product.targetMargin',
      'SalesOrderLine__c.UnitCost__c',
      'SalesOrder__c.MarginPercent__c',
    ]);
    assert.deepEqual(hiddenFrom('SalesManager'), ['Contact.birthDate']);
  });

  it('lets a representative write everything that a new record needs', () => {
    const { objects: allowed, fields } = bundle('Profile', 'SalesRep');
    for (const [object, permission] of Object.entries(allowed)) {
      if (!permission['create']) continue;
      for (const name of fieldsOf(object)) {
        const required = compileField(findComponent(state, CUSTOM_FIELD, name)!, state).required;
        if (required) assert.equal(fields[name]?.edit, true, name);
      }
    }
  });

  it('grants API access to working profiles, and configuration to none', () => {
    for (const name of ['SalesRep', 'SalesManager', 'Accountant'])
      assert.ok(bundle('Profile', name).system?.includes('apiEnabled'), name);
    for (const component of state.values())
      if (component.type === 'Profile' || component.type === 'PermissionSet')
        for (const permission of (component.body['system'] as string[] | undefined) ?? [])
          assert.ok(['apiEnabled', 'approveAgentActions'].includes(permission), component.fullName);
  });
});
