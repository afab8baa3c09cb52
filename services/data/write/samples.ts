/** Sample rows of templates, loaded as the platform: many at a time, without history and events. */

import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { numberFormat } from '../../../lib/schema/auto-number.ts';
import { isNumbered } from '../../../lib/schema/field-types/registry.ts';
import { fieldOf, objectOf } from '../../../lib/schema/lookup.ts';
import { emptyRollup } from '../../../lib/schema/rollups.ts';
import type { FieldMeta } from '../../../lib/schema/snapshot.ts';
import { identifier, literal } from '../../../lib/values/sql-text.ts';
import type { Database, Tx } from '../../../mixins/database/database.ts';
import { columnType, schemaOf, storedFields, table } from '../sql.ts';
import type { Tenants } from '../tenants.ts';
import { autoNumberSql } from './create.sql.ts';

const ROWS_PER_STATEMENT = 1_000;

/** Inserts rows that are not there yet (by id). Columns that are not given get what a create would give them. */
export async function loadSamples(
  database: Database,
  tenants: Tenants,
  params: { tenantId: string; objectApiName: string; columns: string[]; rows: unknown[][] },
): Promise<{ inserted: number }> {
  const { tenantId, objectApiName, columns, rows } = params;
  const snapshot = await tenants.snapshot(tenantId);
  const object = snapshot && objectOf(snapshot, objectApiName);
  if (!object) throw new PlatformError('INTERNAL_ERROR', `The tenant has no object ${objectApiName}.`);
  const given = columns.map((name): FieldMeta => {
    const field = fieldOf(object, name);
    if (!field || columnType(field) === null)
      throw new PlatformError('INTERNAL_ERROR', `${objectApiName} has no field ${name}.`);
    return field;
  });
  const schema = schemaOf(tenantId);
  const isGiven = new Set(columns);
  const owner = isGiven.has('ownerId')
    ? 'x."ownerId"'
    : `(SELECT "id" FROM ${table(schema, 'User')} ORDER BY "createdAt", "id" LIMIT 1)`;
  const targets = storedFields(object);
  const values = targets.map((field) => {
    const name = `x.${identifier(field.apiName)}`;
    const fallback = fallbackOf(schema, objectApiName, field, owner, isGiven);
    if (!isGiven.has(field.apiName)) return fallback;
    return field.system && fallback !== 'NULL' ? `COALESCE(${name}, ${fallback})` : name;
  });
  const targetColumns = targets.map((field) => identifier(field.apiName)).join(', ');
  const text = `INSERT INTO ${table(schema, objectApiName)} (${targetColumns})
    SELECT ${values.join(', ')} FROM jsonb_to_recordset($1::jsonb) AS x(${given
      .map((field) => `${identifier(field.apiName)} ${columnType(field)}`)
      .join(', ')})
    ON CONFLICT ("id") DO NOTHING`;
  return database.tenantTransaction(tenantId, async (tx) => {
    await tx.query("SET LOCAL statement_timeout = '120s'");
    // A batch that its caller gave up may still be running: the repeated one waits for it.
    await tx.query('SET LOCAL lock_timeout = 0');
    let inserted = 0;
    for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
      const batch = rows.slice(from, from + ROWS_PER_STATEMENT);
      const records = batch.map((row) => Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])));
      inserted += (await tx.query(text, [JSON.stringify(records)])).rowCount;
    }
    for (const [index, field] of given.entries())
      if (isNumbered(field)) await moveSequence(tx, schema, objectApiName, field, rows, index);
    return { inserted };
  });
}

function fallbackOf(
  schema: string,
  objectApiName: string,
  field: FieldMeta,
  owner: string,
  isGiven: ReadonlySet<string>,
): string {
  if (isNumbered(field)) return autoNumberSql(schema, objectApiName, field);
  if (field.rollup) return emptyRollup(field);
  switch (field.system ? field.apiName : '') {
    case 'id':
      return 'gen_random_uuid()';
    case 'ownerId':
    case 'createdById':
      return owner;
    case 'updatedById':
      return isGiven.has('createdById') ? 'x."createdById"' : owner;
    case 'createdAt':
      return 'now()';
    case 'updatedAt':
      return isGiven.has('createdAt') ? 'x."createdAt"' : 'now()';
    case 'recordVersion':
      return '1';
    default:
      return 'NULL';
  }
}

/** Given numbers count as used: the next record gets a higher one. */
async function moveSequence(
  tx: Tx,
  schema: string,
  objectApiName: string,
  field: FieldMeta,
  rows: readonly unknown[][],
  column: number,
): Promise<void> {
  const { before, after } = numberFormat(field.format);
  let highest = 0;
  for (const row of rows) {
    const value = row[column];
    if (typeof value !== 'string') continue;
    const digits = value.slice(before.length, value.length - after.length);
    if (/^\d{1,15}$/.test(digits)) highest = Math.max(highest, Number(digits));
  }
  if (!highest) return;
  const sequence = `${schema}.${identifier(`_seq_${objectApiName}_${field.apiName}`)}`;
  // Only the owner of a sequence may set it; numbers may be taken from it one by one.
  await tx.query(
    `SELECT count(nextval(${literal(sequence)})) FROM generate_series(
      (SELECT last_value + is_called::integer FROM ${sequence}), $1)`,
    [highest],
  );
}
