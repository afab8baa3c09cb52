/**
 * Makes a tenant of what an export gives, within one transaction of the caller: nothing of it is visible before the
 * COMMIT, and nothing is left of one that did not get so far. Source: docs/decisions/moving-a-tenant.md.
 */

import { createHash, type Hash } from 'node:crypto';
import { DEFAULT_REGION } from '../../../config/env.ts';
import type { MovedTable } from '../../../contracts/declaration.ts';
import { messageOf } from '../../../lib/errors/thrown.ts';
import { isObject, membersOf } from '../../../lib/json/objects.ts';
import { LIMITS } from '../../../lib/limits.ts';
import type { RateLimitOverrides, TenantInfo } from '../../../lib/schema/snapshot.ts';
import { requestId, uuidv7 } from '../../../lib/values/ids.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import { emitYaml } from '../../../lib/yaml/emit.ts';
import { parseYaml } from '../../../lib/yaml/parse.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import { sqlState, type Tx } from '../../../mixins/database/database.ts';
import { ownerRole, serviceRole } from '../../../mixins/database/roles.ts';
import { randomRest, timeOrderedIdSql } from '../../../mixins/database/time-ordered-id.ts';
import { CUSTOM_FIELD } from '../../../services/metadata/kinds/bodies/custom-field.ts';
import { CUSTOM_OBJECT } from '../../../services/metadata/kinds/bodies/custom-object.ts';
import { componentsOf, findComponent, type State } from '../../../services/metadata/kinds/component.ts';
import { makeMovedTenant, type StoredComponent } from '../../../services/metadata/moved-tenant.ts';
import { NEWEST_SCHEMA } from '../../../services/metadata/tenants.ts';
import { UserIds } from './ids-of-users.ts';
import {
  ADDRESSES,
  COMPONENTS,
  type ContentPiece,
  type Head,
  type Item,
  MovingRefused,
  objectOf,
  type Rows,
  USERS,
} from './items.ts';
import { maskedEmail, maskedPhone } from './masks.ts';
import { PARTS } from './parts.ts';

/** Changes that make a copy a sandbox, which has no effect outside. */
interface Sandbox {
  /** Secret of this copy. */
  readonly maskKey: string;
  /** Also in records, beside those of users. */
  readonly maskRecords: boolean;
}

export interface ImportOptions {
  /** Where the contents of files are put. */
  readonly blobs: Blobs;
  readonly key: string;
  readonly name?: string | undefined;
  /** null: that of the tenants here. */
  readonly region: string | null;
  /** False: the domains of mail stay where they are. */
  readonly domains: boolean;
  readonly sandbox?: Sandbox;
  /** For the audit trail: of what file. */
  readonly sha256?: string;
}

export interface Imported {
  readonly tenantId: string;
  readonly key: string;
  readonly name: string;
  readonly domains: readonly string[];
  /** That the operator of the original gave, and which hold here. */
  readonly limits: Partial<RateLimitOverrides>;
  readonly users: number;
  /** Rows by part. */
  readonly rows: Readonly<Record<string, number>>;
  /** Users have other ids than in the original. */
  readonly newUserIds: boolean;
  /** Clients that need a new secret. */
  readonly clients: readonly string[];
  /** OpenID providers whose secret must be set again. */
  readonly identityProviders: readonly string[];
}

const TIMEOUTS = `SET LOCAL statement_timeout = '2h'; SET LOCAL idle_in_transaction_session_timeout = '1h'; SET LOCAL lock_timeout = '10s'`;
const BATCH_CHARS = 1024 * 1024;
const REGIONS_SHOWN = 20;
/** All files and what is stored beside them: they are in memory until the tenant is made of them. */
const CONFIGURATION_MAX_CHARS = 2 * LIMITS.metadata_tenant_files_max_bytes;
const CREDENTIALS_PER_BATCH = 1_000;
const CLIENTS = 'externalClients/';
const PROVIDERS = 'identityProviders/';

export class TenantImport {
  readonly #tx: Tx;
  readonly #options: ImportOptions;
  readonly #userIds: string[] = [];
  readonly #files: Record<string, string> = {};
  readonly #stored: StoredComponent[] = [];
  readonly #addresses: string[] = [];
  readonly #clients: string[] = [];
  readonly #providers: string[] = [];
  readonly #integrationUsers = new Set<string>();
  readonly #rows: Record<string, number> = {};
  #configurationChars = 0;
  #head: Head | null = null;
  #region = DEFAULT_REGION;
  #loading: Loading | null = null;

  constructor(tx: Tx, options: ImportOptions) {
    this.#tx = tx;
    this.#options = options;
  }

  async accept(item: Item): Promise<void> {
    if (item.kind === 'head') return this.#begin(item.head);
    if (item.kind === 'content') {
      this.#loading ??= await this.#make();
      await this.#loading.content(item);
    } else if (item.kind === 'file') {
      this.#hold(item.path.length + item.text.length);
      this.#files[item.path] = this.#fileOf(item.path, item.text);
    } else if (item.part === USERS) for (const line of item.lines) this.#userIds.push(JSON.parse(line).id);
    else if (item.part === ADDRESSES) this.#addresses.push(...item.lines);
    else if (item.part === COMPONENTS)
      for (const line of item.lines) {
        this.#hold(line.length);
        this.#stored.push(JSON.parse(line));
      }
    else {
      this.#loading ??= await this.#make();
      await this.#loading.load(item);
      this.#rows[item.part] = (this.#rows[item.part] ?? 0) + item.lines.length;
    }
  }

  /** Throws for more configuration than any tenant may have, so that no file takes all memory. */
  #hold(chars: number): void {
    this.#configurationChars += chars;
    if (this.#configurationChars > CONFIGURATION_MAX_CHARS)
      throw new MovingRefused(
        `The configuration in the file has more than ${CONFIGURATION_MAX_CHARS} characters, which no tenant may have. ` +
          'Nothing was imported.',
      );
  }

  /** Behind the last item. */
  async finish(): Promise<Imported> {
    const head = this.#headOr();
    this.#loading ??= await this.#make();
    const { tenant, newUserIds } = this.#loading;
    await this.#loading.finish();
    return {
      tenantId: tenant.id,
      key: tenant.key,
      name: tenant.name,
      domains: this.#options.domains ? head.domains : [],
      limits: this.#options.sandbox ? {} : head.tenant.operatorLimits,
      users: this.#userIds.length,
      rows: this.#rows,
      newUserIds,
      clients: this.#clients,
      identityProviders: this.#providers,
    };
  }

  /** Nothing is left in the store of a tenant that was not made. */
  async discard(): Promise<void> {
    await this.#loading?.removeContents();
  }

  #headOr(): Head {
    if (!this.#head) throw new MovingRefused('The file does not begin with the tenant.');
    return this.#head;
  }

  /** Refuses what cannot be imported before anything is made. */
  async #begin(head: Head): Promise<void> {
    this.#head = head;
    const { key, domains } = this.#options;
    if (head.tenantSchemaVersion > NEWEST_SCHEMA)
      throw new MovingRefused(
        `The file was made by a newer version of the platform (tables of version ${head.tenantSchemaVersion}, here ` +
          `${NEWEST_SCHEMA}): upgrade this installation first.`,
      );
    if (!/^[a-z][a-z0-9]{1,30}$/.test(key)) throw new MovingRefused(`${key} is no key of a tenant, such as acme.`);
    await this.#tx.query(TIMEOUTS);
    const taken = await this.#tx.first<{ goes: string | null }>({
      text: `SELECT to_char(coalesce(erasing_since, delete_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI "UTC"') AS goes
        FROM metadata.tenants WHERE key = $1`,
      values: [key],
    });
    if (taken)
      throw new MovingRefused(
        `There is a tenant ${key} here${taken.goes === null ? '' : `, which is going to be erased (${taken.goes})`}. ` +
          'Give the import another key with --key.',
      );
    this.#region = this.#options.region ?? (await this.#regionHere());
    if (!domains) return;
    const owned = await this.#tx.all<{ domain: string }>({
      text: 'SELECT domain FROM auth.domains WHERE domain = ANY ($1::text[]) ORDER BY domain',
      values: [head.domains],
    });
    if (owned.length > 0)
      throw new MovingRefused(
        `Another tenant has the domain ${owned.map(({ domain }) => domain).join(', ')}. Remove it there, or import ` +
          'without domains with --without-domains.',
      );
  }

  /** Required when the installation has several. */
  async #regionHere(): Promise<string> {
    const regions = await this.#tx.all<{ region: string }>({
      text: `SELECT region FROM metadata.tenants WHERE erasing_since IS NULL GROUP BY region ORDER BY region LIMIT ${REGIONS_SHOWN}`,
      values: [],
    });
    if (regions.length > 1)
      throw new MovingRefused(
        `Set REGION to the one that the tenant belongs to: those here are in ${regions.map(({ region }) => region).join(', ')}.`,
      );
    return regions[0]?.region ?? DEFAULT_REGION;
  }

  #fileOf(path: string, text: string): string {
    if (!path.startsWith(CLIENTS) && !path.startsWith(PROVIDERS)) return text;
    const body = parseYaml(text).value;
    if (!isObject(body)) return text;
    if (path.startsWith(PROVIDERS)) this.#providers.push(String(body['apiName']));
    else if (body['confidential'] === true && body['jwks'] === undefined) this.#clients.push(String(body['apiName']));
    if (!this.#options.sandbox) return text;
    if (typeof body['integrationUser'] === 'string') this.#integrationUsers.add(body['integrationUser'].toLowerCase());
    return emitYaml({ ...body, active: false });
  }

  async #make(): Promise<Loading> {
    const head = this.#headOr();
    const { key, name, domains, sandbox } = this.#options;
    const { operatorLimits, edition, locale, timezone, currency, rateLimits, ...tenant } = head.tenant;
    const info: TenantInfo = {
      id: uuidv7(),
      key,
      name: name ?? tenant.name,
      region: this.#region,
      edition,
      sandbox: sandbox ? true : tenant.sandbox,
      locale,
      timezone,
      currency,
      rateLimits,
    };
    const taken = await this.#tx.all({
      text: 'SELECT FROM auth.credentials WHERE user_id = ANY ($1::uuid[]) LIMIT 1',
      values: [this.#userIds],
    });
    const userIds = taken.length > 0 ? new UserIds(info.id, this.#userIds) : null;
    const stored = userIds ? JSON.parse(userIds.renamed(JSON.stringify(this.#stored))) : this.#stored;
    const state = await makeMovedTenant(this.#tx, {
      info,
      metadataVersion: head.metadataVersion,
      files: this.#files,
      stored,
    });
    if (!state) throw new MovingRefused(`There is a tenant ${key} here. Give the import another key with --key.`);
    const loading = new Loading(this.#tx, head, {
      blobs: this.#options.blobs,
      tenant: info,
      state,
      userIds,
      ...(sandbox ? { sandbox } : {}),
      integrationUsers: [...this.#integrationUsers],
      // All addresses of a sandbox are masked.
      addresses: sandbox ? [] : this.#addresses,
      withRecords: Object.keys(head.columns).some((part) => objectOf(part) !== null && part !== 'records/User'),
      sha256: this.#options.sha256 ?? null,
    });
    this.#tx.actAs(serviceRole('metadata', info.id));
    if (!sandbox)
      await this.#tx.query('UPDATE metadata.tenants SET operator_limits = $2 WHERE id = $1', [
        info.id,
        JSON.stringify(operatorLimits),
      ]);
    if (domains && head.domains.length > 0) {
      this.#tx.actAs(serviceRole('auth', info.id));
      await this.#tx
        .query('INSERT INTO auth.domains (tenant_id, domain) SELECT $1, unnest($2::text[])', [info.id, head.domains])
        .catch((error: unknown) => {
          if (sqlState(error) === '23505') throw new MovingRefused('Another tenant got one of the domains meanwhile.');
          throw error;
        });
    }
    await loading.begin();
    return loading;
  }
}

interface Into {
  readonly blobs: Blobs;
  readonly tenant: TenantInfo;
  readonly state: State;
  /** Null: users keep their ids. */
  readonly userIds: UserIds | null;
  readonly sandbox?: Sandbox;
  readonly integrationUsers: readonly string[];
  readonly addresses: readonly string[];
  readonly withRecords: boolean;
  readonly sha256: string | null;
}

interface Constraint {
  readonly table: string;
  readonly name: string;
  readonly definition: string;
}

/** How the rows of a part are stored. */
interface Target {
  readonly service: string | null;
  /** Takes the rows as $1, and the tenant as $2 where the table has all tenants. */
  readonly statement: string;
  readonly before: string | null;
  readonly ofCredentials: boolean;
}

/** The rows of the tenant that was made. */
class Loading {
  readonly tenant: TenantInfo;
  readonly #tx: Tx;
  readonly #head: Head;
  readonly #into: Into;
  readonly #schema: string;
  readonly #targets = new Map<string, Target | null>();
  #keys: readonly Constraint[] = [];
  #knowsUsers = false;
  #indexes: readonly { readonly name: string; readonly definition: string }[] = [];
  #triggers: readonly string[] = [];
  #content: { readonly sha256: string; readonly hash: Hash; bytes: number } | null = null;
  readonly #blobKeys: string[] = [];

  constructor(tx: Tx, head: Head, into: Into) {
    this.#tx = tx;
    this.#head = head;
    this.#into = into;
    this.tenant = into.tenant;
    this.#schema = ownerRole(into.tenant.id).schema;
  }

  get newUserIds(): boolean {
    return this.#into.userIds !== null;
  }

  #asOwner(): void {
    this.#tx.actAs(ownerRole(this.tenant.id));
  }

  /**
   * Rows come in any order, and as they were: without foreign keys and triggers. Indexes are made faster of all of them.
   */
  async begin(): Promise<void> {
    this.#refuseOthers();
    this.#asOwner();
    const namespace = literal(this.#schema);
    this.#keys = await this.#tx.all<Constraint>({
      text: `SELECT conrelid::regclass::text AS table, quote_ident(conname) AS name, pg_get_constraintdef(oid) AS definition
        FROM pg_constraint WHERE connamespace = to_regnamespace(${namespace}) AND contype = 'f' ORDER BY 1, 2`,
    });
    this.#indexes = await this.#tx.all({
      text: `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE c.relnamespace = to_regnamespace(${namespace})
          AND NOT EXISTS (SELECT FROM pg_constraint o WHERE o.conindid = i.indexrelid AND o.contype <> 'f')
        ORDER BY 1`,
    });
    const triggers = await this.#tx.all<{ table: string }>({
      text: `SELECT DISTINCT t.tgrelid::regclass::text AS table FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE c.relnamespace = to_regnamespace(${namespace}) AND NOT t.tgisinternal ORDER BY 1`,
    });
    this.#triggers = triggers.map(({ table }) => table);
    await this.#statements([
      ...this.#keys.map(({ table, name }) => `ALTER TABLE ${table} DROP CONSTRAINT ${name}`),
      ...this.#indexes.map(({ name }) => `DROP INDEX ${name}`),
      ...this.#triggers.map((table) => `ALTER TABLE ${table} DISABLE TRIGGER USER`),
    ]);
  }

  async load({ part, lines }: Rows): Promise<void> {
    let target = this.#targets.get(part);
    if (target === undefined) {
      target = await this.#target(part);
      this.#targets.set(part, target);
      if (target?.ofCredentials) await this.#credentials();
      if (target?.before) {
        this.#as(target);
        await this.#tx.query(target.before);
      }
    }
    if (target === null) return;
    this.#as(target);
    for (const batch of batches(lines)) {
      const text = `[${batch.join(',')}]`;
      const json = this.#into.userIds?.renamed(text) ?? text;
      const { rowCount } = await this.#tx
        .query(target.statement, target.service === null ? [json] : [json, this.tenant.id])
        .catch((error: unknown) => {
          throw misfit(part, error);
        });
      if (rowCount !== batch.length) throw new MovingRefused(`Rows of ${part} are missing.`);
    }
  }

  /** The next piece of a content becomes a blob of its own. */
  async content({ sha256, bytes }: ContentPiece): Promise<void> {
    if (this.#content?.sha256 !== sha256) {
      this.#endContent();
      this.#content = { sha256, hash: createHash('sha256'), bytes: 0 };
    }
    const { id } = this.tenant;
    const key = this.#into.blobs.newKey(id);
    this.#blobKeys.push(key);
    await this.#into.blobs.write(key, piecesOf(bytes));
    this.#tx.actAs(serviceRole('files', id));
    await this.#tx
      .query('INSERT INTO files.blobs (tenant_id, key, sha256, position, bytes) VALUES ($1, $2, $3, $4, $5)', [
        id,
        key,
        sha256,
        this.#content.bytes,
        bytes.length,
      ])
      .catch((error: unknown) => {
        throw misfit('contents', error);
      });
    this.#content.hash.update(bytes);
    this.#content.bytes += bytes.length;
  }

  #endContent(): void {
    if (this.#content && this.#content.hash.digest('hex') !== this.#content.sha256)
      throw new MovingRefused(`The content ${this.#content.sha256} of the file has other bytes than it says.`);
    this.#content = null;
  }

  async removeContents(): Promise<void> {
    for (const key of this.#blobKeys) await this.#into.blobs.remove(key);
  }

  #as({ service }: Target): void {
    if (service === null) this.#asOwner();
    else this.#tx.actAs(serviceRole(service, this.tenant.id));
  }

  async #target(part: string): Promise<Target | null> {
    const object = objectOf(part);
    const known = PARTS.find(({ name }) => name === part);
    if (object !== null) return this.#records(part, object);
    if (!known) throw new MovingRefused(`The file has the part ${part.slice(0, 100)}, which is not known here.`);
    // A chain over rows in which users have other ids would be a broken one: a new one begins.
    if (known.sealed && this.newUserIds) return null;
    return this.#part(known);
  }

  /** Only objects of the configuration: the schema of a tenant also has tables of the platform, such as its trail. */
  #refuseOthers(): void {
    const { columns, counters } = this.#head;
    const objects = [...Object.keys(columns).flatMap((part) => objectOf(part) ?? []), ...counters.map((c) => c.object)];
    const unknown = new Set(objects.filter((object) => !findComponent(this.#into.state, CUSTOM_OBJECT, object)));
    if (unknown.size === 0) return;
    throw new MovingRefused(
      `The file has records of what its configuration does not have: ${[...unknown].slice(0, 10).join(', ').slice(0, 500)}.`,
    );
  }

  async #records(part: string, object: string): Promise<Target> {
    const columns = await this.#columns(part, this.#schema, object);
    const stored = object === 'User' ? this.#ofUsers() : new Map<string, string>();
    const { sandbox } = this.#into;
    if (sandbox && (sandbox.maskRecords || object === 'User'))
      for (const [field, sql] of masks(this.#into.state, object, sandbox.maskKey))
        if (!stored.has(field)) stored.set(field, sql);
    return {
      service: null,
      statement: insertSql(`${this.#schema}.${identifier(object)}`, columns, stored),
      before: null,
      ofCredentials: false,
    };
  }

  /** Stored values of users that replace those of the file. */
  #ofUsers(): Map<string, string> {
    const stored = new Map<string, string>();
    const { sandbox, integrationUsers, withRecords } = this.#into;
    if (sandbox) {
      // auth takes the username for the address of who has none.
      stored.set('email', maskedEmail(sandbox.maskKey, 'coalesce(r."email", r."username")'));
      const names = integrationUsers.map(literal).join(', ');
      stored.set('active', `r."active" AND NOT coalesce(lower(r."username") = ANY (ARRAY[${names}]::text[]), false)`);
    }
    if (!withRecords) for (const field of this.#referencesOf(`${this.#schema}."User"`)) stored.set(field, 'NULL');
    return stored;
  }

  /** The columns of a table that refer to other tables. */
  #referencesOf(table: string): string[] {
    return this.#keys.flatMap(({ table: own, definition }) => {
      const [, column, target] = /^FOREIGN KEY \((.+?)\) REFERENCES (.+?)\(/.exec(definition) ?? [];
      return own === table && column !== undefined && target !== table ? [column.replace(/^"(.*)"$/, '$1')] : [];
    });
  }

  async #part({ name, table, stored = {}, replaces, ofCredentials }: MovedTable): Promise<Target> {
    const dot = table.indexOf('.');
    const [service, relation] = dot < 0 ? [null, table] : [table.slice(0, dot), table.slice(dot + 1)];
    const schema = service ?? this.#schema;
    const columns = await this.#columns(name, schema, relation);
    const full = `${schema}.${identifier(relation)}`;
    return {
      service,
      statement: insertSql(full, columns, new Map(Object.entries(stored)), service !== null),
      before: replaces ? `DELETE FROM ${full}` : null,
      ofCredentials: ofCredentials ?? false,
    };
  }

  /** The columns of the file, all of which the table must have: nothing is lost in silence. */
  async #columns(part: string, schema: string, table: string): Promise<readonly string[]> {
    const rows = await this.#tx.all<{ name: string }>({
      text: `SELECT a.attname::text AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = to_regnamespace($1) AND c.relname = $2 AND c.relkind = 'r'
          AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''`,
      values: [schema, table],
    });
    const there = new Set(rows.map(({ name }) => name));
    const columns = this.#head.columns[part] ?? [];
    const missing = columns.filter((column) => !there.has(column));
    if (columns.length === 0 || missing.length > 0)
      throw new MovingRefused(
        `The part ${part} of the file does not fit: ${missing.length > 0 ? `there is no ${missing.join(', ')} here` : 'it names no columns'}.`,
      );
    return columns;
  }

  /** Keys, indexes and triggers come back, counters go on, and users can be given a password. */
  async finish(): Promise<void> {
    this.#endContent();
    this.#asOwner();
    await this.#statements(this.#indexes.map(({ definition }) => definition));
    for (const { table, name, definition } of this.#keys)
      await this.#tx.query(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`).catch((error: unknown) => {
        throw misfit(table, error);
      });
    await this.#statements(this.#triggers.map((table) => `ALTER TABLE ${table} ENABLE TRIGGER USER`));
    await this.#counters();
    await this.#entry();
    await this.#credentials();
    this.#asOwner();
    const tables = Object.keys(this.#head.columns).flatMap((part) => objectOf(part) ?? []);
    await this.#tx.query(
      `ANALYZE ${[...tables, '_audit', '_history'].map((table) => `${this.#schema}.${identifier(table)}`).join(', ')}`,
    );
  }

  async #counters(): Promise<void> {
    if (!this.#into.withRecords) return;
    for (const { object, field, value, given } of this.#head.counters)
      await this.#tx.query(`SELECT setval(pg_get_serial_sequence($1, $2)::regclass, $3, $4)`, [
        `${this.#schema}.${identifier(object)}`,
        field,
        value,
        given,
      ]);
  }

  /** Records the origin of the tenant in its audit trail. */
  async #entry(): Promise<void> {
    const { tenant, exportedAt, audit } = this.#head;
    const { sandbox, sha256 } = this.#into;
    const from = {
      tenantId: tenant.id,
      key: tenant.key,
      exportedAt,
      auditTrailEndedAt: `${audit.position}:${audit.hash}`,
    };
    const changes = { from, ...(sha256 === null ? {} : { sha256 }), newUserIds: this.newUserIds };
    await this.#tx.query(
      `INSERT INTO ${this.#schema}._audit (audit_id, channel, operation_id, outcome, request_id, changes)
        VALUES (${timeOrderedIdSql('$1::text')}, 'job', $2, 'committed', $3, $4)`,
      [randomRest(), sandbox ? 'tenants.copy' : 'tenants.import', requestId(), JSON.stringify(changes)],
    );
  }

  /**
   * Users without a password, who are not invited of themselves: an operator or an administrator sees to that. An address
   * that was not confirmed is not now.
   */
  async #credentials(): Promise<void> {
    if (this.#knowsUsers) return;
    this.#knowsUsers = true;
    const { userIds, addresses } = this.#into;
    const confirmed = new Map(
      addresses.map((line) => {
        const user = membersOf(JSON.parse(userIds?.renamed(line) ?? line));
        return [String(user['id']), user['confirmed']];
      }),
    );
    for (let after: string | null = null; ; ) {
      this.#asOwner();
      const users: { id: string; email: string }[] = await this.#tx.all<{ id: string; email: string }>({
        text: `SELECT id, username, coalesce(email, username) AS email, active IS NOT FALSE AS active
          FROM ${this.#schema}."User" WHERE username IS NOT NULL AND ($1::uuid IS NULL OR id > $1)
          ORDER BY id LIMIT ${CREDENTIALS_PER_BATCH}`,
        values: [after],
      });
      const last = users.at(-1);
      if (!last) return;
      this.#tx.actAs(serviceRole('auth', this.tenant.id));
      await this.#tx.query(
        `INSERT INTO auth.credentials (tenant_id, user_id, username, email, pending_email, active, invited_at)
          SELECT $1, id, username, coalesce(confirmed, email), CASE WHEN confirmed IS NOT NULL THEN email END,
            active, now()
          FROM json_to_recordset($2) AS u (id uuid, username text, email text, confirmed text, active boolean)`,
        [this.tenant.id, JSON.stringify(users.map((user) => ({ ...user, confirmed: confirmed.get(user.id) ?? null })))],
      );
      after = last.id;
    }
  }

  async #statements(statements: readonly string[]): Promise<void> {
    for (const statement of statements) await this.#tx.query(statement);
  }
}

async function* piecesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

/** Lines of about the same size together, without making lists of single characters of them. */
function* batches(lines: readonly string[]): Generator<readonly string[]> {
  let start = 0;
  let chars = 0;
  for (const [i, line] of lines.entries()) {
    chars += line.length;
    if (chars < BATCH_CHARS) continue;
    yield lines.slice(start, i + 1);
    [start, chars] = [i + 1, 0];
  }
  if (start < lines.length) yield lines.slice(start);
}

function insertSql(
  table: string,
  columns: readonly string[],
  stored: ReadonlyMap<string, string>,
  ofTenant = false,
): string {
  const values = columns.map((column) => stored.get(column) ?? `r.${identifier(column)}`);
  const added = [...stored.keys()].filter((column) => !columns.includes(column));
  const names = [...(ofTenant ? ['tenant_id'] : []), ...columns].map(identifier);
  if (added.length > 0) throw new Error(`${table} has no ${added.join(', ')} in the file.`);
  return `INSERT INTO ${table} (${names.join(', ')})
    SELECT ${[...(ofTenant ? ['$2::uuid'] : []), ...values].join(', ')} FROM json_populate_recordset(NULL::${table}, $1::json) r`;
}

/** SQL of what is stored in place of addresses and telephone numbers of an object, by field. */
function masks(state: State, object: string, key: string): [string, string][] {
  return componentsOf(state, CUSTOM_FIELD).flatMap(({ body }): [string, string][] => {
    const { apiName, fieldType: type, length } = body;
    if (body.object !== object || (type !== 'email' && type !== 'phone')) return [];
    const value = `r.${identifier(apiName)}`;
    const mask = type === 'email' ? maskedEmail : maskedPhone;
    return [[apiName, `CASE WHEN ${value} IS NOT NULL THEN ${mask(key, value, length)} END`]];
  });
}

/** Classes of errors that come from what the file says. */
const OF_THE_FILE = /^(22|23|42701)/;

const misfit = (part: string, error: unknown): unknown =>
  OF_THE_FILE.test(sqlState(error) ?? '')
    ? new MovingRefused(`What the file has for ${part} does not fit together: ${messageOf(error)}.`)
    : error;
