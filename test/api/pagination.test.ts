/** The pagination rules of the specification, on a seeded business with hundreds of records. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'mocha';
import { type Api, api, tokenFor } from '../support/client.ts';
import { deployOverHttp, objectFiles } from '../support/metadata-tenant.ts';
import { startPlatform, type TestPlatform } from '../support/platform.ts';

describe('API: pagination', () => {
  let platform: TestPlatform;
  let sam: Api;
  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
  });
  after(() => platform?.stop());

  const encoded = (value: unknown): string => encodeURIComponent(JSON.stringify(value));
  interface Page {
    records: { id: string; name: string }[];
    total?: number;
    nextCursor: string | null;
  }
  interface LargePage {
    readonly body: Page;
    readonly text: string;
  }
  const page = async (query: string, cursor?: string | null): Promise<Page> => {
    const { status, body, text } = await sam.get(`${query}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
    assert.equal(status, 200, text);
    return body;
  };
  /** All pages of a query, in order. */
  const traverse = async (query: string, between?: (pages: number) => Promise<void>): Promise<Page[]> => {
    const pages: Page[] = [];
    let cursor: string | null = null;
    do {
      pages.push(await page(query, cursor));
      cursor = pages.at(-1)!.nextCursor;
      if (cursor) await between?.(pages.length);
    } while (cursor !== null);
    return pages;
  };
  const idsOf = (pages: Page[]): string[] => pages.flatMap(({ records }) => records.map(({ id }) => id));

  const queries = {
    'in the default order': '/data/Account?take=50&includeTotal=true',
    'by a field with equal values': '/data/Account?take=50&includeTotal=true&orderBy=country',
    'by a field with blanks, descending': `/data/Account?take=50&includeTotal=true&sort=${encoded([{ id: 'website', desc: true }])}`,
    'by two fields': `/data/Account?take=50&includeTotal=true&sort=${encoded([
      { id: 'country', desc: true },
      { id: 'city', desc: false },
    ])}`,
    'with filters': `/data/Account?take=20&includeTotal=true&orderBy=name&filters=${encoded({ logic: 'and', conditions: [{ id: 'c', field: 'type', operator: 'neq', value: 'supplier' }] })}`,
    'with a search': '/data/Account?take=5&includeTotal=true&search=gmbh&searchFields=name',
  };
  for (const [how, query] of Object.entries(queries))
    it(`rule 1: repeating the query with cursor gives every record once, ${how}`, async () => {
      const pages = await traverse(query);
      const ids = idsOf(pages);
      assert.ok(pages.length > 2, `${pages.length} pages`);
      assert.equal(new Set(ids).size, ids.length);
      for (const { total } of pages) assert.equal(total, ids.length);
      const take = Number(/take=(\d+)/.exec(query)![1]);
      for (const { records } of pages.slice(0, -1)) assert.equal(records.length, take);
      const skipped = await page(`${query}&skip=${take}`);
      assert.deepEqual(idsOf([skipped]), idsOf([pages[1]!]), 'skip and cursor agree');
    });

  it('rule 1: a page ends early when its JSON is large, and the cursor continues after it', async function () {
    this.timeout(120_000);
    const admin = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    const fields = Object.fromEntries(
      Array.from({ length: 7 }, (_, i) => [`Long${i}__c`, 'fieldType: longText\nlength: 131072']),
    );
    await deployOverHttp(admin, objectFiles('Large__c', fields));
    const long = Object.fromEntries(Object.keys(fields).map((name) => [name, '\t'.repeat(70_000)]));
    const moment = (await admin.get('/data/Large__c/changes')).body.resumeCursor as string;
    const made: string[] = [];
    for (let i = 0; i < 18; i++) {
      const { status, body, text } = await admin.post('/data/Large__c', { name: `same`, ...(i % 6 === 0 ? {} : long) });
      assert.equal(status, 201, text);
      made.push(body.id);
    }
    for (const query of ['?take=200', '?take=17&includeTotal=true&orderBy=name', '?take=200&skip=1&orderBy=name']) {
      const found: string[] = [];
      let cursor: string | null = null;
      do {
        const address: string = cursor === null ? query : `${query.replace('&skip=1', '')}&cursor=${cursor}`;
        const { body, text } = (await admin.get(`/data/Large__c${address}`)) as LargePage;
        assert.ok(text.length < 12 * 1024 * 1024, `${text.length} characters`);
        assert.equal(body.total, query.includes('includeTotal') ? made.length : undefined);
        assert.ok(body.records.length >= 1 && (cursor !== null || body.records.length < 6));
        found.push(...body.records.map(({ id }) => id));
        cursor = body.nextCursor;
      } while (cursor !== null);
      assert.equal(found.length, query.includes('skip') ? made.length - 1 : made.length);
      assert.equal(new Set(found).size, found.length);
    }
    assert.equal((await admin.get('/data/Large__c?take=1')).body.records.length, 1);

    const [id] = made;
    let etag = '"1"';
    for (let i = 0; i < 6; i++) {
      const texts = Object.fromEntries(
        Object.keys(fields).map((name) => [name, `${i}`.repeat(140_000).slice(0, 131_072)]),
      );
      const { status, headers, text } = await admin.patch(`/data/Large__c/${id}`, texts, {
        headers: { 'if-match': etag },
      });
      assert.equal(status, 200, text);
      etag = headers.get('etag') ?? '';
    }
    for (const [list, entries] of [
      ['/events/audit?objectApiName=Large__c&take=200', made.length + 6],
      [`/data/Large__c/${id}/history?take=200`, 7],
      [`/data/Large__c/changes?take=200`, made.length],
    ] as const) {
      const found: object[] = [];
      let cursor: string | null = list.includes('changes') ? moment : null;
      do {
        const { body, text } = (await admin.get(cursor === null ? list : `${list}&cursor=${cursor}`)) as LargePage;
        assert.ok(text.length < 12 * 1024 * 1024, `${text.length} characters of ${list}`);
        assert.ok(body.records.length >= 1 && body.records.length < entries, list);
        found.push(...body.records);
        cursor = body.nextCursor;
      } while (cursor !== null);
      assert.equal(found.length, entries, list);
      assert.equal(new Set(found.map((entry) => JSON.stringify(entry))).size, entries, list);
    }
  });

  it('rule 1: the cursor outlives its token', async () => {
    const first = await page('/data/Account?take=5');
    const { signIn } = await import('../../scripts/sign-in.ts');
    const again = await signIn({ baseUrl: platform.baseUrl, user: 'sam@demo.example', password: 'demo-password' });
    const second = await api(platform.baseUrl, again.access_token).get(
      `/data/Account?take=5&cursor=${first.nextCursor}`,
    );
    assert.deepEqual(idsOf([second.body]), idsOf([await page('/data/Account?take=5', first.nextCursor)]));
  });

  it('rule 1: another object, size, order or filter with the same cursor is refused', async () => {
    const { nextCursor } = await page('/data/Account?take=5&orderBy=name');
    for (const [query, changed] of [
      ['/data/Account?take=6&orderBy=name', 'take'],
      ['/data/Account?take=5', 'sort'],
      ['/data/Account?take=5&orderBy=name&orderDirection=desc', 'orderBy'],
      [`/data/Account?take=5&orderBy=name&where=${encoded({ city: 'Berlin' })}`, 'where'],
      ['/data/Account?take=5&orderBy=name&search=abc', 'search'],
      ['/data/Product?take=5&orderBy=name', 'objectApiName'],
    ] as const) {
      const { status, body } = await sam.get(`${query}&cursor=${nextCursor}`);
      assert.equal(status, 400, query);
      assert.equal(body.code, 'CURSOR_QUERY_MISMATCH', query);
      assert.deepEqual(body.details.changed, [changed]);
    }
    const both = await sam.get(`/data/Account?take=5&orderBy=name&skip=0&cursor=${nextCursor}`);
    assert.equal(both.body.code, 'CURSOR_WITH_SKIP');
  });

  it('rule 2: nextCursor is null on the last page only, also when it is full or the list is empty', async () => {
    const some = await page('/data/Account?take=4&orderBy=name');
    const ids = idsOf([some]);
    const query = `/data/Account?orderBy=name&whereIn=${encoded({ id: ids })}`;
    const full = await traverse(`${query}&take=2`);
    assert.deepEqual(
      full.map(({ records }) => records.length),
      [2, 2],
    );
    assert.equal((await page(`${query}&take=4`)).nextCursor, null);
    const none = await page(`/data/Account?includeTotal=true&where=${encoded({ name: 'nobody is called this' })}`);
    assert.deepEqual(none, { records: [], total: 0, nextCursor: null });
  });

  it('rule 3: unchanged records are listed once while others are created, deleted and changed', async () => {
    const mine = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        sam.post('/data/Contact', { name: `Paging ${i}`, lastName: `Paging ${i}`, jobTitle: 'Paging' }),
      ),
    );
    for (const { status, text } of mine) assert.equal(status, 201, text);
    const query = `/data/Contact?take=3&orderBy=lastName&where=${encoded({ jobTitle: 'Paging' })}`;
    const gone = mine[1]!;
    const pages = await traverse(query, async (count) => {
      if (count > 2) return;
      await sam.post('/data/Contact', { name: 'x', lastName: `Paging 0${count}`, jobTitle: 'Paging' });
      const changed = mine[8 + count]!;
      await sam.patch(`/data/Contact/${changed.body.id}`, { firstName: 'x' }, { etag: changed.headers.get('etag')! });
      if (count === 1) await sam.delete(`/data/Contact/${gone.body.id}`, { etag: gone.headers.get('etag')! });
    });
    const ids = idsOf(pages);
    assert.equal(new Set(ids).size, ids.length);
    for (const { body } of mine) if (body.id !== gone.body.id) assert.ok(ids.includes(body.id), body.lastName);
  });

  it('take: 50 by default, never more than 200', async () => {
    assert.equal((await page('/data/Account?orderBy=name')).records.length, 50);
    const large = await sam.get('/data/Account?take=5000');
    assert.equal(large.body.records.length, 200);
    assert.equal(large.headers.get('x-effective-take'), '200');
    assert.equal((await sam.get('/data/Account?take=200')).headers.get('x-effective-take'), null);
    for (const take of ['0', '-1', '1.5', 'all', ''])
      assert.equal((await sam.get(`/data/Account?take=${take}`)).body.code, 'PARAMETER_INVALID', take);
  });

  it('skip: up to 10,000; beyond, only cursor continues', async () => {
    assert.deepEqual((await page('/data/Account?skip=10000')).records, []);
    const { status, body } = await sam.get('/data/Account?skip=10001');
    assert.deepEqual([status, body.code, body.details.max], [400, 'SKIP_TOO_DEEP', 10_000]);
  });

  it('includeTotal: total is present when requested, and counts the records that the user can see', async () => {
    assert.equal('total' in (await page('/data/Account?take=1')), false);
    const { total } = await page('/data/Contact?take=1&includeTotal=true');
    const all = await api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada')).get(
      '/data/Contact?take=1&includeTotal=true',
    );
    assert.ok(total! > 0 && total! <= all.body.total);
    assert.equal(idsOf(await traverse('/data/Contact?take=200')).length, total);
  });
});
