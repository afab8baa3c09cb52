/** Several operations in one request: one transaction or one each, with references between them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { fieldFile } from '../../support/metadata-tenant.ts';
import { startPlatform } from '../../support/platform.ts';
import { until } from '../../support/until.ts';
import { type Deals, startDeals } from './deals.ts';

type Part = Readonly<Record<string, unknown>>;

describe('composite requests', () => {
  let deals: Deals;
  let ada: Api;
  let sam: Api;
  let sue: Api;
  before(async function () {
    this.timeout(120_000);
    deals = await startDeals();
    ({ ada, sam, sue } = deals.as);
    const fields = ['Deal__c.Stage__c', 'Deal__c.Amount__c', 'DealLine__c.Deal__c'];
    const rights = 'create: true\n    read: true\n    update: true\n    delete: true\n';
    await deals.deploy({
      ...fieldFile('Deal__c', 'Amount__c', 'fieldType: decimal\nprecision: 10\nscale: 2'),
      'permissionSets/Deals.yaml': `type: PermissionSet\napiName: Deals\nlabel: Deals\nobjects:\n${['Deal__c', 'DealLine__c'].map((name) => `  ${name}:\n    ${rights}`).join('')}fields:\n${fields.map((name) => `  ${name}:\n    read: true\n    edit: true\n`).join('')}`,
    });
  });
  after(() => deals?.platform.stop());

  const send = (who: Api, requests: readonly Part[], more: object = {}, idempotencyKey?: string): Promise<Answer> =>
    who.post('/composite', { ...more, requests }, idempotencyKey === undefined ? {} : { idempotencyKey });
  const create = (referenceId: string, body: object, path = '/data/Deal__c'): Part => ({
    referenceId,
    method: 'POST',
    path,
    body,
  });
  const read = (referenceId: string, path: string, query?: object): Part => ({
    referenceId,
    method: 'GET',
    path,
    ...(query ? { query } : {}),
  });
  const statuses = ({ body }: Answer): number[] =>
    (body.results ?? body.details.results).map((one: Part) => one['status']);
  const named = async (name: string): Promise<number> =>
    (await ada.post('/data/Deal__c/query', { where: { name }, includeTotal: true })).body.total;
  const refused = (reply: Answer, status: number, code: string): void =>
    assert.deepEqual([reply.status, reply.body.code], [status, code], reply.text);

  it('store everything in one transaction, and later parts use what earlier ones made', async () => {
    const name = `Chain ${randomUUID()}`;
    const reply = await send(sam, [
      create('deal', { name, Amount__c: 10.5 }),
      {
        referenceId: 'change',
        method: 'PATCH',
        path: '/data/Deal__c/@{deal.id}',
        headers: { ifMatch: '"1"' },
        body: { name: '@{deal.name} of @{deal.Amount__c}', Amount__c: '@{deal.Amount__c}' },
      },
      read('seen', '/data/Deal__c/@{change.id}', { fields: ['name', 'Amount__c'] }),
      read('list', '/data/Deal__c', { where: { name: '@{seen.name}' } }),
      {
        referenceId: 'query',
        method: 'POST',
        path: '/data/Deal__c/query',
        body: { where: { name: '@{list.records.0.name}' } },
      },
    ]);
    assert.equal(reply.status, 200, reply.text);
    const [deal, change, seen, list, query] = reply.body.results;
    assert.deepEqual(statuses(reply), [201, 200, 200, 200, 200], reply.text);
    assert.deepEqual([reply.body.committed, reply.body.allOrNone], [true, true]);
    assert.deepEqual(Object.keys(deal.headers).sort(), ['etag', 'location']);
    assert.equal(seen.body.name, `${name} of 10.5`);
    assert.equal(change.body.id, deal.body.id);
    assert.deepEqual([list.body.records.length, query.body.records.length], [1, 1]);
    const stored = await sam.get(`/data/Deal__c/${deal.body.id}`);
    assert.equal(stored.headers.get('etag'), change.headers.etag);
  });

  it('leave nothing when a part fails, and say which', async () => {
    const name = `Undone ${randomUUID()}`;
    const reply = await send(sam, [create('a', { name }), create('b', { name, Nope__c: 1 }), create('c', { name })]);
    refused(reply, 422, 'COMPOSITE_FAILED');
    assert.match(reply.body.message, /^The part b failed/);
    const { results } = reply.body.details;
    assert.deepEqual(
      results.map(({ referenceId, status, body }: Answer & Part) => [referenceId, status, body.code]),
      [
        ['a', 422, 'ROLLED_BACK'],
        ['b', 422, 'VALIDATION_FAILED'],
        ['c', 422, 'ROLLED_BACK'],
      ],
    );
    assert.equal(results[1].body.errors[0].pointer, '/Nope__c');
    assert.equal(await named(name), 0);
  });

  it('commit each part by itself without allOrNone', async () => {
    const name = `Apart ${randomUUID()}`;
    const reply = await send(
      sam,
      [
        create('a', { name }),
        create('b', { Nope__c: 1 }),
        create('c', { name: '@{a.name}' }),
        create('d', { name: '@{b.name}' }),
      ],
      { allOrNone: false },
    );
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual(statuses(reply), [201, 422, 201, 400]);
    assert.equal(reply.body.results[3].body.code, 'COMPOSITE_REFERENCE_INVALID');
    assert.equal(await named(name), 2);
  });

  for (const allOrNone of [true, false])
    it(`answer the same key with the same outcome, allOrNone ${allOrNone}`, async () => {
      const name = `Twice ${randomUUID()}`;
      const key = randomUUID();
      const first = await send(sam, [create('a', { name })], { allOrNone }, key);
      const second = await send(sam, [create('a', { name })], { allOrNone }, key);
      assert.equal(first.status, 200, first.text);
      assert.equal(second.text, first.text);
      assert.equal(second.headers.get('idempotency-replayed'), 'true');
      refused(await send(sam, [create('b', { name })], { allOrNone }, key), 409, 'IDEMPOTENCY_KEY_REUSED');
      assert.equal(await named(name), 1);
    });

  for (const allOrNone of [true, false])
    it(`answer what would happen with checkOnly, and leave nothing, allOrNone ${allOrNone}`, async () => {
      const name = `Tried ${randomUUID()}`;
      const good = [create('a', { name }), read('b', '/data/Deal__c/@{a.id}')];
      const key = randomUUID();
      const tried = await send(sam, good, { checkOnly: true, allOrNone }, key);
      assert.deepEqual([tried.status, tried.body.committed], [200, false], tried.text);
      assert.deepEqual(statuses(tried), [201, 200]);
      const bad = await send(sam, [...good, create('c', { Nope__c: 1 })], { checkOnly: true, allOrNone });
      assert.deepEqual(statuses(bad), allOrNone ? [422, 422, 422] : [201, 200, 422], bad.text);
      assert.deepEqual(['effects' in tried.body, 'effects' in bad.body], [true, !allOrNone]);
      assert.equal(await named(name), 0);
      const done = await send(sam, good, { allOrNone }, key);
      assert.deepEqual([done.status, done.body.committed], [200, true], done.text);
    });

  it('name everything that is wrong with their form at once', async () => {
    const reply = await send(sam, [
      create('a', { name: '@{later.id}' }),
      create('a', { name: '@{a.id}' }),
      read('later', '/data/Deal__c/not-an-id'),
      read('p', '/agent/runs'),
      read('q', '/data/Deal__c?take=1'),
      read('r', '/data/Deal__c', { takes: 1 }),
      { referenceId: 's', method: 'PATCH', path: '/data/@{later.id}/@{later.id}', body: {} },
      create('t', { name: '@{oops', deep: ['@{nobody.id}'] }),
      create('u', {}, '/data/Deal__c/check'),
      read('v', '/data/Deal__c', { expand: '@{later.name}(name)' }),
    ]);
    assert.equal(reply.status, 400, reply.text);
    assert.deepEqual(
      reply.body.errors.map(({ pointer, code }: Part) => `${pointer} ${code}`),
      [
        '/requests/1/referenceId PARAMETER_INVALID',
        '/requests/0/body/name COMPOSITE_REFERENCE_INVALID',
        '/requests/2/path PARAMETER_INVALID',
        '/requests/3/path PARAMETER_INVALID',
        '/requests/4/path PARAMETER_INVALID',
        '/requests/5/query/takes PARAMETER_UNKNOWN',
        '/requests/6/headers/ifMatch IF_MATCH_REQUIRED',
        '/requests/7/body/name COMPOSITE_REFERENCE_INVALID',
        '/requests/7/body/deep/0 COMPOSITE_REFERENCE_INVALID',
        '/requests/8/path PARAMETER_INVALID',
        '/requests/9/body COMPOSITE_REFERENCE_INVALID',
      ],
    );
    const many = Array.from({ length: 51 }, (_, index) => create(`p${index}`, { name: 'x' }));
    refused(await send(sam, many), 400, 'PARAMETER_INVALID');
    refused(await send(sam, []), 400, 'PARAMETER_INVALID');
  });

  it('take what is done to which object from the request alone', async () => {
    for (const path of ['/data/@{a.name}', '/data/%40%7Ba.name%7D', '/data/Deal__c/by/@{a.name}/x']) {
      const reply = await send(sam, [
        create('a', { name: 'Deal__c' }),
        { referenceId: 'b', method: path.includes('/by/') ? 'PUT' : 'POST', path, body: { name: 'x' } },
      ]);
      refused(reply, 400, 'COMPOSITE_REFERENCE_INVALID');
      assert.equal(reply.body.errors[0].pointer, '/requests/1/path');
    }
    const filters = [{ id: 'c', field: 'name', operator: '@{a.name}', value: { objectApiName: 'Account' } }];
    const hidden = await send(sam, [
      create('a', { name: 'in_related' }),
      {
        referenceId: 'b',
        method: 'POST',
        path: '/data/Deal__c/query',
        body: { filters: { logic: 'and', conditions: filters } },
      },
    ]);
    refused(hidden, 422, 'COMPOSITE_FAILED');
    assert.equal(hidden.body.details.results[1].body.code, 'COMPOSITE_REFERENCE_INVALID');
  });

  it('keep the text @{ when it is written @@{, and the type of a value that a reference is', async () => {
    const reply = await send(sam, [
      create('a', { name: 'say @@{x.y}', Amount__c: 12.25 }),
      create('b', { name: '@{a.name}', Amount__c: '@{a.Amount__c}' }),
    ]);
    assert.equal(reply.status, 200, reply.text);
    const [a, b] = reply.body.results;
    assert.equal(a.body.name, 'say @{x.y}');
    assert.deepEqual([b.body.name, b.body.Amount__c], [a.body.name, 12.25]);
  });

  it('bound what references expand to', async () => {
    const long = await send(sam, [
      create('a', { name: 'x'.repeat(80) }),
      create('b', { name: '@{a.name}'.repeat(101) }),
    ]);
    refused(long, 400, 'COMPOSITE_REFERENCE_INVALID');
  });

  it('show nothing of another tenant', async () => {
    const own = (await deals.deal(sam)).body.id;
    const answers: unknown[] = [];
    for (const id of [own, randomUUID()]) {
      const reply = await send(deals.as.eve, [read('a', `/data/Account/${id}`), read('b', `/data/Deal__c/${id}`)], {
        allOrNone: false,
      });
      assert.deepEqual(statuses(reply), [404, 404], reply.text);
      answers.push(reply.body);
    }
    assert.deepEqual(answers[0], answers[1]);
  });

  for (const allOrNone of [true, false])
    it(`read whatever can be read alone, but no change feed, allOrNone ${allOrNone}`, async () => {
      const record = `/data/Deal__c/${(await deals.deal(sam)).body.id}`;
      const reads = [
        ...['/objects', '/objects/Deal__c/describe', '/objects/Deal__c/schema.json'],
        ...['/data/Deal__c', record, `${record}/history`, `${record}/shares`, `${record}/transitions`],
      ].map((path, at) => read(`r${at}`, path));
      const explained = create('why', { operation: 'update' }, `${record}/access/explain`);
      const queried = create('query', { take: 1 }, '/data/Deal__c/query');
      const reply = await send(sam, [...reads, explained, queried], { allOrNone });
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual(new Set(statuses(reply)), new Set([200]), reply.text);
      refused(await send(sam, [read('feed', '/data/Deal__c/changes')], { allOrNone }), 400, 'PARAMETER_INVALID');
    });

  it('are in flight with what they cost', async () => {
    const { database } = deals.platform;
    const platform = await startPlatform({ database, env: { CONCURRENCY: '50', CONCURRENCY_COSTLY: '1' } });
    try {
      const there = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
      const lists = Array.from({ length: 5 }, (_, at) => read(`l${at}`, '/data/Account', { take: 50 }));
      const together = (requests: readonly Part[]): Promise<Answer[]> =>
        Promise.all(Array.from({ length: 8 }, () => send(there, requests, { allOrNone: false })));
      await until(async () => (await together(lists)).some(({ body }) => body.code === 'CONCURRENCY_LIMIT_EXCEEDED'));
      for (const { status, text } of await together(lists.slice(1))) assert.equal(status, 200, text);
    } finally {
      await platform.stop();
    }
  });

  it('need what each part needs alone: scope, permission, sight, ETag', async () => {
    const reader = api(deals.platform.baseUrl, await tokenFor(deals.platform.baseUrl, 'sam', 'data:read'));
    refused(await send(reader, [create('a', { name: 'x' })]), 403, 'SCOPE_INSUFFICIENT');
    const own = (await deals.deal(sam)).body.id;
    const codes = async (who: Api, part: Part): Promise<unknown[]> => {
      const alone = await who.send(String(part['method']), String(part['path']), part['body'], { etag: '"9"' });
      const reply = await send(who, [{ ...part, headers: { ifMatch: '"9"' } }]);
      assert.equal(reply.body.code, 'COMPOSITE_FAILED', reply.text);
      const [{ status, body }] = reply.body.details.results;
      assert.deepEqual([status, body.code, body.message], [alone.status, alone.body.code, alone.body.message]);
      return [status, body.code];
    };
    const change = { referenceId: 'a', method: 'PATCH', path: `/data/Deal__c/${own}`, body: { name: 'Mine' } };
    assert.deepEqual(await codes(sue, change), [404, 'RECORD_NOT_FOUND']);
    assert.deepEqual(await codes(sam, change), [412, 'ETAG_MISMATCH']);
    assert.deepEqual(await codes(sam, { ...change, path: `/data/Nothing__c/${own}` }), [404, 'OBJECT_NOT_FOUND']);
  });
});
