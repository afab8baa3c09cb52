/** Invariants of a demo tenant's records under any writes, callers and faults. */
import assert from 'node:assert/strict';
import { Client } from 'pg';

/** Rows that must not be there, by what they would mean. `$1`: idempotency keys that were answered as done. */
const WRONG: Readonly<Record<string, string>> = {
  'an order whose total is not the sum of its lines': `
    SELECT o."id" FROM "SalesOrder__c" o LEFT JOIN "SalesOrderLine__c" l ON l."SalesOrderId__c" = o."id" GROUP BY o."id"
    HAVING o."NetAmount__c" IS DISTINCT FROM coalesce(sum(round(l."Quantity__c" * l."UnitPrice__c", 2)), 0) OR o."LineCount__c" <> count(l."id")`,
  'an invoice whose lines do not add up': `
    SELECT i."id" FROM "Invoice__c" i LEFT JOIN "InvoiceLine__c" l ON l."InvoiceId__c" = i."id"
    GROUP BY i."id" HAVING i."LineAmount__c" <> coalesce(sum(round(l."Quantity__c" * l."UnitPrice__c", 2)), 0)`,
  'an invoice whose payments do not add up': `
    SELECT i."id" FROM "Invoice__c" i LEFT JOIN "Payment__c" p ON p."InvoiceId__c" = i."id" AND p."Status__c" IS DISTINCT FROM 'returned'
    GROUP BY i."id" HAVING i."PaidAmount__c" <> coalesce(sum(p."Amount__c"), 0)`,
  'a key that did not do its work in one transaction': `
    SELECT k FROM unnest($1::text[]) k LEFT JOIN _audit a ON a.idempotency_key = k AND a.outcome = 'committed'
    GROUP BY k HAVING count(DISTINCT a.tx) <> 1`,
  'a key that worked more than once': `
    SELECT client_id, user_id, idempotency_key FROM _audit WHERE outcome = 'committed' AND idempotency_key IS NOT NULL
    GROUP BY client_id, user_id, idempotency_key HAVING count(DISTINCT tx) <> 1`,
  'a change that is told twice, or not by all of history, audit and event that should': `
    WITH told AS (
      SELECT 'audit' AS by, record_id, record_version, kind FROM _audit WHERE kind IS NOT NULL
      UNION ALL SELECT 'history', record_id, record_version, operation FROM _history
      UNION ALL SELECT 'event', record_id, record_version, regexp_replace(type, '^data\\.record\\.(transition|restore|create|update|delete)e?d$', '\\1')
        FROM _outbox WHERE type LIKE 'data.record.%')
    SELECT record_id, record_version, kind, array_agg(by) FROM told GROUP BY record_id, record_version, kind
    HAVING (SELECT array_agg(b ORDER BY b) FROM unnest(array_agg(by)) b) NOT IN ('{audit,event,history}', '{audit}', '{audit,event}')`,
  'a record that is live and deleted': `
    SELECT record_id FROM _recycle_bin b JOIN "Account" a ON a."id" = b.record_id
    UNION ALL SELECT record_id FROM _recycle_bin b JOIN "SalesOrder__c" a ON a."id" = b.record_id
    UNION ALL SELECT record_id FROM _recycle_bin b JOIN "SalesOrderLine__c" a ON a."id" = b.record_id`,
  'a reference to a record that is not there': `
    SELECT l."id" FROM "SalesOrderLine__c" l LEFT JOIN "SalesOrder__c" o ON o."id" = l."SalesOrderId__c" WHERE o."id" IS NULL
    UNION ALL SELECT c."id" FROM "Contact" c LEFT JOIN "Account" a ON a."id" = c."accountId" WHERE c."accountId" IS NOT NULL AND a."id" IS NULL`,
};

/** Asks the database itself. `more`: statements like those above that also take `$2`. */
export async function findNothingWrong(
  databaseUrl: string,
  tenantId: string,
  keys: readonly string[],
  more: Readonly<Record<string, string>> = {},
  argument = '',
): Promise<void> {
  const client = new Client({ connectionString: databaseUrl, application_name: 'consistency test' });
  await client.connect();
  try {
    await client.query(`SET search_path = "t_${tenantId.replaceAll('-', '')}"`);
    for (const [what, statement] of Object.entries({ ...WRONG, ...more })) {
      // Every statement takes both values, whatever it needs.
      const text = `WITH given AS (SELECT $1::text[], $2::text) SELECT * FROM (${statement}) wrong LIMIT 3`;
      assert.deepEqual((await client.query(text, [keys, argument])).rows, [], what);
    }
  } finally {
    await client.end();
  }
}
