import assert from 'node:assert/strict';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import { CUSTOM_FIELD } from '../../../services/metadata/kinds/bodies/custom-field.ts';
import { compileField } from '../../../services/metadata/kinds/compile-field.ts';
import { findComponent, type State } from '../../../services/metadata/kinds/component.ts';
import { makePlan } from '../../../services/metadata/planner/plan.ts';
import { readProject } from '../../../services/metadata/project/project.ts';
import { templateFiles } from '../../../templates/read.ts';
import { generateSamples } from '../../../templates/samples/generate.ts';
import { DAY, lastSunday } from '../../../templates/samples/values.ts';
import type { SampleTable } from '../../../templates/samples/workbook.ts';
import { DEMO_TENANTS } from '../../../templates/seed.ts';

type Row = Record<string, string | number | boolean | null | object>;

const SYSTEM = ['id', 'ownerId', 'createdAt', 'createdById', 'updatedAt', 'updatedById'];
const MIA = '01900000-0000-7000-8000-0000000000a1';
const SAM = '01900000-0000-7000-8000-0000000000a2';
const SUE = '01900000-0000-7000-8000-0000000000a3';
const OWNERS = [
  [MIA, 1],
  [SAM, 5],
  [SUE, 4],
] as const;

/** Cents (or thousandths) of a decimal text, exactly. */
const units = (value: unknown): bigint => BigInt(String(value).replace('.', ''));
const sum = (values: bigint[]): bigint => values.reduce((total, value) => total + value, 0n);

for (const day of ['2026-11-01', '2027-01-02', '2028-02-29'])
  describe(`sample records of the ERP template, made on ${day}`, () => {
    const end = lastSunday(Date.parse(day));
    let state: State;
    const sets = new Map<string, { tables: SampleTable[]; rows: Map<string, Row[]> }>();

    before(async () => {
      const project = await readProject(await templateFiles('erp'), null);
      state = makePlan(new Map(), project, { platform: true, allowDestructiveChanges: false }).after;
      for (const { key, samples } of DEMO_TENANTS) {
        const tables = generateSamples(samples, OWNERS, Date.parse(day));
        const rows = new Map(
          tables.map(({ objectApiName, columns, rows }) => [
            objectApiName as string,
            rows.map((row) => Object.fromEntries(columns.map((column, i) => [column, row[i]])) as Row),
          ]),
        );
        sets.set(key, { tables, rows });
      }
    });

    const demo = (object: string): Row[] => sets.get('demo')!.rows.get(object)!;
    const field = (object: string, name: string): FieldMeta =>
      compileField(findComponent(state, CUSTOM_FIELD, `${object}.${name}`)!, state);
    const groupBy = (rows: Row[], column: string): Map<unknown, Row[]> => {
      const groups = new Map<unknown, Row[]>();
      for (const row of rows) groups.set(row[column], [...(groups.get(row[column]) ?? []), row]);
      return groups;
    };

    it('include over 500 accounts, 5,000 orders and 20,000 lines', () => {
      assert.ok(demo('Account').length >= 500);
      assert.ok(demo('Contact').length >= 1_000);
      assert.ok(demo('Product').length >= 100);
      assert.equal(demo('SalesOrder__c').length, 5_000);
      assert.ok(demo('SalesOrderLine__c').length >= 20_000);
      assert.ok(demo('Invoice__c').length >= 3_500);
      assert.equal(demo('Opportunity__c').length, 300);
      assert.ok(sets.get('acme')!.rows.get('Account')!.length < 100);
    });

    it('are the same in every run of a week', () => {
      const { key, samples } = DEMO_TENANTS.find((tenant) => tenant.key === 'acme')!;
      const made = (at: number): string => JSON.stringify(generateSamples(samples, OWNERS, at));
      const expected = JSON.stringify(sets.get(key)!.tables);
      assert.ok(end <= Date.parse(day) && end > Date.parse(day) - 7 * DAY);
      assert.equal(made(end), expected);
      assert.equal(made(end + 7 * DAY - 1), expected);
      assert.notEqual(made(end - 1), expected);
    });

    it('include sold, sent, paid, overdue and nearly won deals', () => {
      const since = (days: number): string => new Date(end - days * DAY).toISOString().slice(0, 10);
      const found = (object: string, column: string, days: number): number =>
        demo(object).filter((row) => (row[column] as string) > since(days)).length;
      assert.ok(found('SalesOrder__c', 'OrderDate__c', 7) > 20);
      assert.ok(found('Invoice__c', 'IssueDate__c', 7) > 20);
      assert.ok(found('Payment__c', 'ReceivedOn__c', 7) > 20);
      const open = demo('Opportunity__c').filter((row) => !(row['Stage__c'] as string).startsWith('closed'));
      const late = open.filter((row) => (row['CloseDate__c'] as string) < since(0));
      assert.ok(late.length > 2 && late.length < open.length / 4, `${late.length} of ${open.length}`);
      for (const row of open) assert.ok((row['CloseDate__c'] as string) > (row['createdAt'] as string).slice(0, 10));
      for (const status of ['draft', 'sent', 'overdue', 'disputed', 'paid', 'canceled'])
        assert.ok(
          demo('Invoice__c').some((row) => row['Status__c'] === status),
          status,
        );
    });

    it('have unique ids across both tenants that sort by age', () => {
      const ids = new Set<string>();
      let count = 0;
      for (const { rows } of sets.values())
        for (const list of rows.values())
          for (const row of list) {
            const id = row['id'] as string;
            assert.ok(isUuid(id) && id[14] === '7', id);
            assert.equal(
              Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16),
              Date.parse(row['createdAt'] as string),
            );
            ids.add(id);
            count++;
          }
      assert.equal(ids.size, count);
    });

    it('contain only values that the API accepts', () => {
      for (const [key, { tables }] of sets)
        for (const { objectApiName, columns, rows } of tables) {
          const metas = columns.map((name) =>
            SYSTEM.includes(name) || name === 'name' ? null : field(objectApiName, name),
          );
          for (const row of rows)
            for (const [i, meta] of metas.entries()) {
              const value = row[i];
              if (!meta) {
                assert.ok(
                  typeof value === 'string' && value !== '' && value.length <= 255,
                  `${objectApiName}.${columns[i]}`,
                );
                continue;
              }
              if (value === null) {
                assert.ok(!meta.required, `${key} ${objectApiName}.${meta.apiName} is required`);
                continue;
              }
              const result = fieldType(meta.fieldType).parseInput(value, meta, '');
              if (!result.ok)
                assert.fail(
                  `${key} ${objectApiName}.${meta.apiName}: ${JSON.stringify(value)} ${result.violation.message}`,
                );
            }
        }
    });

    it('choose dependent values that fit the controlling one', () => {
      for (const { tables } of sets.values())
        for (const { objectApiName, columns, rows } of tables)
          for (const [i, name] of columns.entries()) {
            if (SYSTEM.includes(name) || name === 'name') continue;
            const meta = field(objectApiName, name);
            if (!meta.controllingField) continue;
            const controller = columns.indexOf(meta.controllingField);
            for (const row of rows) {
              const validFor = meta.picklistValues!.find((v) => v.value === row[i])?.validFor;
              if (row[i] !== null && validFor) assert.ok(validFor.includes(row[controller] as string), name);
            }
          }
    });

    it('have no duplicate unique values', () => {
      for (const { tables } of sets.values())
        for (const { objectApiName, columns, rows } of tables)
          for (const [i, name] of columns.entries()) {
            if (SYSTEM.includes(name) || name === 'name' || !field(objectApiName, name).unique) continue;
            const values = rows.map((row) => row[i]).filter((value) => value !== null);
            assert.equal(new Set(values).size, values.length, `${objectApiName}.${name}`);
          }
      for (const object of ['SalesOrder__c', 'Invoice__c', 'Payment__c', 'Account'])
        assert.equal(new Set(demo(object).map((row) => row['name'])).size, demo(object).length, object);
    });

    it('refer only to records of the same tenant that were loaded before', () => {
      for (const { tables } of sets.values()) {
        const known = new Map<string, Set<unknown>>();
        for (const { objectApiName, columns, rows } of tables) {
          const own = new Set<unknown>();
          known.set(objectApiName, own);
          const references = columns.flatMap((name, i) => {
            if (SYSTEM.includes(name) || name === 'name') return [];
            const to = field(objectApiName, name).referenceTo[0];
            return to ? [{ i, to, name }] : [];
          });
          for (const row of rows) {
            for (const { i, to, name } of references)
              if (row[i] !== null) assert.ok(known.get(to)?.has(row[i]), `${objectApiName}.${name}`);
            own.add(row[0]);
          }
        }
      }
    });

    it('belong to Mia, Sam and Sue', () => {
      for (const object of ['Account', 'SalesOrder__c', 'Invoice__c', 'Opportunity__c'])
        assert.deepEqual([...new Set(demo(object).map((row) => row['ownerId']))].sort(), [MIA, SAM, SUE]);
    });

    it('have dates before the end of the sample company’s data', () => {
      const last = new Date(end).toISOString();
      for (const [, { rows }] of sets)
        for (const list of rows.values())
          for (const row of list) {
            assert.ok((row['createdAt'] as string) < last);
            assert.ok((row['updatedAt'] as string) >= (row['createdAt'] as string));
            assert.ok((row['updatedAt'] as string) <= last);
          }
    });

    /** Results of a line's formulas, in cents. */
    const netOf = (line: Row): bigint => (units(line['UnitPrice__c']) * units(line['Quantity__c']) + 500n) / 1_000n;
    const taxOf = (line: Row): bigint => (netOf(line) * units(line['TaxRate__c']) + 5_000n) / 10_000n;

    it('have orders of two to eight lines that add up to the approved amount, to the cent', () => {
      const lines = groupBy(demo('SalesOrderLine__c'), 'SalesOrderId__c');
      for (const order of demo('SalesOrder__c')) {
        const own = lines.get(order['id'])!;
        assert.ok(own.length >= 2 && own.length <= 8);
        const approved = order['ApprovedAmount__c'];
        if (approved !== null) assert.equal(units(approved), sum(own.map(netOf)), String(order['name']));
      }
    });

    it('have an invoice with the same lines and amount for every delivered order', () => {
      const invoices = new Map(demo('Invoice__c').map((invoice) => [invoice['SalesOrderId__c'], invoice]));
      const lines = groupBy(demo('InvoiceLine__c'), 'InvoiceId__c');
      const orderLines = groupBy(demo('SalesOrderLine__c'), 'SalesOrderId__c');
      for (const order of demo('SalesOrder__c')) {
        const invoice = invoices.get(order['id']);
        assert.equal(invoice !== undefined, ['fulfilled', 'closed'].includes(order['Status__c'] as string));
        if (!invoice) continue;
        const own = lines.get(invoice['id'])!;
        const ordered = orderLines.get(order['id'])!;
        assert.deepEqual(
          own.map((line) => [line['Quantity__c'], line['UnitPrice__c']]),
          ordered.map((line) => [line['Quantity__c'], line['UnitPrice__c']]),
        );
        assert.equal(units(invoice['Amount__c']), sum(own.map(netOf)));
      }
    });

    it('have payments that match the paid, open and overdue amounts', () => {
      const payments = groupBy(demo('Payment__c'), 'InvoiceId__c');
      const lines = groupBy(demo('InvoiceLine__c'), 'InvoiceId__c');
      const today = new Date(end).toISOString().slice(0, 10);
      for (const invoice of demo('Invoice__c')) {
        const paid = sum((payments.get(invoice['id']) ?? []).map((payment) => units(payment['Amount__c'])));
        const own = lines.get(invoice['id'])!;
        const total = units(invoice['Amount__c']) + sum(own.map(taxOf));
        const status = invoice['Status__c'];
        assert.equal(status === 'paid', paid === total);
        if (status === 'overdue') assert.ok((invoice['DueDate__c'] as string) < today);
        if (status === 'sent') assert.ok((invoice['DueDate__c'] as string) >= today);
      }
    });

    it('number orders and invoices chronologically', () => {
      for (const object of ['SalesOrder__c', 'Invoice__c', 'Payment__c']) {
        const rows = demo(object);
        for (let i = 1; i < rows.length; i++) {
          assert.ok((rows[i]!['name'] as string) > (rows[i - 1]!['name'] as string));
          assert.ok((rows[i]!['createdAt'] as string) >= (rows[i - 1]!['createdAt'] as string));
        }
      }
    });
  });
