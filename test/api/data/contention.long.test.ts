/**
 * Twenty users on the same few records: lines of the same orders, the same fields, the same transitions. No change is
 * lost, every total is correct, no request fails with a deadlock, and the audit chain is intact.
 * CONTENTION_SECONDS=60 for a longer run.
 */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { call } from '../../../contracts/call.ts';
import type { VerifyRequest } from '../../../contracts/data/trail.ts';
import { signIn } from '../../../scripts/sign-in.ts';
import { type Answer, type Api, api, tokenFor } from '../../support/client.ts';
import { startPlatform, type TestPlatform } from '../../support/platform.ts';

const SECONDS = Number(process.env['CONTENTION_SECONDS'] ?? 8);
const USERS = 20;
const ORDERS = 3;
const PASSWORD = 'a long enough password';

interface Line {
  id: string;
  NetAmount__c: number;
}

const sum = (amounts: readonly number[]): number => Math.round(amounts.reduce((all, n) => all + n * 100, 0)) / 100;

describe('twenty users at work on the same records', () => {
  let platform: TestPlatform;
  let ada: Api;
  let tenantId: string;
  let people: Api[];
  let orders: string[];
  const seen = new Map<string, number>();
  const surprises: string[] = [];
  const confirmed = new Map<string, string[]>();
  const transitions = { races: 0, won: 0 };

  /** Counts the outcome; an unexpected one is recorded as a surprise. */
  function note(what: string, answer: Answer, expected: readonly string[]): Answer {
    const outcome = answer.status < 300 ? 'done' : String(answer.body.code);
    const key = `${what} ${outcome}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    if (outcome !== 'done' && !expected.includes(outcome)) surprises.push(`${what}: ${answer.status} ${answer.text}`);
    return answer;
  }

  before(async function () {
    this.timeout(120_000);
    platform = await startPlatform();
    ada = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'ada'));
    tenantId = (await ada.get('/identity')).body.tenant.id;
    await platform.broker.call('data.users.provision', {
      tenantId,
      users: Array.from({ length: USERS }, (_, i) => ({
        username: `worker${i}@demo.example`,
        email: `worker${i}@demo.example`,
        displayName: `Worker ${i}`,
        profileApiName: 'SalesManager',
        roleApiName: 'SalesManager',
        password: PASSWORD,
      })),
    });
    const tokens: string[] = [];
    for (let i = 0; i < USERS; i++) {
      const { baseUrl } = platform;
      tokens.push((await signIn({ baseUrl, user: `worker${i}@demo.example`, password: PASSWORD })).access_token);
    }
    people = tokens.map((token) => api(platform.baseUrl, token));
    // Sam's orders: all users above him work on them.
    const sam = api(platform.baseUrl, await tokenFor(platform.baseUrl, 'sam'));
    orders = [];
    for (let i = 0; i < ORDERS; i++) orders.push(await newOrder(sam));
  });

  after(() => platform.stop());

  async function newOrder(as: Api): Promise<string> {
    const account = (await as.get('/data/Account?take=1')).body.records[0].id;
    const order = await as.post('/data/SalesOrder__c', { AccountId__c: account });
    assert.equal(order.status, 201, order.text);
    return order.body.id;
  }

  it(`loses nothing in ${SECONDS} seconds`, async function () {
    this.timeout(SECONDS * 1_000 + 60_000);
    const product = (await ada.get('/data/Product?take=1')).body.records[0].id;
    const until = Date.now() + SECONDS * 1_000;
    await Promise.all([...people.map((person, i) => work(person, i, product, until)), raceForTransitions(until)]);
    console.log(
      `      ${[...seen]
        .sort()
        .map(([key, count]) => `${key}: ${count}`)
        .join(', ')}`,
    );
    assert.deepEqual(surprises.slice(0, 5), []);
  });

  async function work(person: Api, number: number, product: string, until: number): Promise<void> {
    for (let round = 0; Date.now() < until; round++) {
      const order = orders[(number + round) % orders.length]!;
      switch ((number + round) % 5) {
        case 0:
        case 1:
          note(
            'add line',
            await person.post('/data/SalesOrderLine__c', {
              SalesOrderId__c: order,
              ProductId__c: product,
              Position__c: round + 1,
              Quantity__c: 1,
              UnitPrice__c: ((number + 1) * 100 + round) / 100,
              TaxRate__c: 19,
            }),
            [],
          );
          break;
        case 2:
          await changeLine(person, order, number + round);
          break;
        case 3:
          await signNotes(person, order, `${number}.${round}`);
          break;
        case 4:
          await removeLine(person, order, number);
      }
    }
  }

  const linesOf = async (person: Api, order: string): Promise<Line[]> => {
    const query = new URLSearchParams({
      take: '20',
      includeEtag: 'true',
      where: JSON.stringify({ SalesOrderId__c: order }),
    });
    return (await person.get(`/data/SalesOrderLine__c?${query}`)).body.records;
  };

  async function changeLine(person: Api, order: string, number: number): Promise<void> {
    const lines = (await linesOf(person, order)) as (Line & { _etag: string })[];
    const line = lines[number % Math.max(1, lines.length)];
    if (!line) return;
    // Every third change moves the line to another order.
    const target = orders[(orders.indexOf(order) + 1) % orders.length];
    const change = number % 3 === 0 ? { SalesOrderId__c: target } : { UnitPrice__c: number + 0.25 };
    note('change line', await person.patch(`/data/SalesOrderLine__c/${line.id}`, change, { etag: line._etag }), [
      'ETAG_MISMATCH',
      'RECORD_NOT_FOUND',
    ]);
  }

  async function removeLine(person: Api, order: string, number: number): Promise<void> {
    const lines = (await linesOf(person, order)) as (Line & { _etag: string })[];
    const line = lines[number % Math.max(1, lines.length)];
    if (!line || lines.length < 3) return;
    note('remove line', await person.delete(`/data/SalesOrderLine__c/${line.id}`, { etag: line._etag }), [
      'ETAG_MISMATCH',
      'RECORD_NOT_FOUND',
    ]);
  }

  /** Appends a signature to the current value: an overwriting change would lose another user's. */
  async function signNotes(person: Api, order: string, signature: string): Promise<void> {
    for (let attempt = 0; attempt < 40; attempt++) {
      const read = await person.get(`/data/SalesOrder__c/${order}?fields=Notes__c`);
      const notes = `${read.body.Notes__c ?? ''}${signature};`;
      const etag = read.headers.get('etag')!;
      const answer = note(
        'sign order',
        await person.patch(`/data/SalesOrder__c/${order}`, { Notes__c: notes }, { etag }),
        ['ETAG_MISMATCH'],
      );
      if (answer.status === 200) {
        confirmed.set(order, [...(confirmed.get(order) ?? []), signature]);
        return;
      }
      await pause(Math.random() * 10);
    }
  }

  /** All users submit the same order at the same moment, with the same ETag. */
  async function raceForTransitions(until: number): Promise<void> {
    const product = (await ada.get('/data/Product?take=1')).body.records[0].id;
    while (Date.now() < until) {
      const order = await newOrder(people[0]!);
      await people[0]!.post('/data/SalesOrderLine__c', {
        SalesOrderId__c: order,
        ProductId__c: product,
        Position__c: 1,
        Quantity__c: 1,
        UnitPrice__c: 5,
      });
      const etag = (await ada.get(`/data/SalesOrder__c/${order}`)).headers.get('etag')!;
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => ada.post(`/data/SalesOrder__c/${order}/transitions/submit`, {}, { etag })),
      );
      for (const answer of answers) note('submit order', answer, ['ETAG_MISMATCH']);
      transitions.races++;
      transitions.won += answers.filter((answer) => answer.status === 201).length;
    }
  }

  it('lets exactly one of several win each transition', () => {
    assert.ok(transitions.races > 0);
    assert.equal(transitions.won, transitions.races);
  });

  it('keeps every confirmed change, and every line in its total', async () => {
    for (const order of orders) {
      const { body } = await ada.get(`/data/SalesOrder__c/${order}`);
      const lines: Line[] = [];
      let cursor: string | null = null;
      do {
        const query: URLSearchParams = new URLSearchParams({
          take: '200',
          where: JSON.stringify({ SalesOrderId__c: order }),
        });
        if (cursor) query.set('cursor', cursor);
        const page: Answer = await ada.get(`/data/SalesOrderLine__c?${query}`);
        lines.push(...page.body.records);
        cursor = page.body.nextCursor;
      } while (cursor);
      assert.equal(body.NetAmount__c, sum(lines.map((line) => line.NetAmount__c)));
      assert.equal(body.LineCount__c, lines.length);
      const signatures = (body.Notes__c ?? '').split(';').filter(Boolean);
      assert.deepEqual([...signatures].sort(), [...(confirmed.get(order) ?? [])].sort());
    }
  });

  it('leaves an intact audit trail, with a row for every completed change', async () => {
    const { broker } = platform;
    await call(broker, 'data.audit.seal', { tenantId });
    let from: VerifyRequest['from'];
    let rows = 0;
    do {
      const part = await call(broker, 'data.audit.verify', { tenantId, ...(from === undefined ? {} : { from }) });
      assert.equal(part.broken, null);
      rows = part.checked;
      from = part.next ?? undefined;
    } while (from !== undefined);
    const done = [...seen].filter(([key]) => key.endsWith(' done')).reduce((all, [, count]) => all + count, 0);
    assert.ok(rows >= done, `${rows} rows for ${done} mutations`);
  });
});
