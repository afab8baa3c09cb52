/** Records over HTTP: each operation works, malformed, forbidden, from another tenant. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

describe('records over HTTP', () => {
  let platform: TestPlatform;
  let sam: Api;
  let mia: Api;
  let eve: Api;

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    const sign = async (user: string, scope?: string): Promise<Api> =>
      api(platform.baseUrl, await tokenFor(platform.baseUrl, user, scope));
    [sam, mia, eve] = [await sign('sam'), await sign('mia'), await sign('eve')];
  });
  after(() => platform?.stop());

  const account = async (user = sam, more: Record<string, unknown> = {}) => {
    const reply = await user.post('/data/Account', { name: 'Test GmbH', ...more });
    assert.equal(reply.status, 201, reply.text);
    return reply;
  };

  describe('POST /data/{objectApiName}', () => {
    it('creates a record and returns its location', async () => {
      const reply = await account(sam, { city: 'Köln', employees: 12 });
      assert.equal(reply.headers.get('etag'), '"1"');
      assert.equal(reply.headers.get('location'), `/api/v1/data/Account/${reply.body.id}`);
      assert.equal(reply.body.city, 'Köln');
      const read = await sam.get(`/data/Account/${reply.body.id}`);
      assert.equal(read.text, reply.text);
    });

    it('answers 400 to a body that is not a record', async () => {
      for (const body of ['[1]', '5', '"x"', 'null', '{"name":', '{"name":"a","name":"b"}', '{"name":"\\ud800"}', '']) {
        const reply = await sam.post('/data/Account', body);
        assert.equal(reply.status, 400, body);
        assert.match(reply.body.code, /^(REQUEST_MALFORMED|BODY_REQUIRED|PARAMETER_INVALID)$/);
      }
      const deep = `{"name":"x","description":${'['.repeat(40)}${']'.repeat(40)}}`;
      assert.equal((await sam.post('/data/Account', deep)).body.code, 'REQUEST_MALFORMED');
      assert.equal((await sam.post('/data/Account', { name: 'x'.repeat(1_100_000) })).status, 413);
      assert.equal(
        (await sam.post('/data/Account', { name: 'x' }, { idempotencyKey: null })).body.code,
        'IDEMPOTENCY_KEY_REQUIRED',
      );
      assert.equal(
        (await sam.post('/data/Account', { name: 'x' }, { idempotencyKey: 'short' })).body.code,
        'IDEMPOTENCY_KEY_INVALID',
      );
      assert.equal((await sam.post('/data/Account?checkonly=1', { name: 'x' })).body.code, 'PARAMETER_UNKNOWN');
    });

    it('answers 422 with every violation and its pointer', async () => {
      const reply = await sam.post('/data/Account', {
        name: ' ',
        'no/such~field': 1,
        email: 'x',
        employees: 1.5,
        createdAt: null,
      });
      assert.equal(reply.status, 422);
      assert.equal(reply.body.code, 'VALIDATION_FAILED');
      assert.equal(reply.body.requestId, reply.headers.get('x-request-id'));
      assert.deepEqual(
        reply.body.errors.map((item: { pointer: string; code: string }) => `${item.pointer} ${item.code}`).sort(),
        [
          '/createdAt FIELD_READ_ONLY',
          '/email FIELD_FORMAT_INVALID',
          '/employees FIELD_TYPE_INVALID',
          '/name FIELD_REQUIRED',
          '/no~1such~0field FIELD_UNKNOWN',
        ],
      );
    });

    it('answers 403 without the scope or the permission, and identically for hidden and unknown fields', async () => {
      const reader = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'data:read'));
      assert.equal((await reader.post('/data/Account', { name: 'x' })).body.code, 'SCOPE_INSUFFICIENT');
      const denied = await sam.post('/data/Payment__c', {});
      assert.equal(denied.status, 403);
      assert.equal(denied.body.code, 'OBJECT_PERMISSION_DENIED');
      assert.equal(denied.body.details.operation, 'create');
      const field = await sam.post('/data/Account', { name: 'x', discountPercent: 5 });
      assert.equal(field.body.code, 'FIELD_PERMISSION_DENIED');
      assert.equal(field.body.errors[0].pointer, '/discountPercent');
      const [hidden, unknown] = [
        await sam.post('/data/Account', { name: 'x', creditLimit: 5 }),
        await sam.post('/data/Account', { name: 'x', creditLimiX: 5 }),
      ];
      assert.equal(hidden.status, 422);
      const shape = ({ body }: typeof hidden) => ({
        ...body,
        requestId: '',
        errors: body.errors.map((e: object) => ({ ...e, pointer: '', field: '' })),
      });
      assert.deepEqual(shape(hidden), shape(unknown));
    });

    it('repeats the response for a client that was disconnected before it received it', async () => {
      const [key, name] = [`cut-${randomUUID()}`, `Cut ${randomUUID()}`];
      const { hostname, port } = new URL(platform.baseUrl);
      const socket = connect(Number(port), hostname).pause();
      const body = JSON.stringify({ name });
      // The response is queued behind others on its connection, which is not read.
      socket.write(
        'GET /api/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(20) +
          `POST /api/v1/data/Account HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await tokenFor(platform.baseUrl, 'sam')}\r\n` +
          `Idempotency-Key: ${key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      const filters = { logic: 'and', conditions: [{ id: 'c', field: 'name', operator: 'eq', value: name }] };
      const found = async (): Promise<{ id: string }[]> =>
        (await sam.get(`/data/Account?filters=${encodeURIComponent(JSON.stringify(filters))}`)).body.records;
      while ((await found()).length === 0);
      assert.equal(socket.bytesRead, 0);
      socket.resetAndDestroy();
      const again = await sam.post('/data/Account', body, { idempotencyKey: key });
      assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [201, 'true']);
      assert.deepEqual(
        (await found()).map(({ id }) => id),
        [again.body.id],
      );
    });

    it('creates one record per idempotency key', async () => {
      const key = `order-${randomUUID()}`;
      const first = await sam.post('/data/Account', { name: 'Once' }, { idempotencyKey: key });
      const again = await sam.post('/data/Account', ' { "name" : "Once" } ', { idempotencyKey: key });
      assert.equal(again.text, first.text);
      assert.equal(again.headers.get('idempotency-replayed'), 'true');
      const other = await sam.post('/data/Account', { name: 'Twice' }, { idempotencyKey: key });
      assert.equal(other.status, 409);
      assert.equal(other.body.code, 'IDEMPOTENCY_KEY_REUSED');
      assert.equal(other.body.details.firstRequestId, first.headers.get('x-request-id'));
      assert.equal(
        (await sam.delete(`/data/Account/${first.body.id}`, { etag: '"1"', idempotencyKey: key })).body.code,
        'IDEMPOTENCY_KEY_REUSED',
      );
    });
  });

  describe('GET /data/{objectApiName}/{id}', () => {
    it('reads a record, or answers 304', async () => {
      const { body } = await account();
      const read = await sam.get(`/data/Account/${body.id}?fields=id,name`);
      assert.deepEqual(read.body, { id: body.id, name: 'Test GmbH' });
      const unchanged = await sam.get(`/data/Account/${body.id}`, { headers: { 'if-none-match': '"1"' } });
      assert.equal(unchanged.status, 304);
      const head = await sam.send('HEAD', `/data/Account/${body.id}`);
      assert.equal(head.status, 200);
      assert.equal(head.headers.get('etag'), '"1"');
    });

    it('answers 404 identically for every cause', async () => {
      const { body } = await account();
      const answers = [
        await sam.get(`/data/Account/${randomUUID()}`),
        await sam.get(`/data/Contact/${body.id}`),
        await eve.get(`/data/Account/${body.id}`),
      ];
      for (const answer of answers) {
        assert.equal(answer.status, 404);
        assert.deepEqual({ ...answer.body, requestId: '' }, { ...answers[0]!.body, requestId: '' });
      }
    });

    it('answers 400 to a malformed id, for every object and user', async () => {
      for (const answer of [
        await sam.get('/data/Account/nonsense'),
        await eve.get('/data/Account/nonsense'),
        await sam.get('/data/Nope__c/nonsense'),
      ]) {
        assert.equal(answer.status, 400, answer.text);
        assert.equal(answer.body.errors[0].pointer, 'path:id');
        assert.equal(answer.body.message, 'id must be a UUID.');
      }
    });

    it('refuses unknown and repeated parameters', async () => {
      const { body } = await account();
      assert.equal((await sam.get(`/data/Account/${body.id}?include=x`)).body.code, 'PARAMETER_UNKNOWN');
      assert.equal((await sam.get(`/data/Account/${body.id}?expand=x`)).body.code, 'PARAMETER_INVALID');
      assert.equal((await sam.get(`/data/Account/${body.id}?fields=id&fields=name`)).body.code, 'PARAMETER_INVALID');
      assert.equal((await sam.get(`/data/Account/${body.id}?fields=creditLimit`)).body.code, 'PARAMETER_INVALID');
    });

    it('accepts no * for all fields, also after reading with all of them', async () => {
      const { body } = await account();
      for (const path of [`/data/Account/${body.id}?fields=*`, `/data/Account/${body.id}`]) await sam.get(path);
      assert.equal((await sam.get(`/data/Account/${body.id}?fields=*`)).body.code, 'PARAMETER_INVALID');
    });
  });

  describe('PATCH /data/{objectApiName}/{id}', () => {
    it('changes a record whose version the caller has read', async () => {
      const { body } = await account(mia, { discountPercent: 10 });
      const path = `/data/Account/${body.id}`;
      const reply = await mia.patch(path, { discountPercent: '12.5', city: 'Bonn' }, { etag: '"1"' });
      assert.equal(reply.status, 200, reply.text);
      assert.equal(reply.headers.get('etag'), '"2"');
      assert.match(reply.text, /"discountPercent":12\.50[,}]/);
      const merge = await mia.patch(
        path,
        { city: null },
        { etag: '"2"', headers: { 'content-type': 'application/merge-patch+json' } },
      );
      assert.equal(merge.body.city, null);
      const exact = await mia.get(path, { headers: { accept: 'application/json;IEEE754Compatible=true' } });
      assert.equal(exact.body.discountPercent, '12.50');
    });

    it('answers 412 with the current ETag, without a way to force', async () => {
      const { body } = await account();
      const path = `/data/Account/${body.id}`;
      await sam.patch(path, { city: 'A' }, { etag: '"1"' });
      const late = await sam.patch(path, { city: 'B' }, { etag: '"1"' });
      assert.equal(late.status, 412);
      assert.equal(late.body.code, 'ETAG_MISMATCH');
      assert.deepEqual(late.body.details, { currentETag: '"2"' });
      assert.equal((await sam.patch(path, { city: 'B' })).body.code, 'IF_MATCH_REQUIRED');
      for (const etag of ['*', 'W/"2"', 'x'])
        assert.equal((await sam.patch(path, { city: 'B' }, { etag })).body.code, 'IF_MATCH_INVALID');
    });

    it('keeps the ETag when nothing differs', async () => {
      const { body } = await account(sam, { city: 'Ulm' });
      const reply = await sam.patch(`/data/Account/${body.id}`, { city: 'Ulm' }, { etag: '"1"' });
      assert.equal(reply.status, 200);
      assert.equal(reply.headers.get('etag'), '"1"');
    });

    it('is denied without permission and to other tenants', async () => {
      const { body } = await account();
      const path = `/data/Account/${body.id}`;
      assert.equal((await eve.patch(path, { city: 'X' }, { etag: '"1"' })).body.code, 'RECORD_NOT_FOUND');
      assert.equal(
        (await sam.patch(path, { discountPercent: 9 }, { etag: '"1"' })).body.code,
        'FIELD_PERMISSION_DENIED',
      );
      assert.equal((await sam.patch(path, {}, { etag: '"1"' })).body.errors[0].code, 'FIELD_REQUIRED');
      const product = (await sam.get('/data/Product?take=1&includeEtag=true')).body.records[0];
      const denied = await sam.patch(`/data/Product/${product.id}`, { name: 'X' }, { etag: product._etag });
      assert.equal(denied.body.code, 'OBJECT_PERMISSION_DENIED');
    });
  });

  describe('DELETE /data/{objectApiName}/{id}', () => {
    it('deletes with the current ETag, and replays the result', async () => {
      const { body } = await account(mia);
      const path = `/data/Account/${body.id}`;
      const key = randomUUID();
      assert.equal((await mia.delete(path)).body.code, 'IF_MATCH_REQUIRED');
      assert.equal((await mia.delete(path, { etag: '"5"' })).status, 412);
      const reply = await mia.delete(path, { etag: '"1"', idempotencyKey: key });
      assert.equal(reply.status, 200);
      assert.equal(reply.body.deleted, true);
      assert.equal((await mia.delete(path, { etag: '"1"', idempotencyKey: key })).text, reply.text);
      assert.equal((await mia.delete(path, { etag: '"1"' })).status, 404);
      assert.equal((await mia.get(path)).status, 404);
    });

    it('deletes the lines of an order with it', async () => {
      const line = (await mia.get('/data/SalesOrderLine__c?take=1')).body.records[0];
      const path = `/data/SalesOrder__c/${line.SalesOrderId__c}`;
      const order = await mia.get(path);
      const reply = await mia.delete(path, { etag: order.headers.get('etag')! });
      if (reply.status === 409) assert.equal(reply.body.code, 'DELETE_RESTRICTED');
      else {
        assert.equal(reply.status, 200, reply.text);
        assert.ok(
          reply.body.cascaded.some((item: { objectApiName: string }) => item.objectApiName === 'SalesOrderLine__c'),
        );
        assert.equal((await mia.get(`/data/SalesOrderLine__c/${line.id}`)).status, 404);
      }
    });

    it('is refused while invoices depend on the account', async () => {
      const invoice = (await mia.get('/data/Invoice__c?take=1&fields=AccountId__c')).body.records[0];
      const path = `/data/Account/${invoice.AccountId__c}`;
      const etag = (await mia.get(path)).headers.get('etag')!;
      const reply = await mia.delete(path, { etag });
      assert.equal(reply.status, 409);
      assert.equal(reply.body.code, 'DELETE_RESTRICTED');
      assert.ok(reply.body.details.dependents.some((item: { count: number }) => item.count > 0));
    });

    it('is denied without permission and to other tenants', async () => {
      const { body } = await account();
      const path = `/data/Account/${body.id}`;
      assert.equal((await sam.delete(path, { etag: '"1"' })).body.code, 'OBJECT_PERMISSION_DENIED');
      assert.equal((await eve.delete(path, { etag: '"1"' })).body.code, 'RECORD_NOT_FOUND');
      const writer = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'mia', 'data:read data:write'));
      assert.equal((await writer.delete(path, { etag: '"1"' })).body.code, 'SCOPE_INSUFFICIENT');
    });
  });

  describe('GET /data/{objectApiName} and POST …/query', () => {
    it('answer a page with total, cursor and effective size', async () => {
      const filters = encodeURIComponent(
        JSON.stringify({ logic: 'and', conditions: [{ id: 'c1', field: 'TotalAmount__c', operator: 'gt', value: 0 }] }),
      );
      const sort = encodeURIComponent('[{"id":"createdAt","desc":true}]');
      const first = await mia.get(`/data/SalesOrder__c?take=2&includeTotal=true&sort=${sort}`);
      assert.equal(first.status, 200, first.text);
      assert.equal(first.body.records.length, 2);
      assert.ok(first.body.total > 2);
      const second = await mia.get(
        `/data/SalesOrder__c?take=2&includeTotal=true&sort=${sort}&cursor=${first.body.nextCursor}`,
      );
      assert.notEqual(second.body.records[0].id, first.body.records[0].id);
      const mismatch = await mia.get(
        `/data/SalesOrder__c?take=3&includeTotal=true&sort=${sort}&cursor=${first.body.nextCursor}`,
      );
      assert.equal(mismatch.body.code, 'CURSOR_QUERY_MISMATCH');
      assert.equal(
        (await sam.get(`/data/SalesOrder__c?take=2&includeTotal=true&sort=${sort}&cursor=${first.body.nextCursor}`))
          .body.code,
        'CURSOR_INVALID',
      );
      assert.equal((await mia.get('/data/Account?take=5000')).headers.get('x-effective-take'), '200');
      const filtered = await mia.get(`/data/SalesOrder__c?take=1&filters=${filters}`);
      assert.ok([200, 400].includes(filtered.status));
    });

    it('accept the same query as a body, and refuse faults in either', async () => {
      const query = { take: 3, where: { city: 'Berlin' }, sort: [{ id: 'name' }], includeTotal: true };
      const posted = await sam.post('/data/Account/query', query, { idempotencyKey: null });
      assert.equal(posted.status, 200, posted.text);
      const address = `where=${encodeURIComponent('{"city":"Berlin"}')}&sort=${encodeURIComponent('[{"id":"name"}]')}&take=3&includeTotal=true`;
      const listed = await sam.get(`/data/Account?${address}`);
      assert.deepEqual([listed.body.records, listed.body.total], [posted.body.records, posted.body.total]);
      for (const [search, code] of [
        ['take=0', 'PARAMETER_INVALID'],
        ['skip=10001', 'SKIP_TOO_DEEP'],
        ['where=%7B', 'PARAMETER_INVALID'],
        [`where=${encodeURIComponent('{"creditLimit":1}')}`, 'FILTER_FIELD_UNKNOWN'],
        [`where=${encodeURIComponent('{"nope":1}')}`, 'FILTER_FIELD_UNKNOWN'],
        [`sort=${encodeURIComponent('[{"id":"creditLimit"}]')}`, 'SORT_INVALID'],
        ['orderBy=name&sort=%5B%5D', 'PARAMETER_CONFLICT'],
        ['cursor=x&skip=1', 'CURSOR_WITH_SKIP'],
        ['cursor=x', 'CURSOR_INVALID'],
        ['nope=1', 'PARAMETER_UNKNOWN'],
      ] as const) {
        const reply = await sam.get(`/data/Account?${search}`);
        assert.equal(reply.status, 400, search);
        assert.equal(reply.body.code, code, search);
      }
      assert.equal((await sam.post('/data/Account/query', { nope: 1 })).body.code, 'BODY_PROPERTY_UNKNOWN');
    });

    it('show a tenant only its own records', async () => {
      const mine = await account(sam, { name: 'Only in demo' });
      const found = await eve.get(
        `/data/Account?where=${encodeURIComponent('{"name":"Only in demo"}')}&includeTotal=true`,
      );
      assert.deepEqual(found.body, { records: [], total: 0, nextCursor: null });
      assert.equal((await eve.get(`/data/Account/${mine.body.id}/transitions`)).status, 404);
    });
  });

  describe('GET /data/{objectApiName}/{id}/transitions', () => {
    it('is empty where no state model governs the record', async () => {
      const { body } = await account();
      const reply = await sam.get(`/data/Account/${body.id}/transitions`);
      assert.equal(reply.status, 200);
      assert.deepEqual(reply.body, { records: [], nextCursor: null, currentState: null, etag: '"1"' });
      assert.equal((await sam.get(`/data/Account/${randomUUID()}/transitions`)).body.code, 'RECORD_NOT_FOUND');
      const reader = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam', 'data:read'));
      assert.equal((await reader.get(`/data/Account/${body.id}/transitions`)).body.code, 'SCOPE_INSUFFICIENT');
    });
  });

  it('never answers 500 to text that a caller controls', async () => {
    for (const text of [
      `'; DROP TABLE x; --`,
      '"',
      '\\',
      '%00',
      '%ff',
      '$1',
      '../..',
      '{{x}}',
      '%27%22',
      'a'.repeat(300),
    ]) {
      const part = encodeURIComponent(text);
      for (const reply of [
        await sam.get(`/data/${part}`),
        await sam.get(`/data/Account/${part}`),
        await sam.get(`/objects/${part}/describe`),
        await sam.get(`/data/Account?search=${part}`),
        await sam.get(`/data/Account?orderBy=${part}`),
        await sam.get(`/data/Account?fields=${part}`),
        await sam.get(`/data/Account?cursor=${part}`),
        await sam.get(`/data/Account?where=${encodeURIComponent(JSON.stringify({ name: text, [text]: text }))}`),
        await sam.post('/data/Account', { name: text, [text]: text }),
        await sam.patch(`/data/Account/${part}`, { name: text }, { etag: '"1"' }),
        await sam.delete(`/data/Account/${part}`, { etag: '"1"' }),
      ])
        assert.ok(reply.status < 500, `${reply.status} ${reply.text}`);
    }
  });
});
