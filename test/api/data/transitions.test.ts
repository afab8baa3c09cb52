/** The lifecycle of an order and its invoice in the demo tenant, over HTTP. */
import assert from 'node:assert/strict';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

describe('transitions over HTTP', () => {
  let platform: TestPlatform;
  let sam: Api;
  let mia: Api;
  let ada: Api;
  let account: string;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    mia = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia'));
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    account = (await sam.post('/data/Account', { name: 'Order Test GmbH' })).body.id;
  });
  after(() => platform?.stop());

  /** Executes with the current ETag. */
  const act = async (who: Api, object: string, id: string, key: string, body: object = {}): Promise<Anything> => {
    const { headers } = await who.get(`/data/${object}/${id}`);
    return who.post(`/data/${object}/${id}/transitions/${key}`, body, { etag: headers.get('etag')! });
  };
  const anOrder = async (): Promise<string> => {
    const made = await sam.post('/data/SalesOrder__c', { AccountId__c: account });
    assert.equal(made.status, 201, made.text);
    assert.equal(made.body.Status__c, 'draft');
    const empty = await act(sam, 'SalesOrder__c', made.body.id, 'submit');
    assert.deepEqual([empty.body.code, empty.body.details?.reason], ['STATE_CONFLICT', 'guard'], empty.text);
    const line = await ada.get('/data/Product?take=1');
    const { status, text } = await sam.post('/data/SalesOrderLine__c', {
      SalesOrderId__c: made.body.id,
      ProductId__c: line.body.records[0].id,
      Position__c: 1,
      Quantity__c: 2,
      UnitPrice__c: 10,
      TaxRate__c: 19,
    });
    assert.equal(status, 201, text);
    return made.body.id;
  };

  it('lead an order from draft to closed, and draft its invoice on the way', async () => {
    const id = await anOrder();
    const list = await sam.get(`/data/SalesOrder__c/${id}/transitions`);
    assert.equal(list.body.currentState, 'draft');
    assert.deepEqual(
      list.body.records.map((item: Anything) => [item.transitionKey, item.available, item.unavailableReasons[0]?.code]),
      [
        ['submit', true, undefined],
        ['approve', false, 'TRANSITION_NOT_ALLOWED'],
        ['reject', false, 'TRANSITION_NOT_ALLOWED'],
        ['fulfill', false, 'STATE_CONFLICT'],
        ['close', false, 'TRANSITION_NOT_ALLOWED'],
        ['cancel', true, undefined],
      ],
    );
    assert.equal((await act(sam, 'SalesOrder__c', id, 'submit')).body.toState, 'submitted');
    assert.equal((await act(sam, 'SalesOrder__c', id, 'approve')).body.code, 'TRANSITION_NOT_ALLOWED');
    const approved = await act(mia, 'SalesOrder__c', id, 'approve');
    assert.deepEqual([approved.status, approved.body.record.Status__c], [201, 'approved'], approved.text);
    const fulfilled = await act(sam, 'SalesOrder__c', id, 'fulfill', { input: { shippedAt: '2026-11-20T09:00:00Z' } });
    assert.equal(fulfilled.status, 201, fulfilled.text);
    assert.match(fulfilled.body.record.ShippedAt__c, /^2026-11-20T09:00:00/);
    const created = fulfilled.body.sideEffects.find((item: Anything) => item.kind === 'create');
    const invoice = await sam.get(`/data/Invoice__c/${created.id}`);
    assert.deepEqual(
      [invoice.body.SalesOrderId__c, invoice.body.Amount__c, invoice.body.Status__c, invoice.body.AccountId__c],
      [id, 20, 'draft', account],
    );
    assert.equal((await act(mia, 'SalesOrder__c', id, 'close')).body.toState, 'closed');
    const over = await act(sam, 'SalesOrder__c', id, 'cancel', { input: { reason: 'other' } });
    assert.deepEqual([over.status, over.body.code, over.body.details.allowed], [409, 'STATE_CONFLICT', []]);
    const patch = await sam.patch(`/data/SalesOrder__c/${id}`, { Status__c: 'draft' }, { etag: '"1"' });
    assert.ok([412, 422].includes(patch.status));
  });

  it('send, remind of and cancel an invoice, each for permitted users', async () => {
    const made = await sam.post('/data/Invoice__c', {
      AccountId__c: account,
      Amount__c: 100,
      IssueDate__c: '2026-01-01',
      DueDate__c: '2026-01-31',
    });
    const { id } = made.body;
    const unlined = await act(sam, 'Invoice__c', id, 'send');
    assert.deepEqual([unlined.status, unlined.body.details.allowed], [409, ['discard']], unlined.text);
    const line = await sam.post('/data/InvoiceLine__c', {
      InvoiceId__c: id,
      Quantity__c: 4,
      UnitPrice__c: 25,
      TaxRate__c: 19,
    });
    assert.equal(line.status, 201, line.text);
    const early = await act(sam, 'Invoice__c', id, 'SendReminder');
    assert.deepEqual([early.status, early.body.details.reason], [409, 'guard']);
    const sent = await act(sam, 'Invoice__c', id, 'send');
    assert.deepEqual(
      [sent.status, sent.body.toState, sent.body.record.DueDate__c],
      [201, 'sent', '2026-01-31'],
      sent.text,
    );
    for (const level of [1, 2, 3])
      assert.equal((await act(sam, 'Invoice__c', id, 'SendReminder')).body.record.DunningLevel__c, level);
    assert.equal((await act(sam, 'Invoice__c', id, 'SendReminder')).body.code, 'STATE_CONFLICT');
    assert.equal((await act(sam, 'Invoice__c', id, 'cancel', { comment: 'x' })).body.code, 'TRANSITION_NOT_ALLOWED');
    const silent = await act(mia, 'Invoice__c', id, 'cancel');
    assert.deepEqual([silent.status, silent.body.errors[0].pointer], [422, '/comment']);
    assert.equal((await act(ada, 'Invoice__c', id, 'cancel', { comment: 'Sent twice.' })).body.toState, 'canceled');
  });

  it('are refused for malformed requests before anything is evaluated', async () => {
    const id = await anOrder();
    const path = `/data/SalesOrder__c/${id}/transitions/submit`;
    const codes = async (body: object, options: object = { etag: '"1"' }) =>
      (await sam.post(path, body, options)).body.code;
    assert.equal(await codes({}, {}), 'IF_MATCH_REQUIRED');
    assert.equal(await codes({ inputs: {} }), 'BODY_PROPERTY_UNKNOWN');
    assert.equal(await codes({ comment: 'x'.repeat(2_001) }), 'PARAMETER_INVALID');
    assert.equal(await codes({ input: 'x' }), 'PARAMETER_INVALID');
    assert.equal(await codes({ input: { x: 'x'.repeat(70_000) } }), 'REQUEST_TOO_LARGE');
    const reader = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'data:read actions:read'));
    assert.equal((await reader.post(path, {}, { etag: '"1"' })).body.code, 'SCOPE_INSUFFICIENT');
    const listed = await reader.get(`/data/SalesOrder__c/${id}/transitions`);
    assert.equal(listed.body.records[0].unavailableReasons[0].code, 'SCOPE_INSUFFICIENT');
  });

  it('admit one of two users, and tell the other the reason', async () => {
    const id = await anOrder();
    await act(sam, 'SalesOrder__c', id, 'submit');
    const etag = (await mia.get(`/data/SalesOrder__c/${id}`)).headers.get('etag')!;
    const replies = await Promise.all([
      mia.post(`/data/SalesOrder__c/${id}/transitions/approve`, {}, { etag }),
      mia.post(`/data/SalesOrder__c/${id}/transitions/reject`, { comment: 'Too cheap.' }, { etag }),
      sam.post(`/data/SalesOrder__c/${id}/transitions/cancel`, { input: { reason: 'other' } }, { etag }),
    ]);
    assert.deepEqual(replies.map((reply) => reply.status).sort(), [201, 412, 412]);
  });
});
