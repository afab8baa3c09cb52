/**
 * Entries of the audit trails of tenants about what auth changes. The trail belongs to data, whose tables no transaction of auth
 * reaches: an entry is stored in the transaction of the change, sent when it is committed, and sent again until data has it.
 * Source: docs/reference/audit.md#entries-of-other-services.
 */
import type { DataActions } from '../../../contracts/data.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import { randomRest, timeOrderedIdSql } from '../../../mixins/database/time-ordered-id.ts';

export type AuditEntry = DataActions['data.audit.note']['params'];
export type NewAuditEntry = Omit<AuditEntry, 'tenantId' | 'auditId'>;

/** Resolves when the entry is in the trail; repeatable. */
type SendEntry = (entry: AuditEntry) => Promise<unknown>;

/** Adds an entry to the transaction. */
type Note = (entry: NewAuditEntry) => Promise<unknown>;

export interface EntrySender {
  readonly send: SendEntry;
  /** An entry was not sent; it stays stored. */
  readonly failed: (error: unknown) => void;
}

const AT_A_TIME = 200;

export class AuditEntries {
  readonly #database: Database;
  readonly #sender: EntrySender | null;

  /** `sender` null: another process sends the entries. */
  constructor(database: Database, sender: EntrySender | null) {
    this.#database = database;
    this.#sender = sender;
  }

  /** A transaction of the tenant as `svc_auth`, with its entries; resolves once these were sent, or could not be. */
  async change<T>(tenantId: string, work: (tx: Tx, note: Note) => Promise<T>): Promise<T> {
    const entries: AuditEntry[] = [];
    const result = await this.#database.shared('auth', tenantId, (tx) =>
      work(tx, async (entry) => {
        const { auditId } = await tx.one<{ auditId: string }>(insertEntry(tenantId, entry));
        entries.push({ ...entry, tenantId, auditId });
      }),
    );
    for (const entry of entries) await this.#send(entry);
    return result;
  }

  /** Sends what is stored, of all tenants; an entry that fails holds up no other. */
  async sendStored(): Promise<void> {
    for (let after = ''; ; ) {
      const found = await this.#database.login((tx) => tx.all<StoredEntry>(storedEntries(after)));
      for (const { entry, ...stored } of found) await this.#send({ ...entry, ...stored });
      after = found.at(-1)?.auditId ?? '';
      if (found.length < AT_A_TIME) return;
    }
  }

  async #send(entry: AuditEntry): Promise<void> {
    if (!this.#sender) return;
    try {
      await this.#sender.send(entry);
      await this.#database.shared('auth', entry.tenantId, (tx) => tx.query(deleteEntry(entry)));
    } catch (error) {
      this.#sender.failed(error);
    }
  }
}

interface StoredEntry {
  readonly tenantId: string;
  readonly auditId: string;
  readonly entry: NewAuditEntry;
}

function insertEntry(tenantId: string, entry: NewAuditEntry) {
  const sql = new Sql();
  return sql.statement(
    `INSERT INTO auth.audit_entries (tenant_id, audit_id, entry)
     VALUES (${sql.bind(tenantId, 'uuid')}, ${timeOrderedIdSql(sql.bind(randomRest(), 'text'))},
       ${sql.bind(JSON.stringify(entry), 'jsonb')})
     RETURNING audit_id AS "auditId"`,
  );
}

/** In the order of their ids, which is that of their making. */
function storedEntries(after: string) {
  const sql = new Sql();
  const behind = after === '' ? '' : `WHERE audit_id > ${sql.bind(after, 'uuid')}`;
  return sql.statement(`SELECT tenant_id AS "tenantId", audit_id AS "auditId", entry FROM auth.audit_entries ${behind}
     ORDER BY audit_id LIMIT ${AT_A_TIME}`);
}

function deleteEntry({ tenantId, auditId }: AuditEntry) {
  const sql = new Sql();
  return sql.statement(
    `DELETE FROM auth.audit_entries
     WHERE tenant_id = ${sql.bind(tenantId, 'uuid')} AND audit_id = ${sql.bind(auditId, 'uuid')}`,
  );
}
