/**
 * People at work on every kind of record write at the same time, each request repeated with its key until it has an
 * answer, while something breaks: transitions with effects, lines below rollups, upserts, restores, manual shares and
 * confirmed duplicates. Afterwards every key is sent again, and the database itself is asked whether anything was lost,
 * done twice or left half done.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { ServiceBroker } from 'moleculer';
import { brokerOptions } from '../../config/broker.ts';
import { readConfig } from '../../config/env.ts';
import { OPERATOR } from '../../config/services.ts';
import { BUS_POLICY } from '../../contracts/bus.ts';
import { call } from '../../contracts/call.ts';
import { natsBus } from '../../mixins/bus/nats-bus.ts';
import { peerCheck } from '../../mixins/peer-check.ts';
import type { Answer, Api, CallOptions } from '../support/client.ts';
import { findNothingWrong } from '../support/consistency.ts';
import { insist, type Stage } from './stage.ts';

/** Stories of each kind, together about 110 requests. */
const STORIES = 4;
/** The fault happens when so many requests are answered. */
const FAULTS_AT: readonly number[] = [25, 70];

/** A request that was answered: its key, and how to send the very same one again. */
interface Told {
  readonly what: string;
  readonly key: string;
  readonly answer: Answer;
  again(): Promise<Answer>;
}

let runs = 0;
let sealers = 0;

/** Works through a fault, which happens twice, and returns when everything was found to be right. */
export async function companyThrough(stage: Stage, prefix: string, fault: () => Promise<void>): Promise<void> {
  const [sam, mia] = [await stage.as('sam'), await stage.as('mia')];
  const { body: sue } = await insist(async () => (await stage.as('sue')).get('/identity'));
  const { body: products } = await insist(() => sam.get('/data/Product?take=1'));
  const product: string = products.records[0].id;
  const run = ++runs;
  const told: Told[] = [];
  let faults = 0;
  let troubled = Promise.resolve();

  /** One intention: the key stays the same however often it is sent. */
  async function ask(
    what: string,
    expected: readonly number[],
    send: (options: CallOptions) => Promise<Answer>,
  ): Promise<Answer> {
    const key = randomUUID();
    const again = (): Promise<Answer> => insist(() => send({ idempotencyKey: key }));
    const answer = await again();
    assert.ok(expected.includes(answer.status), `${what}: ${answer.status} ${answer.text}`);
    told.push({ what, key, answer, again });
    if (FAULTS_AT.includes(told.length)) {
      faults++;
      troubled = troubled.then(fault);
    }
    return answer;
  }

  const etagOf = (answer: Answer): string => answer.headers.get('etag')!;
  const create = (who: Api, object: string, body: object): Promise<Answer> =>
    ask(`create ${object}`, [201], (options) => who.post(`/data/${object}`, body, options));
  const line = (order: string, amount: number): Promise<Answer> =>
    create(sam, 'SalesOrderLine__c', {
      SalesOrderId__c: order,
      ProductId__c: product,
      Position__c: 1,
      Quantity__c: 1,
      UnitPrice__c: amount,
    });
  const take = async (who: Api, order: string, key: string, expected: readonly number[]): Promise<Answer> => {
    const etag = etagOf(await insist(() => who.get(`/data/SalesOrder__c/${order}`)));
    return ask(key, expected, (options) =>
      who.post(`/data/SalesOrder__c/${order}/transitions/${key}`, {}, { ...options, etag }),
    );
  };
  const newOrder = async (account: string, reference: string): Promise<string> =>
    (await create(sam, 'SalesOrder__c', { AccountId__c: account, CustomerReference__c: reference })).body.id;

  /** Draft to fulfilled: a time is set, and an invoice is created. */
  async function fulfilOrder(account: string, n: number): Promise<void> {
    const order = await newOrder(account, `${prefix} ${n}`);
    await line(order, n + 0.25);
    await line(order, 10);
    await take(sam, order, 'submit', [201]);
    const approvals = await Promise.all([1, 2].map(() => take(mia, order, 'approve', [201, 409, 412])));
    assert.equal(approvals.filter((answer) => answer.status === 201).length, 1, 'one of two who race approves');
    const fulfilled = await take(sam, order, 'fulfill', [201]);
    assert.deepEqual(
      fulfilled.body.sideEffects.map((effect: { kind: string }) => effect.kind),
      ['create'],
    );
  }

  /** Lines that several people add, change and remove at the same time, below one order. */
  async function workOnLines(order: string, n: number): Promise<void> {
    for (let i = 0; i < 3; i++) {
      const made = await line(order, n * 10 + i + 0.5);
      const path = `/data/SalesOrderLine__c/${made.body.id}`;
      const changed = await ask('change line', [200], (options) =>
        sam.patch(path, { UnitPrice__c: n + i }, { ...options, etag: etagOf(made) }),
      );
      if (i === 2)
        await ask('delete line', [200], (options) => sam.delete(path, { ...options, etag: etagOf(changed) }));
    }
  }

  /** Two stories share a number, so that one of them creates what the other one changes. */
  async function upsertAccount(n: number): Promise<void> {
    const number = `UP-${run}${String(Math.floor(n / 2)).padStart(4, '0')}`;
    for (const email of ['first', 'second'])
      await ask('upsert', [200, 201], (options) =>
        sam.put(
          `/data/Account/by/accountNumber/${number}`,
          { name: `${prefix} by number ${number}`, email: `${email}${n}@example.com` },
          options,
        ),
      );
  }

  async function bringBack(n: number): Promise<void> {
    const made = await create(mia, 'Account', { name: `${prefix} back ${n}` });
    const path = `/data/Account/${made.body.id}`;
    await create(mia, 'Contact', { name: `${prefix} ${n}`, lastName: `${prefix} ${n}`, accountId: made.body.id });
    await ask('delete', [200], (options) => mia.delete(path, { ...options, etag: etagOf(made) }));
    const back = await ask('restore', [201], (options) => mia.post(`${path}/restore`, undefined, options));
    assert.equal(back.body.recordVersion, made.body.recordVersion + 1);
  }

  async function share(account: string, n: number): Promise<void> {
    const deal = await create(sam, 'Opportunity__c', { name: `${prefix} deal ${n}`, AccountId__c: account });
    const path = `/data/Opportunity__c/${deal.body.id}/shares`;
    const grant = (principalType: string, principalId: string): Promise<Answer> =>
      ask('share', [201], (options) => sam.post(path, { principalType, principalId, access: 'edit' }, options));
    const given = await grant('user', sue.user.id);
    await grant('role', 'Finance');
    await ask('take share back', [204], (options) => sam.delete(`${path}/${given.body.shareId}`, options));
  }

  async function confirmDuplicate(n: number): Promise<void> {
    const TaxId__c = `${run}X${n}`;
    await create(sam, 'Account', { name: `${prefix} original ${n}`, TaxId__c });
    const twin = { name: `${prefix} twin ${n}`, TaxId__c };
    const refused = await ask('duplicate', [409], (options) => sam.post('/data/Account', twin, options));
    const headers = { 'x-duplicate-confirmation': refused.body.details.confirmationToken };
    await ask('confirm', [201], (options) => sam.post('/data/Account', twin, { ...options, headers }));
  }

  const account: string = (await create(mia, 'Account', { name: `${prefix} customer` })).body.id;
  const shared = await newOrder(account, `${prefix} shared`);
  const numbers = Array.from({ length: STORIES }, (_, n) => n);
  let working = true;
  const sealing = sealWhile(stage, () => working);
  const stories = await Promise.allSettled(
    numbers.flatMap((n) => [
      fulfilOrder(account, n),
      workOnLines(shared, n),
      upsertAccount(n),
      bringBack(n),
      share(account, n),
      confirmDuplicate(n),
    ]),
  );
  working = false;
  await sealing;
  await troubled; // also when a story failed: the stage is whole again afterwards
  for (const story of stories) if (story.status === 'rejected') throw story.reason;
  assert.equal(faults, FAULTS_AT.length, `${told.length} requests were answered`);

  for (const { what, answer, again } of told) {
    const second = await again();
    // A refused request is retried and may be refused for another reason: the record has changed.
    if (answer.status >= 300) {
      assert.ok(second.status >= 400 && second.status < 500, `${what}, repeated: ${second.status} ${second.text}`);
      continue;
    }
    assert.equal(second.status, answer.status, `${what}, repeated: ${second.text}`);
    assert.equal(second.headers.get('idempotency-replayed'), 'true', `${what} is the outcome that is stored`);
    assert.equal(second.text, answer.text, `${what} is told as it was the first time`);
  }
  const done = told.filter(({ answer }) => answer.status < 300).map(({ key }) => key);
  await findNothingWrong(stage.database.url, await stage.tenantId(), done, WRONG, prefix);
}

/** Seals the audit trail over and over, far more often than the platform itself does, so that faults meet it in the middle. */
export async function sealWhile(stage: Stage, working: () => boolean): Promise<void> {
  const config = readConfig(
    { ...stage.nats.environment(OPERATOR), LOG_LEVEL: 'silent' },
    { operator: `sealer-${++sealers}` },
  );
  // With the peer check, calls that a fault left without an answer do not hold up the end.
  const broker = new ServiceBroker({
    ...brokerOptions(config),
    transporter: natsBus(config, BUS_POLICY),
    middlewares: [peerCheck()],
  });
  await broker.start();
  try {
    const tenantId = await stage.tenantId();
    while (working()) {
      await call(broker, 'data.audit.seal', { tenantId }, { timeout: 2_000 }).catch(() => {});
      await pause(50);
    }
  } finally {
    await broker.stop();
  }
}

/** Rows that show a lost, repeated or half-done story. `$2`: the prefix of their names. */
const WRONG: Readonly<Record<string, string>> = {
  'an order that was fulfilled without its one invoice, or one with an invoice that was not': `
    SELECT o."id" FROM "SalesOrder__c" o LEFT JOIN "Invoice__c" i ON i."SalesOrderId__c" = o."id"
    WHERE o."CustomerReference__c" LIKE $2 || '%' GROUP BY o."id"
    HAVING count(i."id") <> CASE WHEN o."Status__c" = 'fulfilled' THEN 1 ELSE 0 END OR max(i."Amount__c") <> o."NetAmount__c"`,
  'a fulfilled order without one event for each of its transitions': `
    SELECT o."id" FROM "SalesOrder__c" o LEFT JOIN _outbox e ON e.record_id = o."id"
    WHERE o."CustomerReference__c" LIKE $2 || '%' AND o."Status__c" = 'fulfilled' GROUP BY o."id"
    HAVING count(*) FILTER (WHERE e.type = 'data.record.transitioned') <> 3`,
  'a version of a record that nobody made': `
    SELECT o."id" FROM "SalesOrder__c" o JOIN _audit a ON a.record_id = o."id" AND a.kind IS NOT NULL
    WHERE o."CustomerReference__c" LIKE $2 || '%' GROUP BY o."id"
    HAVING o."recordVersion" <> count(*) OR o."recordVersion" <> max(a.record_version)`,
  'two accounts of one number, or one that was not changed as often as it was asked for': `
    SELECT "accountNumber" FROM "Account" WHERE "name" LIKE $2 || ' by number%' GROUP BY "accountNumber"
    HAVING count(*) <> 1 OR max("recordVersion") <> 4`,
  'a duplicate that was not confirmed exactly once': `
    SELECT t."TaxId__c" FROM "Account" t LEFT JOIN _audit a ON a.record_id = t."id" AND a.code = 'DUPLICATE_RULE' AND a.outcome = 'committed'
    WHERE t."name" LIKE $2 || ' twin%' OR t."name" LIKE $2 || ' original%' GROUP BY t."TaxId__c"
    HAVING count(DISTINCT t."id") <> 2 OR count(a.audit_id) <> 1`,
  'a deal without exactly the share that was left': `
    SELECT d."id" FROM "Opportunity__c" d LEFT JOIN _shares s ON s.record_id = d."id" LEFT JOIN _revoked_shares r ON r.record_id = d."id"
    WHERE d."name" LIKE $2 || ' deal%' GROUP BY d."id"
    HAVING array_agg(DISTINCT s.principal_id) <> '{Finance}' OR count(DISTINCT r.share_id) <> 1`,
};
