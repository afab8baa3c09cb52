import assert from 'node:assert/strict';
import { checkExpression } from '../../../lib/expression/check.ts';
import { evaluate } from '../../../lib/expression/evaluate.ts';
import { valueOfField } from '../../../lib/expression/values.ts';
import { valueTypeName } from '../../../lib/schema/field-types/registry.ts';
import type { ObjectMeta, Snapshot } from '../../../lib/schema/snapshot.ts';
import { compileSnapshot } from '../../../services/metadata/compile.ts';
import { makePlan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { templateFiles } from '../../../templates/read.ts';
import { generateSamples } from '../../../templates/samples/generate.ts';
import { DEMO_TENANTS } from '../../../templates/seed.ts';
import { aSnapshot } from '../../support/snapshots.ts';

type Row = Record<string, unknown>;

const OWNERS = [['01900000-0000-7000-8000-0000000000a1', 1]] as const;

describe('validation rules of the ERP template', () => {
  let snapshot: Snapshot;
  before(async () => {
    const project = await readProject(await templateFiles('erp'), null);
    const { after } = makePlan(new Map(), project, { platform: true, allowDestructiveChanges: false });
    snapshot = compileSnapshot(aSnapshot([]).tenant, 1, after);
  });

  /** Names of the rules that refuse a record. */
  const refusals = (object: ObjectMeta): ((row: Row, old?: Row, now?: number) => string[]) => {
    const schema = {
      object: object.apiName,
      fieldType: (name: string) => object.fields[name] && valueTypeName(object.fields[name]),
    };
    const rules = object.validationRules.map((rule) => ({
      name: rule.apiName,
      expression: checkExpression(rule.condition, schema, ['boolean']),
    }));
    const read = (row: Row) => (name: string) => valueOfField(valueTypeName(object.fields[name]!), row[name]);
    return (row, old, now = Date.now()) =>
      rules
        .filter(({ expression }) =>
          evaluate(expression, {
            record: read(row),
            old: old ? read(old) : null,
            isChanged: (name) => row[name] !== old?.[name],
            user: {},
            hasPermission: () => false,
            inGroup: () => false,
            now,
            timezone: 'Europe/Berlin',
          }),
        )
        .map((rule) => rule.name);
  };

  it('point to a field of their object and have a message', () => {
    const rules = Object.values(snapshot.objects).flatMap((object) =>
      object.validationRules.map((rule) => ({ object, rule })),
    );
    assert.equal(rules.length, 17);
    for (const { object, rule } of rules) {
      assert.ok(rule.active, rule.apiName);
      assert.ok(rule.errorField !== null && Object.hasOwn(object.fields, rule.errorField), rule.apiName);
      assert.match(rule.message, /^[A-Z].*\.$/);
    }
  });

  it('accept every sample record, on its day and later', () => {
    for (const day of ['2026-11-01', '2027-01-02', '2028-02-29'])
      for (const { samples } of DEMO_TENANTS) {
        const at = Date.parse(day);
        for (const { objectApiName, columns, rows } of generateSamples(samples, OWNERS, at)) {
          const check = refusals(snapshot.objects[objectApiName]!);
          for (const row of rows) {
            const record = Object.fromEntries(columns.map((column, i) => [column, row[i]]));
            assert.deepEqual(check(record, record, at), [], `${day} ${objectApiName} ${record['name']}`);
            const made = Date.parse(record['createdAt'] as string);
            assert.deepEqual(check(record, undefined, made), [], `${day} ${objectApiName} ${record['name']}`);
          }
        }
      }
  });

  it('refuse accounting errors', () => {
    const check = refusals(snapshot.objects['Invoice__c']!);
    assert.deepEqual(check({ Amount__c: '0.00' }), ['AmountPositive']);
    assert.deepEqual(check({ Amount__c: '0.01' }), []);
    assert.deepEqual(check({ IssueDate__c: '2026-02-01', DueDate__c: '2026-01-31' }), ['DueDateNotBeforeIssueDate']);
    assert.deepEqual(check({ Status__c: 'sent' }), ['SentNeedsDueDate']);
    assert.deepEqual(check({ Status__c: 'paid', OpenAmount__c: '0.01' }), ['PaidHasNothingOpen']);
    assert.deepEqual(check({ LedgerNumber__c: '2' }, { LedgerNumber__c: '1' }), ['LedgerNumberStays']);
    assert.deepEqual(check({ LedgerNumber__c: '2' }, { LedgerNumber__c: null }), []);
    for (const field of ['Amount__c', 'AccountId__c', 'IssueDate__c', 'BillingAddress__c'])
      for (const [status, refused] of [
        ['draft', []],
        ['overdue', ['SentStays']],
        ['paid', ['SentStays']],
      ] as const) {
        const old = { Status__c: status, DueDate__c: '2026-03-01', Amount__c: '1.00' };
        assert.deepEqual(
          check({ ...old, [field]: '2026-01-01' }, old).includes('SentStays'),
          refused.length > 0,
          field,
        );
        assert.deepEqual(check({ ...old, DueDate__c: '2026-04-01', Notes__c: 'Later.' }, old), []);
      }
    // A payment that comes back leaves something open, until the invoice is opened again.
    const paid = { Status__c: 'paid', OpenAmount__c: '5.00' };
    assert.deepEqual(check({ ...paid, Notes__c: 'Returned by the bank.' }, paid), []);
    const credit = refusals(snapshot.objects['CreditNote__c']!);
    assert.deepEqual(credit({ Amount__c: '0' }), ['AmountPositive']);
    assert.deepEqual(credit({ Amount__c: '10', TaxAmount__c: '11' }), ['TaxWithinAmount']);
    const order = refusals(snapshot.objects['SalesOrder__c']!);
    assert.deepEqual(order({ OrderDate__c: '2026-02-01', RequestedDeliveryDate__c: '2026-01-31' }), [
      'DeliveryNotBeforeOrder',
    ]);
    assert.deepEqual(order({ Status__c: 'submitted', PaymentTerms__c: 'net60' }, { Status__c: 'submitted' }), [
      'SubmittedStays',
    ]);
    assert.deepEqual(order({ Status__c: 'submitted', PaymentTerms__c: 'net60' }, { Status__c: 'draft' }), []);
    assert.deepEqual(refusals(snapshot.objects['Opportunity__c']!)({ Stage__c: 'closedLost' }), ['LostNeedsReason']);
    assert.deepEqual(refusals(snapshot.objects['Payment__c']!)({ Amount__c: '-5', ReceivedOn__c: '2999-01-01' }), [
      'AmountPositive',
      'ReceivedOnNotInFuture',
    ]);
    const payment = refusals(snapshot.objects['Payment__c']!);
    assert.deepEqual(payment({ Amount__c: '6' }, { Amount__c: '5' }), ['BookedStays']);
    assert.deepEqual(payment({ Amount__c: '5', Status__c: 'returned' }, { Amount__c: '5', Status__c: 'received' }), []);
    for (const [day, received, refused] of [
      ['2026-03-10', '2026-02-01', []],
      ['2026-03-10', '2026-01-31', ['PeriodOpen']],
      ['2026-03-11', '2026-02-28', ['PeriodOpen']],
      ['2026-03-11', '2026-03-01', []],
    ] as const) {
      const now = Date.parse(`${day}T12:00:00Z`);
      assert.deepEqual(payment({ Amount__c: '5', ReceivedOn__c: received }, undefined, now), refused, day);
      const booked = { Amount__c: '5', ReceivedOn__c: received };
      assert.deepEqual(payment({ ...booked, Status__c: 'cleared' }, booked, now), []);
    }
  });
});
