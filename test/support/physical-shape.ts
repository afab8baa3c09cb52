/** The actual database objects of a tenant, and those that its configuration requires. */
import { tenantSchema } from '../../lib/context.ts';
import { identifier } from '../../lib/values/sql-text.ts';
import type { Database, Tx } from '../../mixins/database/database.ts';
import type { State } from '../../services/metadata/kinds/component.ts';
import { ddl } from '../../services/metadata/physical/ddl.ts';
import { modelWithRetained } from '../../services/metadata/physical/retained.ts';
import { rollupDdl, rollupModel } from '../../services/metadata/physical/rollups.ts';

/** Tables of custom objects with columns, indexes, constraints and triggers, sequences, and functions of rollups. */
async function shapeOf(tx: Pick<Tx, 'query'>, schema: string): Promise<string[]> {
  const { rows } = await tx.query<{ line: string }>({
    text: `WITH own AS (SELECT c.oid, c.relname, c.relkind FROM pg_class c
        WHERE c.relnamespace = $1::text::regnamespace AND c.relname LIKE '%\\_\\_c%')
      SELECT relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || a.atthasdef AS line
        FROM own JOIN pg_attribute a ON a.attrelid = own.oid
        WHERE own.relkind IN ('r', 'S') AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL SELECT pg_get_indexdef(i.indexrelid) || i.indisvalid FROM own JOIN pg_index i ON i.indrelid = own.oid
      UNION ALL SELECT conname || ' ' || pg_get_constraintdef(c.oid) || c.convalidated
        FROM own JOIN pg_constraint c ON c.conrelid = own.oid
      UNION ALL SELECT relname || ' ' || pg_get_triggerdef(t.oid) FROM own JOIN pg_trigger t ON t.tgrelid = own.oid
        WHERE NOT t.tgisinternal
      UNION ALL SELECT pg_get_functiondef(p.oid) FROM pg_proc p
        WHERE p.pronamespace = $1::text::regnamespace AND p.proname ~ '^_rollups?_(own_)?[0-9a-f]{8}'`,
    values: [schema],
  });
  return rows.map(({ line }) => line.replaceAll(schema.slice(1, -1), 'T')).sort();
}

/** The same of a schema that is made for this configuration at once, and forgotten. */
async function expected(database: Database, state: State, retained: State): Promise<string[]> {
  const client = await database.pool.connect();
  const schema = '"t_expected"';
  try {
    await client.query('BEGIN');
    await client.query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}."User" (id uuid PRIMARY KEY)`);
    const model = modelWithRetained(state, retained);
    const custom = new Map([...model].filter(([name]) => name.endsWith('__c')));
    const rollups = rollupDdl(rollupModel(new Map()), rollupModel(state), schema);
    const tables = ddl(new Map(), custom, schema, 'CURRENT_USER').statements.map(({ sql }) => sql);
    const statements = [...rollups.first, ...tables, ...rollups.last];
    if (statements.length > 0) await client.query(statements.join(';\n'));
    return await shapeOf({ query: client.query.bind(client) as Tx['query'] }, schema);
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

export async function shapes(
  database: Database,
  tenantId: string,
  state: State,
  retained: State,
): Promise<{ actual: string[]; expected: string[] }> {
  const schema = identifier(tenantSchema(tenantId));
  return {
    actual: await shapeOf({ query: database.query.bind(database) as Tx['query'] }, schema),
    expected: await expected(database, state, retained),
  };
}
