/**
 * The lifecycle of a tenant, which operators control: suspended and resumed, renamed, deleted and taken back. Each change is one
 * transaction with its entry in the tenant's audit trail; repeating it changes nothing. Source: docs/reference/tenants.md.
 */
import { DELETION_GRACE_DAYS, type TenantDescription } from '../../../contracts/metadata.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import type { Statement } from '../../../mixins/database/statement.ts';
import { writeOperatorEntry } from '../operator-entry.ts';
import { isLine, isTenantName, TENANT_NAME_IS } from '../tenants.ts';
import {
  deleteSql,
  describe,
  findSql,
  type LifeRow,
  listSql,
  renameSql,
  resumeSql,
  suspendSql,
  undeleteSql,
} from './tenant.sql.ts';

/** In which the requests that were admitted before end, and all processes know that the tenant is suspended. */
const SETTLE_SECONDS = 60;
const REASON_MAX_CHARS = 500;
const TAKE_DEFAULT = 100;
const TAKE_MAX = 1_000;

type Given = Readonly<Record<string, unknown>>;
type Operation = Parameters<typeof writeOperatorEntry>[2];

/** Effect of a change; null: none. */
type Change = { readonly statement: Statement; readonly changes: object } | null;

export class TenantLifecycle {
  readonly #database: Database;
  readonly #changed: (tenantId: string) => void;

  /** `changed` is called after each commit. */
  constructor(database: Database, changed: (tenantId: string) => void) {
    this.#database = database;
    this.#changed = changed;
  }

  /** One tenant, or a page of all in the order of their ids. */
  describe({
    key,
    after,
    take = TAKE_DEFAULT,
  }: {
    key?: string;
    after?: string;
    take?: number;
  }): Promise<TenantDescription[]> {
    if (after !== undefined && !isUuid(after)) throw invalid('after', 'must be an id.');
    const statement =
      key === undefined ? listSql(after ?? null, Math.min(take, TAKE_MAX)) : findSql(String(key), false);
    return this.#database.shared('metadata', null, async (tx) => (await tx.all<LifeRow>(statement)).map(describe));
  }

  suspend({ key, reason }: Given): Promise<TenantDescription> {
    if (!isLine(reason, REASON_MAX_CHARS))
      throw invalid('reason', `must be a line of ${REASON_MAX_CHARS} characters at most: the tenant's people read it.`);
    return this.#change('suspend', key, (tenant) =>
      tenant.suspendedAt
        ? null
        : {
            statement: suspendSql(tenant.id, reason),
            changes: { suspended: { from: false, to: true }, reason: { from: null, to: reason } },
          },
    );
  }

  resume({ key }: Given): Promise<TenantDescription> {
    return this.#change('resume', key, (tenant) => {
      if (tenant.deleteAt) throw invalid('key', 'names a tenant that is being deleted: undelete it first.');
      if (!tenant.suspendedAt) return null;
      return { statement: resumeSql(tenant.id), changes: { suspended: { from: true, to: false } } };
    });
  }

  rename({ key, name }: Given): Promise<TenantDescription> {
    if (!isTenantName(name)) throw invalid('name', `must be ${TENANT_NAME_IS}.`);
    return this.#change('rename', key, (tenant) =>
      tenant.name === name
        ? null
        : { statement: renameSql(tenant.id, name), changes: { name: { from: tenant.name, to: name } } },
    );
  }

  delete({ key, confirm, graceDays }: Given): Promise<TenantDescription> {
    const { default: usual, max } = DELETION_GRACE_DAYS;
    if (graceDays !== undefined && !isWithin(graceDays, max))
      throw invalid('graceDays', `must be a whole number of days from 0 to ${max}.`);
    if (confirm !== key) throw invalid('confirm', 'must be the key of the tenant once more.');
    return this.#change('delete', key, (tenant) => {
      if (tenant.deleteAt && graceDays === undefined) return null;
      const days = isWithin(graceDays, max) ? graceDays : usual;
      return {
        statement: deleteSql(tenant.id, days, SETTLE_SECONDS),
        changes: { deleted: { from: tenant.deleteAt !== null, to: true }, graceDays: { from: null, to: days } },
      };
    });
  }

  undelete({ key }: Given): Promise<TenantDescription> {
    return this.#change('undelete', key, (tenant) =>
      tenant.deleteAt ? { statement: undeleteSql(tenant.id), changes: { deleted: { from: true, to: false } } } : null,
    );
  }

  async #change(
    act: 'suspend' | 'resume' | 'rename' | 'delete' | 'undelete',
    key: unknown,
    decide: (tenant: LifeRow) => Change,
  ): Promise<TenantDescription> {
    const operation: Operation = `metadata.tenants.${act}`;
    const found = await this.#database.shared('metadata', null, (tx) => tx.first<LifeRow>(findSql(String(key), false)));
    if (!found) throw noTenant(key);
    const { row, isNew } = await this.#database.shared('metadata', found.id, async (tx) => {
      const tenant = await tx.first<LifeRow>(findSql(found.key, true));
      if (tenant?.id !== found.id) throw noTenant(key);
      if (tenant.erasing) throw invalid('key', 'names a tenant that is being erased: there is no way back.');
      const change = decide(tenant);
      if (!change) return { row: tenant, isNew: false };
      const row = await tx.one<LifeRow>(change.statement);
      await writeOperatorEntry(tx, tenant.id, operation, change.changes);
      return { row, isNew: true };
    });
    if (isNew) this.#changed(row.id);
    return describe(row);
  }
}

const isWithin = (days: unknown, max: number): days is number =>
  typeof days === 'number' && Number.isInteger(days) && days >= 0 && days <= max;

const KEY_SHOWN_CHARS = 40;

const noTenant = (key: unknown): PlatformError =>
  refused('key', `There is no tenant ${String(key).slice(0, KEY_SHOWN_CHARS)}.`);

const invalid = (name: string, what: string): PlatformError => refused(name, `${name} ${what}`);

const refused = (name: string, message: string): PlatformError =>
  new PlatformError('PARAMETER_INVALID', message, { errors: [violation(`/${name}`, 'PARAMETER_INVALID', message)] });
