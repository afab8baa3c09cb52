/** Every input that a field type accepts can be stored, and what is answered can be sent back and stays the same. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { recordJsonSql } from '../../../lib/query/sql.ts';
import { fieldType } from '../../../lib/schema/field-types/registry.ts';
import type { FieldMeta, FieldTypeName } from '../../../lib/schema/snapshot.ts';
import { Database } from '../../../mixins/database/database.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { aField } from '../../support/snapshots.ts';

interface Cases {
  type: FieldTypeName;
  accepts?: { input: unknown; field?: Partial<FieldMeta> }[];
}

const file = readFileSync(new URL('../../cases/field-types/inputs.yaml', import.meta.url), 'utf8');
const OPTIONS = ['draft', 'sent'].map((value) => ({
  value,
  label: value,
  active: true,
  default: false,
  validFor: null,
}));

describe('values in PostgreSQL', () => {
  let server: TestDatabase;
  let database: Database;
  before(async () => {
    server = await createDatabase();
    database = new Database(server.url, { size: 1, applicationName: 'round trip test' });
  });
  after(async () => {
    await database.close();
    await server.drop();
  });

  /** The API's value for this input, numbers as strings. */
  async function answerTo(input: unknown, field: FieldMeta): Promise<unknown> {
    const type = fieldType(field.fieldType);
    const result = type.parseInput(input, field, '/Field__c');
    assert.ok(result.ok, JSON.stringify(result));
    const json = recordJsonSql([field], { ieee754Compatible: true });
    const { rows } = await database.query<{ json: string }>(
      `INSERT INTO thing AS r ("Field__c") VALUES ($1::${type.bindType}) RETURNING ${json} AS json`,
      [result.value],
    );
    return (JSON.parse(rows[0]!.json) as Record<string, unknown>)['Field__c'];
  }

  for (const { type, accepts = [] } of parse(file) as Cases[])
    for (const { input, field: more } of accepts) {
      const text = JSON.stringify(input);
      it(`${type} ${text.length > 60 ? `${text.slice(0, 60)}…` : text}`, async () => {
        const field = aField('Field__c', type, { picklistValues: OPTIONS, ...more });
        await database.query(
          `DROP TABLE IF EXISTS thing; CREATE TABLE thing ("Field__c" ${fieldType(type).columnType(field)})`,
        );
        const answer = await answerTo(input, field);
        assert.deepEqual(await answerTo(answer, field), answer);
      });
    }
});
