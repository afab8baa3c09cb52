/** Mails on their way when processes die, race, and end: each gets to its reader once, and none stays behind. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { Database, type Tx } from '../../../mixins/database/database.ts';
import { Outbox } from '../../../services/auth/mail/outbox.ts';
import { MailSender } from '../../../services/auth/mail/sender.ts';
import type { Delivery } from '../../../services/auth/mail/transport.ts';
import type { TestDatabase } from '../../support/database.ts';
import { createPlatformDatabase } from '../../support/platform.ts';

const SENT: Delivery = { outcome: 'sent' };

describe('the outbox of mails', () => {
  let database: TestDatabase;
  let pool: Database;
  let outbox: Outbox;
  let tenantId: string;
  const senders: MailSender[] = [];
  before(async () => {
    database = await createPlatformDatabase();
    pool = new Database(database.url, { size: 10, applicationName: 'outbox test' });
    outbox = new Outbox(pool, { enabled: true, added: () => {} });
    const { rows } = await pool.query<{ id: string }>("SELECT id FROM metadata.tenants WHERE key = 'demo'");
    tenantId = rows[0]!.id;
  });
  after(async () => {
    await pool?.close();
    await database?.drop();
  });
  beforeEach(() => pool.query('DELETE FROM auth.mails'));
  afterEach(async () => {
    for (const sender of senders.splice(0)) await sender.stop();
  });

  const put = (count = 1): Promise<void> =>
    pool.shared('auth', tenantId, async (tx) => {
      for (let n = 0; n < count; n++)
        assert.equal(
          await outbox.add(tx, {
            tenantId,
            userId: randomUUID(),
            kind: 'passwordChanged',
            address: `reader-${n}@mail.example`,
          }),
          'queued',
        );
    });
  const states = async (): Promise<unknown[]> =>
    (await pool.query('SELECT outcome, attempts, address FROM auth.mails ORDER BY id')).rows;
  const waiting = async (): Promise<number> =>
    (await pool.query<{ n: number }>('SELECT count(*)::int AS n FROM auth.mails WHERE ended_at IS NULL')).rows[0]!.n;
  /** A process that sends by `send`, which is given the address. */
  const process = (send: (to: string) => Promise<Delivery>): MailSender => {
    const sender = new MailSender({
      outbox,
      transport: { send: ({ to }) => send(to.address) },
      before: async () => {},
      message: async ({ id, kind, address }) => ({
        id,
        kind,
        to: { name: '', address },
        subject: '',
        text: '',
        html: '',
        language: 'en',
        unsubscribe: null,
        replyTo: null,
        calendar: null,
      }),
      log: { info() {}, warn() {} } as never,
    });
    senders.push(sender);
    sender.wake();
    return sender;
  };
  const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
    for (const end = performance.now() + 10_000; !(await isSo()); await pause(10)) assert.ok(performance.now() < end);
  };

  it('hands over the mail of a process that died while sending, after its lease', async () => {
    await put();
    let dying = 0;
    process(() => {
      dying++;
      return new Promise(() => {}); // it never gets to the answer
    });
    await until(() => dying === 1);
    const seen: string[] = [];
    const living = process(async (to) => {
      seen.push(to);
      return SENT;
    });
    await pause(300);
    assert.deepEqual(seen, [], 'it is still being sent, for all that others know');
    await pool.query('UPDATE auth.mails SET due_at = now()');
    living.wake();
    await until(async () => (await waiting()) === 0);
    assert.deepEqual(seen, ['reader-0@mail.example']);
    assert.deepEqual(await states(), [{ outcome: 'sent', attempts: 2, address: null }]);
  });

  it('ignores the result of a process that exceeded its lease', async () => {
    await put();
    const [slow] = await outbox.take(1, 60);
    await pool.query('UPDATE auth.mails SET due_at = now()');
    const [other] = await outbox.take(1, 60);
    assert.equal(other!.id, slow!.id);
    await outbox.end(slow!, 'refused');
    await outbox.postpone(slow!, 0, { untried: false });
    assert.deepEqual(await outbox.take(1, 60), [], 'it is the other process’s');
    await outbox.end(other!, 'sent');
    assert.deepEqual(await states(), [{ outcome: 'sent', attempts: 2, address: null }]);
  });

  it('never lets two processes send the same mail', async () => {
    await put(40);
    const seen: string[] = [];
    const send = async (to: string): Promise<Delivery> => {
      await pause(5);
      seen.push(to);
      return SENT;
    };
    for (let count = 0; count < 4; count++) process(send);
    await until(async () => (await waiting()) === 0);
    assert.equal(seen.length, 40);
    assert.equal(new Set(seen).size, 40);
  });

  /** In the transaction: what became of mails about events to these addresses. */
  const putEvents = async (
    tx: Tx,
    of: string,
    addresses: readonly string[],
    userId = randomUUID(),
  ): Promise<string[]> => {
    const outcomes: string[] = [];
    for (const address of addresses) {
      const mail = { tenantId: of, userId, kind: 'calendarEvent', address } as const;
      outcomes.push(await outbox.add(tx, mail));
    }
    return outcomes;
  };
  const shared = <T>(of: string, work: (tx: Tx) => Promise<T>): Promise<T> => pool.shared('auth', of, work);
  const GUESTS = ['guest@mail.example', 'other@mail.example'] as const;

  it('hands out mails about events to an address in the order in which they were queued, and none passes another', async () => {
    const [guest, other] = GUESTS;
    await shared(tenantId, (tx) => putEvents(tx, tenantId, [guest, guest, other]));
    await shared(tenantId, (tx) => putEvents(tx, tenantId, ['Guest@mail.example']));
    const { rows } = await pool.query<{ id: string }>('SELECT id FROM auth.mails ORDER BY created_at');
    const [first, second, aside, third] = rows.map(({ id }) => id);
    const taken = await outbox.take(4, 60);
    assert.deepEqual(new Set(taken.map(({ id }) => id)), new Set([first, aside]));
    assert.deepEqual(await outbox.take(4, 60), [], 'the first is being sent');
    await outbox.postpone(taken.find(({ id }) => id === first)!, 60, { untried: false });
    assert.deepEqual(await outbox.take(4, 60), [], 'the first is tried again later');
    await pool.query('UPDATE auth.mails SET due_at = now() WHERE id = $1', [first]);
    const order: string[] = [];
    for (let [mail] = await outbox.take(1, 60); mail; [mail] = await outbox.take(1, 60)) {
      order.push(mail.id);
      await outbox.end(mail, 'sent');
    }
    assert.deepEqual(order, [first, second, third]);
  });

  it('lets no tenant wait for the mails of another one to the same address', async () => {
    const elsewhere = randomUUID();
    await shared(tenantId, async (tx) => {
      assert.deepEqual(await putEvents(tx, tenantId, GUESTS), ['queued', 'queued']);
      const others = shared(elsewhere, (own) => putEvents(own, elsewhere, GUESTS.toReversed()));
      const late = pause(5_000, 'late', { ref: false });
      assert.deepEqual(await Promise.race([others, late]), ['queued', 'queued']);
    });
  });

  it('counts mails about events that are queued at the same moment, in whatever order of addresses', async () => {
    const userId = randomUUID();
    await pool.query(
      `INSERT INTO auth.mails (tenant_id, user_id, kind, address_hash, give_up_at, ended_at, outcome)
       SELECT $1, $2, 'calendarEvent', sha256(i::text::bytea), now(), now(), 'sent' FROM generate_series(1, 195) i`,
      [tenantId, userId],
    );
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        shared(tenantId, (tx) => putEvents(tx, tenantId, n % 2 ? GUESTS : GUESTS.toReversed(), userId)),
      ),
    );
    assert.equal(outcomes.flat().filter((outcome) => outcome === 'queued').length, 5);
  });

  it('finishes the current mail on shutdown, and starts no other', async () => {
    await put(8);
    let begun = 0;
    const release: (() => void)[] = [];
    const ending = process(async () => {
      begun++;
      await new Promise<void>((resolve) => release.push(resolve));
      return SENT;
    });
    await until(() => begun === 4);
    const stopped = ending.stop();
    for (const go of release) go();
    await stopped;
    assert.equal(begun, 4);
    assert.equal(await waiting(), 4, 'the others are for those who stay');
  });
});
