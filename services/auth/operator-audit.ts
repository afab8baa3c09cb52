/** Audit entries of operators' acts that concern every tenant. */
import type { Tenant } from './clients.ts';
import type { AuditEntries } from './store/audit-entries.ts';
import { operatorAct } from './store/entries.ts';

const PAGE = 200;

export class OperatorAudit {
  readonly #entries: AuditEntries;
  readonly #tenants: (after: string | undefined, take: number) => Promise<Tenant[]>;

  constructor(entries: AuditEntries, tenants: (after: string | undefined, take: number) => Promise<Tenant[]>) {
    this.#entries = entries;
    this.#tenants = tenants;
  }

  /** An act that concerns every tenant is in the trail of each of them. */
  async noteForAll(operationId: string): Promise<void> {
    for (let after: string | undefined; ; ) {
      const page = await this.#tenants(after, PAGE);
      for (const { id } of page) await this.#entries.change(id, (_tx, note) => note(operatorAct(operationId, {})));
      const last = page.at(-1);
      if (!last || page.length < PAGE) return;
      after = last.id;
    }
  }
}
