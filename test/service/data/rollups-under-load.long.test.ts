/** Many writers on the same few parents: every rollup is right in the end, and no writer gets a deadlock error. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { fieldFile, objectFiles, type StartedTenant, startMetadataTenant } from '../../support/metadata-tenant.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests assert what bodies hold, they need no types for it
type Anything = any;

const rollup = (child: string, field: string, fn: string, of: string): string =>
  `fieldType: rollup\nrollup:\n  childObject: ${child}\n  referenceField: ${field}\n  function: ${fn}\n${of}`;

const FILES = {
  ...objectFiles('Firm__c', {
    Total__c: rollup('Deal__c', 'Firm__c', 'sum', '  field: Total__c\n'),
    Deals__c: rollup('Deal__c', 'Firm__c', 'count', ''),
  }),
  ...objectFiles('Deal__c', {
    Firm__c: 'fieldType: reference\nreferenceTo:\n  - Firm__c\nrelationshipName: Deals__r',
    Note__c: 'fieldType: text',
    Total__c: rollup('Line__c', 'Deal__c', 'sum', '  field: Amount__c\n'),
    Lines__c: rollup('Line__c', 'Deal__c', 'count', ''),
    Net__c: rollup('Line__c', 'Deal__c', 'sum', '  field: Net__c\n'),
    Small__c: rollup('Line__c', 'Deal__c', 'count', '  criteria: record.IsSmall__c\n'),
  }),
  ...objectFiles('Item__c', { Sold__c: rollup('Line__c', 'Item__c', 'count', '') }),
  ...objectFiles('Line__c', {
    Deal__c: 'fieldType: masterDetail\nreferenceTo:\n  - Deal__c\nrelationshipName: Lines__r',
    Item__c: 'fieldType: reference\nreferenceTo:\n  - Item__c\nrelationshipName: Sales__r',
    Amount__c: 'fieldType: currency\nprecision: 10\nscale: 2',
    Off__c: 'fieldType: integer',
    Net__c:
      'fieldType: formula\nformula:\n  expression: record.Amount__c * (100 - coalesce(record.Off__c, 0)) / 100\n  resultType: currency',
    IsSmall__c: 'fieldType: formula\nformula:\n  expression: record.Net__c < 20\n  resultType: boolean',
  }),
  ...fieldFile('Line__c', 'Text__c', 'fieldType: text'),
  ...objectFiles('Node__c', {
    Above__c: 'fieldType: reference\nreferenceTo:\n  - Node__c\nrelationshipName: Below__r',
    Own__c: 'fieldType: integer',
    Below__c: rollup('Node__c', 'Above__c', 'sum', '  field: Own__c\n'),
  }),
};

const WRITERS = 16;
const STEPS = 12;
/** Expected conflicts when others write the same records: the client reads again and continues. */
const EXPECTED = ['ETAG_MISMATCH', 'RECORD_NOT_FOUND', 'REFERENCE_NOT_FOUND', 'FIELD_REQUIRED'];

describe('rollups under load', () => {
  let tenant: StartedTenant;
  before(async function () {
    this.timeout(120_000);
    tenant = await startMetadataTenant();
    const done = await tenant.deploy(FILES);
    assert.equal(done.status, 'SUCCEEDED', JSON.stringify(done.blocked));
  });
  after(() => tenant?.stop());

  const send = async (operation: string, object: string, id: string | null, body: object | null): Promise<Anything> => {
    const path = { objectApiName: object, ...(id === null ? {} : { id }) };
    const ifMatch =
      id === null ? undefined : ((await tenant.call('data.records.get', { path })).headers?.['ETag'] as string);
    return (
      await tenant.call(`data.records.${operation}`, {
        path,
        ...(body ? { body: id === null ? { name: 'x', ...body } : body } : {}),
        headers: { idempotencyKey: randomUUID(), ...(ifMatch ? { ifMatch } : {}) },
      })
    ).json;
  };
  const ids = async (object: string): Promise<string[]> =>
    (
      await tenant.database.query<{ id: string }>(`SELECT id FROM ${tenant.schema}."${object}" ORDER BY random()`)
    ).rows.map(({ id }) => id);

  /** Parents whose stored figures are not those of their children. */
  const wrong = async (): Promise<Anything[]> => {
    const { schema } = tenant;
    const { rows } = await tenant.database.query(`
      SELECT 'Deal' AS object, d.id FROM ${schema}."Deal__c" d, LATERAL (SELECT count(*) AS n, coalesce(sum("Amount__c"), 0) AS s, coalesce(sum(net), 0) AS net, count(*) FILTER (WHERE net < 20) AS small
          FROM (SELECT "Amount__c", round("Amount__c" * (100 - coalesce("Off__c", 0)) / 100, 2) AS net FROM ${schema}."Line__c" WHERE "Deal__c" = d.id) x) l
        WHERE (d."Total__c", d."Lines__c", d."Net__c", d."Small__c") IS DISTINCT FROM (l.s, l.n, l.net, l.small)
      UNION ALL SELECT 'Firm', f.id FROM ${schema}."Firm__c" f, LATERAL (SELECT count(*) AS n, coalesce(sum("Total__c"), 0) AS s FROM ${schema}."Deal__c" WHERE "Firm__c" = f.id) l
        WHERE (f."Total__c", f."Deals__c") IS DISTINCT FROM (l.s, l.n)
      UNION ALL SELECT 'Item', i.id FROM ${schema}."Item__c" i, LATERAL (SELECT count(*) AS n FROM ${schema}."Line__c" WHERE "Item__c" = i.id) l
        WHERE i."Sold__c" IS DISTINCT FROM l.n`);
    return rows;
  };
  const deadlocks = async (): Promise<number> => {
    await tenant.database.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await tenant.database.query<{ n: number }>(
      'SELECT deadlocks::int AS n FROM pg_stat_database WHERE datname = current_database()',
    );
    return rows[0]!.n;
  };

  const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;
  const amount = (): string => (Math.floor(Math.random() * 10_000) / 100).toFixed(2);

  const gone: [string, string][] = [];
  async function remove(object: string, id: string): Promise<void> {
    await send('delete', object, id, null);
    gone.push([object, id]);
  }
  async function bringBack(): Promise<void> {
    const [object, id] = gone.shift() ?? [];
    if (!object) return;
    await tenant.call('data.records.restore', {
      path: { objectApiName: object, id: id! },
      headers: { idempotencyKey: randomUUID() },
    });
  }

  async function step(): Promise<void> {
    const [firms, deals, items] = [await ids('Firm__c'), await ids('Deal__c'), await ids('Item__c')];
    const lines = await ids('Line__c');
    const chance = Math.random();
    if (deals.length < 3) await send('create', 'Deal__c', null, { Firm__c: pick(firms) });
    else if (chance < 0.35 || lines.length === 0)
      await send('create', 'Line__c', null, { Deal__c: pick(deals), Item__c: pick(items), Amount__c: amount() });
    else if (chance < 0.43) await send('update', 'Line__c', pick(lines), { Amount__c: amount() });
    else if (chance < 0.5) await send('update', 'Line__c', pick(lines), { Off__c: Math.floor(Math.random() * 100) });
    else if (chance < 0.65)
      await send('update', 'Line__c', pick(lines), { Deal__c: pick(deals), Item__c: pick(items) });
    else if (chance < 0.72) await remove('Line__c', pick(lines));
    else if (chance < 0.8) await bringBack();
    else if (chance < 0.87) await send('update', 'Deal__c', pick(deals), { Note__c: randomUUID() });
    else if (chance < 0.93) await send('update', 'Deal__c', pick(deals), { Firm__c: pick(firms) });
    else await remove('Deal__c', pick(deals));
  }

  it('are correct in the end, with few retried mutations', async function () {
    this.timeout(120_000);
    for (let i = 0; i < 2; i++) await send('create', 'Firm__c', null, {});
    for (let i = 0; i < 3; i++) await send('create', 'Item__c', null, {});
    const before = await deadlocks();
    const surprises: string[] = [];
    let done = 0;
    await Promise.all(
      Array.from({ length: WRITERS }, async () => {
        for (let i = 0; i < STEPS; i++)
          try {
            await step();
            done++;
          } catch (error) {
            const { code, errors = [] } = error as Anything;
            const codes = [code, ...errors.map((item: Anything) => item.code)];
            // On a busy machine a writer may exceed the lock wait; it is reported as such, not as a deadlock.
            const waited = code === 'WRITE_CONTENTION' && (error as Anything).cause?.code === '55P03';
            if (!waited && !codes.some((item) => EXPECTED.includes(item)))
              surprises.push(`${codes} ${(error as Anything).cause ?? error}`);
          }
      }),
    );
    assert.deepEqual(surprises, []);
    assert.ok(done > (WRITERS * STEPS) / 3, `only ${done} of ${WRITERS * STEPS} steps went through`);
    assert.deepEqual(await wrong(), []);
    const found = (await deadlocks()) - before;
    assert.ok(found <= (WRITERS * STEPS) / 20, `${found} deadlocks in ${WRITERS * STEPS} steps`);
  });

  it('are right when records are parents of each other in a cycle, and writers take turns', async function () {
    this.timeout(60_000);
    const nodes: string[] = [];
    for (let i = 0; i < 3; i++) nodes.push((await send('create', 'Node__c', null, { Own__c: i })).id);
    for (const [i, id] of nodes.entries()) await send('update', 'Node__c', id, { Above__c: nodes[(i + 1) % 3] });
    const before = await deadlocks();
    const codes = new Set<string>();
    await Promise.all(
      Array.from({ length: WRITERS }, async (_, i) => {
        for (let j = 0; j < 5; j++)
          await send('update', 'Node__c', nodes[(i + j) % 3]!, {
            Own__c: 10 * i + j,
            ...(j === 4 ? { Above__c: pick(nodes) } : {}),
          }).catch(({ code, cause }: Anything) => cause?.code === '55P03' || codes.add(code));
      }),
    );
    assert.deepEqual([...codes], ['ETAG_MISMATCH']);
    assert.equal((await deadlocks()) - before, 0);
    const { rows } = await tenant.database.query(
      `SELECT n.id FROM ${tenant.schema}."Node__c" n WHERE n."Below__c" IS DISTINCT FROM (SELECT coalesce(sum("Own__c"), 0) FROM ${tenant.schema}."Node__c" WHERE "Above__c" = n.id)`,
    );
    assert.deepEqual(rows, []);
  });

  it('are right when connections are cut in the middle of writes', async function () {
    this.timeout(120_000);
    const deal = await send('create', 'Deal__c', null, { Firm__c: pick(await ids('Firm__c')) });
    const { schema, database } = tenant;
    // The parent is held, so that writers of its lines stand in their triggers when they die.
    let created = 0;
    let writers: Promise<unknown>[] = [];
    await database.transaction(async (tx) => {
      await tx.query(`SELECT FROM ${schema}."Deal__c" WHERE id = $1 FOR UPDATE`, [deal.id]);
      writers = Array.from({ length: 4 }, () =>
        send('create', 'Line__c', null, { Deal__c: deal.id, Amount__c: amount() }).then(
          () => created++,
          () => {},
        ),
      );
      const cut = async (): Promise<number> =>
        (
          await database.query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
          )
        ).rowCount;
      while ((await cut()) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      await tx.query('SELECT 1');
    });
    await Promise.allSettled(writers);
    assert.deepEqual(await wrong(), []);
    const { rows } = await database.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${schema}."Line__c" WHERE "Deal__c" = $1`,
      [deal.id],
    );
    assert.equal(rows[0]!.n, created, 'a write that was told to be done is there, once');
  });
});
