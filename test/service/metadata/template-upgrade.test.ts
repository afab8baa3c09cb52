/** Tenants that an earlier version of the ERP template made, when this one is deployed to them. */
import assert from 'node:assert/strict';
import { migrateServices } from '../../../main.ts';
import { Database } from '../../../mixins/database/database.ts';
import { createTenant, deployTemplate } from '../../../services/metadata/tenants.ts';
import { templateFiles } from '../../../templates/read.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

const amount = (object: string, name: string): Record<string, string> => ({
  [`objects/${object}/fields/${name}.yaml`]: `type: CustomField\napiName: ${name}\nobject: ${object}\nlabel: Amount\nfieldType: currency\nprecision: 18\nscale: 2\ncurrencyField: CurrencyIsoCode__c\n`,
});
/** Amounts of lines as they were when they were typed in, and a rule that held them to quantity and price. */
const TYPED_IN = {
  ...amount('SalesOrderLine__c', 'NetAmount__c'),
  ...amount('SalesOrderLine__c', 'TaxAmount__c'),
  ...amount('InvoiceLine__c', 'NetAmount__c'),
  ...amount('InvoiceLine__c', 'TaxAmount__c'),
  'objects/InvoiceLine__c/validationRules/NetFollowsPrice.yaml':
    'type: ValidationRule\napiName: NetFollowsPrice\nobject: InvoiceLine__c\nactive: true\ncondition: record.NetAmount__c != round(record.Quantity__c * record.UnitPrice__c, 2)\nerrorField: NetAmount__c\nmessage: The net amount is quantity times unit price.\n',
};

describe('a newer version of the ERP template', () => {
  let server: TestDatabase;
  let database: Database;
  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 2, applicationName: 'template test' });
    await migrateServices(database, ['metadata']);
  });
  after(async () => {
    await database?.close();
    await server?.drop();
  });

  it('works out the amounts of the lines that are there, also of those without any', async function () {
    this.timeout(60_000);
    const files = await templateFiles('erp');
    const { tenant } = await createTenant(database, 'local', { key: 'older', name: 'Older' });
    const schema = `"t_${tenant.id.replaceAll('-', '')}"`;
    const { 'manifest/package.yaml': _names, ...earlier } = files;
    await deployTemplate(database, tenant.id, { ...earlier, ...TYPED_IN });

    const [order, invoice] = ['01939f6e-0000-7000-8000-000000000001', '01939f6e-0000-7000-8000-000000000002'];
    const insert = (object: string, values: Record<string, unknown>): Promise<unknown> => {
      const given = { id: '01939f6e-0000-7000-8000-000000000003', ...values };
      const system = '"name", "ownerId", "createdAt", "createdById", "updatedAt", "updatedById"';
      const names = Object.keys(given).map((name) => `"${name}"`);
      return database.query(
        `INSERT INTO ${schema}."${object}" (${names.join(', ')}, ${system})
         VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')}, 'x', $1, now(), $1, now(), $1)`,
        Object.values(given) as string[],
      );
    };
    const line = (quantity: number, price: number, net: number | null, tax: number | null, more: object) => ({
      ...more,
      Quantity__c: quantity,
      UnitPrice__c: price,
      TaxRate__c: 19,
      NetAmount__c: net,
      TaxAmount__c: tax,
    });
    await insert('SalesOrder__c', { id: order });
    await insert('Invoice__c', { id: invoice, Amount__c: 20 });
    await insert('SalesOrderLine__c', line(2, 10, 20, 3.8, { SalesOrderId__c: order }));
    await insert('SalesOrderLine__c', {
      ...line(2.5, 9.99, null, null, { SalesOrderId__c: order }),
      id: '01939f6e-0000-7000-8000-000000000004',
    });
    await insert('InvoiceLine__c', line(2, 10, 20, 3.8, { InvoiceId__c: invoice }));
    const figures = async (): Promise<unknown[]> => {
      const { rows } = await database.query(
        `SELECT o."NetAmount__c"::text AS net, o."TaxAmount__c"::text AS tax, o."recordVersion" AS version, i."LineAmount__c"::text AS lines, i."TaxAmount__c"::text AS taxes, i."recordVersion" AS unchanged
         FROM ${schema}."SalesOrder__c" o, ${schema}."Invoice__c" i`,
      );
      return Object.values(rows[0]!);
    };
    const [net, tax, version, lines, taxes, unchanged] = await figures();
    assert.deepEqual([net, tax, lines, taxes], ['20.00', '3.80', '20.00', '3.80']);
    assert.equal((await deployTemplate(database, tenant.id, files)).applied, true);
    assert.deepEqual(await figures(), ['44.98', '8.55', Number(version) + 1, '20.00', '3.80', unchanged]);
    assert.equal((await deployTemplate(database, tenant.id, files)).applied, false);
  });
});
