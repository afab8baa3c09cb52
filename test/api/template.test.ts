/** The demo tenants from their users' view: the ERP template's promises, tested through the API. */
import assert from 'node:assert/strict';
import { Errors } from 'moleculer';
import { PlatformError } from '../../lib/errors/platform-error.ts';
import { seedDemo } from '../../templates/seed.ts';
import { type Api, api, tokenFor } from '../support/client.ts';
import { deployOverHttp } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('the demo tenants', () => {
  let platform: TestPlatform;
  let sam: Api;
  let mia: Api;

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
  });
  after(() => platform?.stop());

  const fieldsOf = async (user: Api, object: string): Promise<string[]> => {
    const { status, body } = await user.get(`/objects/${object}/describe`);
    assert.equal(status, 200);
    return body.fields.map((field: { apiName: string }) => field.apiName);
  };
  const total = async (user: Api, object: string): Promise<number> =>
    (await user.get(`/data/${object}?take=1&includeTotal=true`)).body.total;

  it('hold a business of a fair size', async () => {
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    assert.ok((await total(ada, 'Account')) >= 500);
    assert.ok((await total(ada, 'SalesOrder__c')) >= 5_000);
    assert.ok((await total(ada, 'SalesOrderLine__c')) >= 20_000);
    assert.ok((await total(ada, 'Invoice__c')) >= 3_500);
  });

  it('offer Sam the objects of a sales representative', async () => {
    const { body } = await sam.get('/objects');
    const names = body.records.map((record: { apiName: string }) => record.apiName);
    for (const name of ['Account', 'Contact', 'Product', 'SalesOrder__c', 'Invoice__c', 'Payment__c', 'Opportunity__c'])
      assert.ok(names.includes(name), name);
    const payment = body.records.find((record: { apiName: string }) => record.apiName === 'Payment__c');
    assert.equal(payment.capabilities.creatable, false);
  });

  it('hide costs, margins and credit limits from Sam and show them to Mia', async () => {
    for (const [object, field] of [
      ['Account', 'creditLimit'],
      ['Product', 'standardCost'],
      ['Product', 'targetMargin'],
      ['SalesOrder__c', 'MarginPercent__c'],
      ['SalesOrderLine__c', 'UnitCost__c'],
    ] as const) {
      assert.ok(!(await fieldsOf(sam, object)).includes(field), field);
      assert.ok((await fieldsOf(mia, object)).includes(field), field);
    }
    const forSam = (await sam.get('/data/Product?take=1')).body.records[0];
    assert.equal('standardCost' in forSam, false);
    assert.equal('standardCost' in (await mia.get(`/data/Product/${forSam.id}`)).body, true);
  });

  it("describe a list price as distinct from the customer's price", async () => {
    const { body } = await sam.get('/objects/Product/describe');
    const price = body.fields.find((field: { apiName: string }) => field.apiName === 'listPrice');
    assert.match(price.semantics, /not the customer's price/);
    assert.equal(price.currencyField, 'currencyIsoCode');
    assert.equal(price.editable, false);
  });

  it('let Sam create an account and an invoice with the fields of the documents', async () => {
    const account = await sam.post('/data/Account', { name: 'Lakeside Bakery Ltd', country: 'GB' });
    assert.equal(account.status, 201, account.text);
    assert.equal(account.body.type, 'prospect');
    assert.equal(account.body.currencyIsoCode, 'EUR');
    const invoice = await sam.post('/data/Invoice__c', { AccountId__c: account.body.id, Amount__c: 10.5 });
    assert.equal(invoice.status, 201, invoice.text);
    assert.equal(invoice.body.Status__c, 'draft');
    assert.match(invoice.body.name, /^INV-\d{5}$/);
  });

  it('number new documents after the sample ones', async () => {
    const newest = (await sam.get('/data/Account?take=1')).body.records[0];
    const order = await sam.post('/data/SalesOrder__c', { AccountId__c: newest.id });
    assert.equal(order.status, 201, order.text);
    assert.ok(order.body.name > 'SO-05000', order.body.name);
  });

  it('allow changes of a sample record like of any other', async () => {
    const { body, headers } = await sam.get(
      `/data/SalesOrder__c/${(await sam.get('/data/SalesOrder__c?take=1&skip=20')).body.records[0].id}`,
    );
    const changed = await sam.patch(
      `/data/SalesOrder__c/${body.id}`,
      { Notes__c: 'Customer called.' },
      { etag: headers.get('etag')! },
    );
    assert.equal(changed.status, 200, changed.text);
    assert.equal(changed.body.Notes__c, 'Customer called.');
    assert.equal(changed.body.TotalAmount__c, body.TotalAmount__c);
  });

  it('refuse Pat, who lacks the API permission', async () => {
    const pat = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'pat'));
    const { status } = await pat.get('/data/Account');
    assert.equal(status, 403);
  });

  it('separate the business of acme from that of demo', async () => {
    const eve = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'eve'));
    const accounts = (await eve.get('/data/Account?take=200&includeTotal=true')).body;
    assert.ok(accounts.total > 10 && accounts.total < 100);
    for (const { country } of accounts.records) assert.ok(['US', 'CA'].includes(country));
    const other = (await sam.get('/data/Account?take=1&skip=100')).body.records[0];
    assert.equal((await eve.get(`/data/Account/${other.id}`)).status, 404);
  });

  it('are unchanged by a later start, which costs next to nothing', async () => {
    const before = await total(mia, 'Account');
    const { Database } = await import('../../mixins/database/database.ts');
    const database = new Database(platform.database.url, { size: 2, applicationName: 'seed again' });
    try {
      // No service is called: one query shows that everything exists.
      const idle = { waitForServices: () => assert.fail('something is left to do') };
      await seedDemo(idle as unknown as typeof platform.broker, platform.config, database);
      assert.equal(await total(mia, 'Account'), before);
    } finally {
      await database.close();
    }
  });

  it('are repaired by the next start when the first was interrupted', async function () {
    this.timeout(60_000);
    const { Database } = await import('../../mixins/database/database.ts');
    const database = new Database(platform.database.url, { size: 2, applicationName: 'seed again' });
    try {
      const tenant = await platform.broker.call<{ id: string }, { key: string }>('metadata.tenants.get', {
        key: 'acme',
      });
      await database.tenant(tenant.id, (tx) => tx.query(`DELETE FROM ${tx.schema}."Payment__c"`));
      await database.query(`DELETE FROM seed.steps WHERE tenant = 'acme' AND step <> 'template'`);
      await seedDemo(platform.broker, platform.config, database);
      const { rows } = await database.tenant(tenant.id, (tx) =>
        tx.query<{ payments: number; accounts: number }>(
          `SELECT (SELECT count(*) FROM ${tx.schema}."Payment__c") AS payments,
                  (SELECT count(*) FROM ${tx.schema}."Account") AS accounts`,
        ),
      );
      assert.ok(rows[0]!.payments > 100);
      assert.equal(rows[0]!.accounts, 40);
    } finally {
      await database.close();
    }
  });

  it('are created although responses are lost', async function () {
    this.timeout(60_000);
    const { Database } = await import('../../mixins/database/database.ts');
    const database = new Database(platform.database.url, { size: 2, applicationName: 'seed again' });
    const { broker } = platform;
    const lost = new Set<string>();
    // The work is done, but the caller only learns that the other process is gone.
    const losing = {
      logger: broker.logger,
      waitForServices: broker.waitForServices.bind(broker),
      call: async (action: string, params: object, options: object) => {
        const answer = await broker.call(action, params, options);
        if (lost.has(action)) return answer;
        lost.add(action);
        throw new Errors.RequestRejectedError({ action, nodeID: 'lost' });
      },
    };
    try {
      const tenant = await broker.call<{ id: string }, { key: string }>('metadata.tenants.get', { key: 'acme' });
      const counts = () =>
        database.tenant(tenant.id, async (tx) => {
          const count = (object: string) => `(SELECT count(*)::int FROM ${tx.schema}."${object}")`;
          return (
            await tx.query(
              `SELECT ${count('User')} AS users, ${count('Account')} AS accounts, ${count('Payment__c')} AS payments`,
            )
          ).rows[0];
        });
      const before = await counts();
      await database.tenant(tenant.id, (tx) => tx.query(`DELETE FROM ${tx.schema}."Payment__c"`));
      await database.query(`DELETE FROM seed.steps WHERE tenant = 'acme' AND step <> 'template'`);
      await seedDemo(losing as unknown as typeof broker, platform.config, database);
      assert.deepEqual(
        [...lost],
        ['metadata.tenants.create', 'auth.domains.add', 'data.users.provision', 'data.samples.load'],
      );
      assert.deepEqual(await counts(), before);
    } finally {
      await database.close();
    }
  });

  it("stay unchanged when a newer template conflicts with users' changes, and the platform starts", async function () {
    this.timeout(60_000);
    const { Database } = await import('../../mixins/database/database.ts');
    const database = new Database(platform.database.url, { size: 2, applicationName: 'seed again' });
    const { broker } = platform;
    const path = 'objects/SalesOrderLine__c/actions/Reprice.yaml';
    const action = `type: CustomAction\napiName: Reprice\nobject: SalesOrderLine__c\nlabel: Reprice\nrisk: low\nrequiresComment: false\neffects:\n  - verb: updateFields\n    fields:\n      ListPrice__c: record.UnitPrice__c\n`;
    const ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    await deployOverHttp(ada, { [path]: action });
    const warnings: string[] = [];
    // From the next version, in which the list price is computed.
    const newer = {
      logger: { info: () => {}, warn: (message: string) => warnings.push(message) },
      waitForServices: broker.waitForServices.bind(broker),
      call: (name: string, params: { files?: Record<string, string> }, options: object) =>
        broker.call(
          name,
          name === 'metadata.templates.deploy' ? { ...params, files: withFormula(params.files!) } : params,
          options,
        ),
    };
    const withFormula = (files: Record<string, string>): Record<string, string> => {
      const price = 'objects/SalesOrderLine__c/fields/ListPrice__c.yaml';
      const formula = 'fieldType: formula\nformula: {expression: record.UnitPrice__c, resultType: currency}';
      return { ...files, [price]: files[price]!.replace('fieldType: currency', formula).replace(/^minimum.*\n/m, '') };
    };
    const seed = (): Promise<void> => seedDemo(newer as unknown as typeof broker, platform.config, database);
    const templates = async (): Promise<unknown[]> =>
      (await database.query(`SELECT tenant, fingerprint FROM seed.steps WHERE step = 'template' ORDER BY tenant`)).rows;
    try {
      await database.query(`UPDATE seed.steps SET fingerprint = 'earlier' WHERE step = 'template'`);
      await seed();
      assert.equal(warnings.length, 1, warnings.join());
      assert.match(
        warnings[0]!,
        /demo keeps .* CustomAction SalesOrderLine__c\.Reprice: ListPrice__c is kept by the platform/,
      );
      const [acme, demo] = (await templates()) as { fingerprint: string }[];
      assert.equal(demo!.fingerprint, 'earlier', 'the next start tries again');
      assert.notEqual(acme!.fingerprint, 'earlier', 'nothing stands against it there');
      assert.equal((await sam.get('/data/SalesOrderLine__c?take=1')).status, 200);

      await deployOverHttp(ada, {
        [path]: action.replace('ListPrice__c: record.UnitPrice__c', 'Description__c: record.name'),
      });
      await seed();
      assert.equal(warnings.length, 1, warnings.join());
      assert.ok((await templates()).every((row) => (row as { fingerprint: string }).fingerprint !== 'earlier'));
    } finally {
      await database.close();
    }
  });

  it('cannot be created from an inconsistent template', async () => {
    const { Database } = await import('../../mixins/database/database.ts');
    const database = new Database(platform.database.url, { size: 2, applicationName: 'seed again' });
    const blocked = new PlatformError('METADATA_INVALID', 'Blocked.', { details: { blocked: [] } });
    const failing = {
      logger: platform.broker.logger,
      waitForServices: async () => {},
      call: async (name: string) =>
        name === 'metadata.templates.deploy' ? Promise.reject(blocked) : { tenantId: 'x' },
    };
    try {
      await database.query(`DELETE FROM seed.steps WHERE tenant = 'demo' AND step = 'template'`);
      await assert.rejects(seedDemo(failing as unknown as typeof platform.broker, platform.config, database), blocked);
    } finally {
      await database.close();
    }
  });
});
