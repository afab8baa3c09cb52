/**
 * Reads a tenant out of the database while it works: one snapshot, in one transaction that only reads, in batches of a
 * bounded size. Source: docs/decisions/moving-a-tenant.md.
 */

import { buffer } from 'node:stream/consumers';
import type { MovedTable } from '../../../contracts/declaration.ts';
import { tenantSchema } from '../../../lib/context.ts';
import type { RateLimitOverrides } from '../../../lib/schema/snapshot.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import { type Database, sqlState, type Tx } from '../../../mixins/database/database.ts';
import { serviceRole, tenantRole } from '../../../mixins/database/roles.ts';
import { writeOperatorEntry } from '../../../services/metadata/operator-entry.ts';
import { NEWEST_SCHEMA } from '../../../services/metadata/tenants.ts';
import {
  ADDRESSES,
  COMPONENTS,
  type Counter,
  FORMAT,
  FORMAT_VERSION,
  type Head,
  MovingRefused,
  recordsOf,
  type Sink,
  USERS,
} from './items.ts';
import { PARTS } from './parts.ts';

export interface ExportOptions {
  /** Where the contents of files are. */
  readonly blobs: Blobs;
  /** Records of all objects; without, those of users alone. */
  readonly records: boolean;
  /** Recorded events: history, audit trail, recycle bin, runs of agents, deployments. */
  readonly trail: boolean;
}

/** Target size of a batch in characters, and its maximum in rows. */
const BATCH_CHARS = 1024 * 1024;
const BATCH_ROWS_MAX = 5_000;
const FIRST_ROWS = 20;
const BLOBS_PER_BATCH = 500;
/** Of a content that travels; each is in memory. */
const PIECE_BYTES = 4 * 1024 * 1024;

const READ_ONLY = 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY';
/** A process that hangs gives its snapshot back some time; one that waits for a disk keeps it. */
const LIMITS = `SET LOCAL statement_timeout = '1h'; SET LOCAL idle_in_transaction_session_timeout = '1h'; SET LOCAL lock_timeout = '10s'`;
const PASSES: ReadonlySet<string | null> = new Set(['55P03', '42P01']);
const ATTEMPTS = 5;

interface TenantRow {
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly region: string;
  readonly edition: string;
  readonly sandbox: boolean;
  readonly locale: string;
  readonly timezone: string;
  readonly currency: string;
  readonly rateLimits: RateLimitOverrides;
  readonly operatorLimits: RateLimitOverrides;
  readonly metadataVersion: number;
  readonly schemaVersion: number;
  readonly tables: readonly string[];
}

const TENANT = `SELECT id, key, name, region, edition, sandbox, locale, timezone, currency, rate_limits AS "rateLimits",
    operator_limits AS "operatorLimits", metadata_version AS "metadataVersion",
    tenant_schema_version AS "schemaVersion",
    ARRAY(SELECT relname::text FROM pg_class WHERE relkind = 'r'
      AND relnamespace = to_regnamespace('t_' || replace(id::text, '-', '')) ORDER BY relname) AS tables
  FROM metadata.tenants WHERE key = $1 AND erasing_since IS NULL`;

/** Gives everything to `sink`, in the order in which an import takes it. Answers the head. */
export async function exportTenant(database: Database, key: string, options: ExportOptions, sink: Sink): Promise<Head> {
  await noteExport(database, await findTenant(database, key), options);
  for (let attempt = 1; ; attempt++) {
    const tenant = await findTenant(database, key);
    const head = await database
      .transaction(async (tx) => {
        const isSame = await lock(tx, tenant).catch((error: unknown) => {
          if (PASSES.has(sqlState(error))) throw new Passing();
          throw error;
        });
        return isSame ? new Reading(tx, tenant, sink).run(options) : null;
      })
      .catch((error: unknown) => {
        if (error instanceof Passing) return null;
        throw error;
      });
    if (head) return head;
    if (attempt === ATTEMPTS)
      throw new MovingRefused(
        'The configuration of the tenant is being changed: try again when its deployment has ended.',
      );
  }
}

/** Before anything is read: no copy of a tenant is made without an entry in its audit trail. */
async function noteExport(database: Database, { id }: TenantRow, { records, trail }: ExportOptions): Promise<void> {
  const parts = ['configuration and users', ...(records ? ['records'] : []), ...(trail ? ['trail'] : [])];
  const changes = { exported: { from: null, to: parts.join(', ') } };
  await database.shared('metadata', id, (tx) => writeOperatorEntry(tx, id, 'tenants.export', changes));
}

/** A deployment is under way, or was a moment ago. */
class Passing extends Error {}

async function findTenant(database: Database, key: string): Promise<TenantRow> {
  const { rows } = await database.query<TenantRow>(TENANT, [key]);
  const [tenant] = rows;
  if (!tenant) throw new MovingRefused(`There is no tenant ${key}.`);
  if (tenant.schemaVersion < NEWEST_SCHEMA)
    throw new MovingRefused('The tables of the tenant are of an older version: run `npm run migrate` first.');
  if (tenant.schemaVersion > NEWEST_SCHEMA)
    throw new MovingRefused(
      'The tables of the tenant are of a newer version of the platform: export it with that one.',
    );
  return tenant;
}

/**
 * Keeps all tables as they are, before there is a snapshot: one that is rewritten later would look empty to it. A deployment
 * that alters one of them waits. False: the configuration has changed since `tenant` was read.
 */
async function lock(tx: Tx, tenant: TenantRow): Promise<boolean> {
  await tx.query(`${READ_ONLY}; ${LIMITS}`);
  tx.actAs(tenantRole(tenant.id));
  const { schema } = tx;
  await tx.query(
    `LOCK TABLE ${tenant.tables.map((name) => `${schema}.${identifier(name)}`).join(', ')} IN ACCESS SHARE MODE`,
  );
  tx.actAs(serviceRole('metadata', tenant.id));
  const now = await tx.first<TenantRow>({ text: TENANT, values: [tenant.key] });
  return now?.metadataVersion === tenant.metadataVersion && now.tables.join() === tenant.tables.join();
}

/** A table as it is read: its quoted name, the role that reads it and its columns. */
interface Source {
  readonly part: string;
  readonly table: string;
  readonly service: string | null;
  readonly columns: readonly string[];
  readonly where: string | null;
  readonly order: string | null;
}

interface ComponentRow {
  readonly type: string;
  readonly fullName: string;
  readonly path: string;
  readonly yaml: string;
  readonly line: string;
}

class Reading {
  readonly #tx: Tx;
  readonly #tenant: TenantRow;
  readonly #schema: string;
  readonly #sink: Sink;

  constructor(tx: Tx, tenant: TenantRow, sink: Sink) {
    this.#tx = tx;
    this.#tenant = tenant;
    this.#schema = identifier(tenantSchema(tenant.id));
    this.#sink = sink;
  }

  async run({ blobs, records, trail }: ExportOptions): Promise<Head> {
    const components = await this.#components();
    const objects = components.filter(({ type }) => type === 'CustomObject').map(({ fullName }) => fullName);
    const sources = [
      ...(await this.#records(records ? objects : ['User'])),
      ...(await this.#parts(
        PARTS.filter(({ group }) => group === 'setup' || (group === 'trail' ? trail : records)),
        objects,
      )),
    ];
    const head = await this.#head(sources, objects);
    await this.#sink({ kind: 'head', head });
    await this.#rows(USERS, null, `SELECT json_build_object('id', u.id)::text AS line FROM ${this.#schema}."User" u`);
    await this.#rows(
      ADDRESSES,
      'auth',
      `SELECT json_build_object('id', c.user_id, 'confirmed', c.email)::text AS line FROM auth.credentials c
        WHERE c.tenant_id = ${literal(this.#tenant.id)} AND c.pending_email IS NOT NULL`,
    );
    await this.#sink({ kind: 'rows', part: COMPONENTS, lines: components.map(({ line }) => line) });
    for (const { path, yaml } of components) await this.#sink({ kind: 'file', path, text: yaml });
    for (const source of sources) await this.#table(source);
    if (records) await this.#contents(blobs);
    return head;
  }

  async #components(): Promise<ComponentRow[]> {
    this.#as('metadata');
    return this.#tx.all<ComponentRow>({
      text: `SELECT type, full_name AS "fullName", path, yaml, json_build_object('type', type, 'fullName', full_name,
          'path', path, 'system', system, 'changedAtVersion', changed_at_version, 'updatedAt', updated_at,
          'updatedById', updated_by_id)::text AS line
        FROM metadata.components WHERE tenant_id = $1 ORDER BY path`,
      values: [this.#tenant.id],
    });
  }

  /** The tables of these objects, users first, without the columns that are kept of deleted fields. */
  async #records(objects: readonly string[]): Promise<Source[]> {
    this.#as('metadata');
    const deleted = await this.#tx.all<{ name: string }>({
      text: `SELECT full_name AS name FROM metadata.deleted_components WHERE tenant_id = $1 AND type = 'CustomField'`,
      values: [this.#tenant.id],
    });
    const kept = new Set(deleted.map(({ name }) => name));
    const ordered = ['User', ...objects.filter((name) => name !== 'User').sort()];
    const columns = await this.#columns(tenantSchema(this.#tenant.id), ordered);
    return ordered.map((object) => ({
      part: recordsOf(object),
      table: `${this.#schema}.${identifier(object)}`,
      service: null,
      columns: (columns.get(object) ?? []).filter((column) => !kept.has(`${object}.${column}`)),
      where: null,
      order: null,
    }));
  }

  async #parts(parts: readonly MovedTable[], objects: readonly string[]): Promise<Source[]> {
    const list = `ARRAY[${objects.map(literal).join(', ')}]::text[]`;
    const sources: Source[] = [];
    for (const { name, table, omit = [], where, order } of parts) {
      const dot = table.indexOf('.');
      const [service, relation] = [dot < 0 ? null : table.slice(0, dot), table.slice(dot + 1)];
      const schema = service ?? tenantSchema(this.#tenant.id);
      const columns = (await this.#columns(schema, [relation])).get(relation) ?? [];
      const conditions = [
        ...(service === null ? [] : [`t.tenant_id = ${literal(this.#tenant.id)}`]),
        ...(where === undefined ? [] : [where.replace('{objects}', () => list)]),
      ];
      sources.push({
        part: name,
        table: `${identifier(schema)}.${identifier(relation)}`,
        service,
        columns: columns.filter((column) => column !== 'tenant_id' && !omit.includes(column)),
        where: conditions.length > 0 ? conditions.join(' AND ') : null,
        order: order ?? null,
      });
    }
    return sources;
  }

  /** The columns of tables that hold values of their own, in their order. */
  async #columns(schema: string, tables: readonly string[]): Promise<Map<string, string[]>> {
    const rows = await this.#tx.all<{ name: string; columns: string[] }>({
      text: `SELECT c.relname::text AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = to_regnamespace($1) AND c.relname = ANY ($2::text[])
          AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
        GROUP BY c.relname`,
      values: [identifier(schema), tables],
    });
    return new Map(rows.map(({ name, columns }) => [name, columns]));
  }

  async #head(sources: readonly Source[], objects: readonly string[]): Promise<Head> {
    const { schemaVersion, tables: _, metadataVersion, ...tenant } = this.#tenant;
    this.#as(null);
    const end = await this.#tx.one<{ position: number; hash: string; now: string }>({
      text: `SELECT position, encode(hash, 'hex') AS hash, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS now
        FROM ${this.#schema}._audit_head`,
    });
    return {
      format: FORMAT,
      formatVersion: FORMAT_VERSION,
      exportedAt: end.now,
      tenantSchemaVersion: schemaVersion,
      tenant,
      metadataVersion,
      audit: { position: end.position, hash: end.hash },
      counters: await this.#counters(objects),
      domains: await this.#domains(),
      columns: Object.fromEntries(sources.map(({ part, columns }) => [part, columns])),
    };
  }

  async #domains(): Promise<string[]> {
    this.#as('auth');
    const rows = await this.#tx.all<{ domain: string }>({
      text: 'SELECT domain FROM auth.domains WHERE tenant_id = $1 ORDER BY domain',
      values: [this.#tenant.id],
    });
    return rows.map(({ domain }) => domain);
  }

  /** Numbers that were given since the snapshot leave a gap at most. */
  async #counters(objects: readonly string[]): Promise<Counter[]> {
    this.#as(null);
    const found = await this.#tx.all<{ sequence: string; object: string; field: string }>({
      text: `SELECT d.objid::regclass::text AS sequence, c.relname::text AS object, a.attname::text AS field
        FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
        JOIN pg_class c ON c.oid = d.refobjid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
        WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'a' AND c.relnamespace = to_regnamespace($1)
          AND c.relname = ANY ($2::text[])
        ORDER BY 2, 3`,
      values: [this.#schema, objects],
    });
    const counters: Counter[] = [];
    for (const { sequence, object, field } of found) {
      const { value, given } = await this.#tx.one<{ value: number; given: boolean }>({
        text: `SELECT last_value AS value, is_called AS given FROM ${sequence}`,
      });
      counters.push({ object, field, value, given });
    }
    return counters;
  }

  async #table({ part, table, service, columns, where, order }: Source): Promise<void> {
    const text = `SELECT row_to_json(r)::text AS line FROM (SELECT ${columns.map((column) => `t.${identifier(column)}`).join(', ')}
      FROM ${table} t${where === null ? '' : ` WHERE ${where}`}${order === null ? '' : ` ORDER BY ${order}`}) r`;
    await this.#rows(part, service, text);
  }

  /** The lines of a statement, in batches of about the same size however long its rows are. */
  async #rows(part: string, service: string | null, text: string): Promise<void> {
    this.#as(service);
    await this.#tx.query(`DECLARE moved NO SCROLL CURSOR FOR ${text}`);
    for (let take = FIRST_ROWS; ; ) {
      const { rows } = await this.#tx.query<{ line: string }>(`FETCH FORWARD ${take} FROM moved`);
      if (rows.length === 0) break;
      // Within JSON as PostgreSQL keeps it a line break can only be white space.
      const lines = rows.map(({ line }) => (line.includes('\n') ? line.replaceAll('\n', ' ') : line));
      await this.#sink({ kind: 'rows', part, lines });
      const chars = lines.reduce((sum, { length }) => sum + length, 0);
      const fitting = Math.floor((BATCH_CHARS * rows.length) / Math.max(1, chars));
      take = Math.max(1, Math.min(fitting, take * 4, BATCH_ROWS_MAX));
    }
    await this.#tx.query('CLOSE moved');
  }

  /** Contents of files from their store, in pieces. */
  async #contents(blobs: Blobs): Promise<void> {
    this.#as('files');
    await this.#tx.query(`DECLARE kept NO SCROLL CURSOR FOR SELECT sha256, key, bytes FROM files.blobs
      WHERE tenant_id = ${literal(this.#tenant.id)} AND sha256 IS NOT NULL AND bytes > 0 ORDER BY sha256, position`);
    for (;;) {
      const { rows } = await this.#tx.query<{ sha256: string; key: string; bytes: number }>(
        `FETCH FORWARD ${BLOBS_PER_BATCH} FROM kept`,
      );
      if (rows.length === 0) break;
      for (const { sha256, key, bytes } of rows)
        for (let from = 0; from < bytes; from += PIECE_BYTES) {
          const range = { from, bytes: Math.min(PIECE_BYTES, bytes - from) };
          await this.#sink({ kind: 'content', sha256, bytes: await buffer(await blobs.read(key, range)) });
        }
    }
    await this.#tx.query('CLOSE kept');
  }

  #as(service: string | null): void {
    const { id } = this.#tenant;
    this.#tx.actAs(service === null ? tenantRole(id) : serviceRole(service, id));
  }
}
