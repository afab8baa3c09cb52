/** The ERP template for a bookkeeper and a sales manager, from the order to the last cent. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../support/client.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of many operations
type Anything = any;

describe('the business of the ERP template', () => {
  let platform: TestPlatform;
  const people = {} as Record<'ada' | 'mia' | 'sam' | 'fay', Api>;
  let account: string;
  let product: string;

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    for (const name of ['ada', 'mia', 'sam', 'fay'] as const)
      people[name] = api(platform.baseUrl, await tokenFor(platform.baseUrl, name));
    account = (await people.sam.post('/data/Account', { name: 'Harbour Cafe Ltd' })).body.id;
    product = (await people.sam.get('/data/Product?take=1')).body.records[0].id;
  });
  after(() => platform?.stop());

  const etagOf = async (who: Api, path: string): Promise<string> => (await who.get(path)).headers.get('etag')!;
  const act = async (who: Api, object: string, id: string, key: string, body: object = {}): Promise<Anything> => {
    const path = `/data/${object}/${id}`;
    return who.post(`${path}/transitions/${key}`, body, { etag: await etagOf(who, path) });
  };
  const patch = async (who: Api, object: string, id: string, body: object): Promise<Anything> => {
    const path = `/data/${object}/${id}`;
    return who.patch(path, body, { etag: await etagOf(who, path) });
  };
  const refusedBy = (reply: Anything): string[] => {
    assert.equal(reply.status, 422, reply.text);
    return reply.body.errors.map((error: Anything) => error.ruleApiName);
  };
  const line = (quantity: number) => ({
    ProductId__c: product,
    Quantity__c: quantity,
    UnitPrice__c: 50,
    TaxRate__c: 19,
  });
  const made = async (who: Api, object: string, body: object): Promise<Anything> => {
    const reply = await who.post(`/data/${object}`, body);
    assert.equal(reply.status, 201, reply.text);
    return reply.body;
  };
  const figures = async (id: string): Promise<unknown[]> => {
    const { body } = await people.fay.get(`/data/Invoice__c/${id}`);
    return ['Status__c', 'SentAmount__c', 'PaidAmount__c', 'CreditedAmount__c', 'OpenAmount__c'].map((f) => body[f]);
  };
  /** An invoice of Sam over 100.00 and 19.00 tax, sent. */
  const sentInvoice = async (more: object = {}): Promise<string> => {
    const { id } = await made(people.sam, 'Invoice__c', { AccountId__c: account, Amount__c: 100, ...more });
    await made(people.sam, 'InvoiceLine__c', { InvoiceId__c: id, ...line(2) });
    const sent = await act(people.sam, 'Invoice__c', id, 'send');
    assert.equal(sent.status, 201, sent.text);
    return id;
  };

  it('delivers approved lines, and none that were added afterwards', async () => {
    const { sam, mia } = people;
    const order = await made(sam, 'SalesOrder__c', { AccountId__c: account, PaymentTerms__c: 'net14' });
    const orderLine = await made(sam, 'SalesOrderLine__c', { SalesOrderId__c: order.id, ...line(2) });
    await act(sam, 'SalesOrder__c', order.id, 'submit');
    const terms = await patch(sam, 'SalesOrder__c', order.id, { PaymentTerms__c: 'net60' });
    assert.deepEqual(refusedBy(terms), ['SalesOrder__c.SubmittedStays']);
    const approved = await act(mia, 'SalesOrder__c', order.id, 'approve');
    assert.equal(approved.body.record.ApprovedAmount__c, 100);
    const grown = await patch(sam, 'SalesOrderLine__c', orderLine.id, { Quantity__c: 200 });
    assert.equal(grown.status, 200, grown.text);
    const fulfilled = await act(sam, 'SalesOrder__c', order.id, 'fulfill');
    assert.deepEqual([fulfilled.status, fulfilled.body.details.reason], [409, 'guard'], fulfilled.text);
    const path = `/data/SalesOrder__c/${order.id}`;
    const gone = await sam.delete(path, { etag: await etagOf(sam, path) });
    assert.equal(gone.body.code, 'OBJECT_PERMISSION_DENIED');
    const back = await act(mia, 'SalesOrder__c', order.id, 'reject', {
      comment: 'The lines are not those I approved.',
    });
    assert.deepEqual([back.body.toState, back.body.record.ApprovedAmount__c], ['draft', null], back.text);
    await act(sam, 'SalesOrder__c', order.id, 'submit');
    await act(mia, 'SalesOrder__c', order.id, 'approve');
    assert.equal((await act(sam, 'SalesOrder__c', order.id, 'fulfill')).status, 201);
  });

  it('computes totals of lines, and sends an invoice with the due date of its terms', async () => {
    const { sam } = people;
    const { id } = await made(sam, 'Invoice__c', { AccountId__c: account, Amount__c: 100, PaymentTerms__c: 'net14' });
    const typed = await sam.post('/data/InvoiceLine__c', { InvoiceId__c: id, ...line(2), NetAmount__c: 90 });
    assert.deepEqual(
      [typed.status, typed.body.errors.map(({ code, pointer }: Anything) => [code, pointer])],
      [422, [['FIELD_READ_ONLY', '/NetAmount__c']]],
      typed.text,
    );
    const { NetAmount__c, TaxAmount__c } = await made(sam, 'InvoiceLine__c', { InvoiceId__c: id, ...line(2) });
    assert.deepEqual([NetAmount__c, TaxAmount__c], [100, 19]);
    const { record } = (await act(sam, 'Invoice__c', id, 'send')).body;
    assert.equal(Date.parse(record.DueDate__c) - Date.parse(record.IssueDate__c), 14 * 86_400_000);
    assert.equal(record.SentAmount__c, 119);
  });

  it('keeps sent invoices unchanged: no user changes or deletes them, and lines do not change the amount due', async () => {
    const { sam, fay } = people;
    const id = await sentInvoice();
    for (const who of [sam, fay]) {
      assert.deepEqual(refusedBy(await patch(who, 'Invoice__c', id, { Amount__c: 5 })), ['Invoice__c.SentStays']);
      const path = `/data/Invoice__c/${id}`;
      const gone = await who.delete(path, { etag: await etagOf(who, path) });
      assert.equal(gone.body.code, 'OBJECT_PERMISSION_DENIED');
    }
    assert.equal((await patch(fay, 'Invoice__c', id, { DueDate__c: '2099-01-31' })).status, 200);
    await made(sam, 'InvoiceLine__c', { InvoiceId__c: id, ...line(1) });
    assert.deepEqual(await figures(id), ['sent', 119, 0, 0, 119]);
  });

  it('credits instead of changing, and books payments permanently', async () => {
    const { sam, fay } = people;
    const id = await sentInvoice();
    const credit = { InvoiceId__c: id, Amount__c: 11.9, TaxAmount__c: 1.9, Reason__c: 'damaged' };
    assert.equal((await sam.post('/data/CreditNote__c', credit)).body.code, 'OBJECT_PERMISSION_DENIED');
    await made(fay, 'CreditNote__c', credit);
    const today = new Date().toISOString().slice(0, 10);
    const longAgo = { InvoiceId__c: id, Amount__c: 1, ReceivedOn__c: '2020-01-31' };
    assert.deepEqual(refusedBy(await fay.post('/data/Payment__c', longAgo)), ['Payment__c.PeriodOpen']);
    const payment = await made(fay, 'Payment__c', { InvoiceId__c: id, Amount__c: 107.1, ReceivedOn__c: today });
    assert.deepEqual(await figures(id), ['sent', 119, 107.1, 11.9, 0]);
    assert.equal((await act(sam, 'Invoice__c', id, 'pay')).body.code, 'TRANSITION_NOT_ALLOWED');
    assert.equal((await act(fay, 'Invoice__c', id, 'pay')).body.toState, 'paid');

    assert.deepEqual(refusedBy(await patch(fay, 'Payment__c', payment.id, { Amount__c: 1 })), [
      'Payment__c.BookedStays',
    ]);
    assert.equal((await patch(fay, 'Payment__c', payment.id, { Status__c: 'returned' })).status, 200);
    assert.deepEqual(await figures(id), ['paid', 119, 0, 11.9, 107.1]);
    assert.equal((await patch(fay, 'Invoice__c', id, { Notes__c: 'Direct debit returned.' })).status, 200);
    const reopened = await act(fay, 'Invoice__c', id, 'reopen');
    assert.deepEqual([reopened.body.toState, reopened.body.record.PaidOn__c], ['sent', null], reopened.text);
  });

  it('cancels a sent invoice with a credit note over the remaining amount, and discards a draft without', async () => {
    const { sam, mia, fay } = people;
    const id = await sentInvoice();
    await made(fay, 'CreditNote__c', { InvoiceId__c: id, Amount__c: 11.9, TaxAmount__c: 1.9, Reason__c: 'price' });
    const canceled = await act(mia, 'Invoice__c', id, 'cancel', { comment: 'Wrong customer.' });
    assert.equal(canceled.status, 201, canceled.text);
    const note = (await sam.get(`/data/CreditNote__c/${canceled.body.sideEffects[0].id}`)).body;
    assert.deepEqual([note.Amount__c, note.TaxAmount__c, note.Reason__c], [107.1, 17.1, 'canceled']);
    assert.deepEqual(await figures(id), ['canceled', 119, 0, 119, 0]);
    const draft = await made(sam, 'Invoice__c', { AccountId__c: account, Amount__c: 5 });
    assert.equal((await act(sam, 'Invoice__c', draft.id, 'discard')).body.toState, 'canceled');
  });

  it("lets accounting work on others' payments and sent invoices by rules, but not on their drafts", async () => {
    const { sam, fay } = people;
    const draft = await made(sam, 'Invoice__c', { AccountId__c: account, Amount__c: 5 });
    assert.equal((await patch(fay, 'Invoice__c', draft.id, { Notes__c: 'x' })).body.code, 'RECORD_ACCESS_DENIED');
    const sample = (await fay.get('/data/Payment__c?take=1&orderBy=createdAt')).body.records[0];
    for (const [object, id, rule] of [
      ['Payment__c', sample.id, 'Payment__c.PaymentsOfSales'],
      ['Invoice__c', await sentInvoice(), 'Invoice__c.SentInvoices'],
    ]) {
      const { body } = await fay.post(`/data/${object}/${id}/access/explain`, { operation: 'update' });
      const sharing = body.steps.find((step: Anything) => step.layer === 'sharing');
      assert.deepEqual([body.allowed, sharing.grantedBy], [true, [{ kind: 'sharingRule', apiName: rule }]]);
    }
  });
});
