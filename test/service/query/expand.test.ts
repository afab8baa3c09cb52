/** How PostgreSQL finds the records that references lead to, and which of them the caller reaches. */
import assert from 'node:assert/strict';
import { accessFor } from '../../../lib/access/rules.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planGet, planList } from '../../../lib/query/plan.ts';
import { compileGet, compileList } from '../../../lib/query/sql.ts';
import { aField, anObject, aPrincipal, aProfile, aSnapshot, USER_ID } from '../../support/snapshots.ts';
import { SCHEMA, suiteDatabase } from './random-worlds.ts';

const order = anObject('Order__c', [
  aField('AccountId__c', 'reference', { referenceTo: ['Account'] }),
  aField('LineId__c', 'reference', { referenceTo: ['Line__c'] }),
]);
const account = anObject('Account', [], { sharingDefault: 'private' });
const line = anObject(
  'Line__c',
  [aField('AccountId__c', 'masterDetail', { referenceTo: ['Account'], required: true })],
  { sharingDefault: 'controlledByParent' },
);
const objects = [order, account, line];
const snapshot = aSnapshot(objects, [aProfile(objects)]);
// One of very many users, so that a list of owners finds few.
const users = Array.from({ length: 1_000 }, (_, n) => ({
  userId: n === 0 ? USER_ID : `01939f6e-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
  username: `user${n}`,
  roleApiName: null,
}));
const access = accessFor(snapshot, aPrincipal(), { users });
const view = { access, snapshot, now: 0, timezone: 'UTC' };
const ROWS = 5_000;

interface Node {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Loops': number;
  readonly Plans?: readonly Node[];
}

const nodesOf = (node: Node): readonly Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

describe('the plan of a list with expanded references', function () {
  this.timeout(60_000);
  const database = suiteDatabase();

  before(async () => {
    const table = (name: string, more: string): string =>
      `CREATE TABLE "${SCHEMA}"."${name}" (id uuid PRIMARY KEY, "ownerId" uuid NOT NULL, "createdAt" timestamptz NOT NULL,
        "createdById" uuid, "updatedAt" timestamptz, "updatedById" uuid, "recordVersion" integer NOT NULL DEFAULT 1,
        "recordTypeApiName" text, name text${more});`;
    const id = (kind: number, n: string): string =>
      `('01939f6e-0000-7000-8${kind}00-' || lpad(to_hex(${n}), 12, '0'))::uuid`;
    const rows = (name: string, kind: number, columns: string, values: string): string =>
      `INSERT INTO "${SCHEMA}"."${name}" (id, "ownerId", "createdAt", name${columns})
        SELECT ${id(kind, 'n')}, CASE WHEN n % 100 = 0 THEN '${USER_ID}'::uuid ELSE ${id(0, '1 + n % 999')} END,
          timestamptz '2026-01-01' + n * interval '1 second', 'x' || n${values} FROM generate_series(1, ${ROWS}) n;`;
    await database().query(
      `DROP SCHEMA IF EXISTS "${SCHEMA}" CASCADE; CREATE SCHEMA "${SCHEMA}";
      CREATE TABLE "${SCHEMA}"._state (metadata_version integer, access_version integer);
      INSERT INTO "${SCHEMA}"._state VALUES (1, 7);
      CREATE TABLE "${SCHEMA}"._shares (object text, record_id uuid, principal_type text, principal_id text, access text);
      ${table('Account', '')} ${table('Line__c', ', "AccountId__c" uuid')}
      ${table('Order__c', ', "AccountId__c" uuid, "LineId__c" uuid')}
      ${rows('Account', 1, '', '')} ${rows('Line__c', 2, ', "AccountId__c"', `, ${id(1, 'n')}`)}
      ${rows('Order__c', 3, ', "AccountId__c", "LineId__c"', `, ${id(1, 'n')}, ${id(2, 'n')}`)}
      CREATE INDEX ON "${SCHEMA}"."Order__c" ("createdAt" DESC, id DESC); ANALYZE;`,
    );
  });

  const scans = async (text: string, values: readonly unknown[]): Promise<readonly Node[]> => {
    const { rows } = await database().pool.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, [...values]);
    return nodesOf(rows[0]['QUERY PLAN'][0].Plan).filter((node) =>
      ['Account', 'Line__c'].includes(node['Relation Name'] ?? ''),
    );
  };
  const expand = { AccountId__c: ['name'], LineId__c: ['name'] };

  it('reads each record by the id index, under the sharing of its object', async () => {
    const request = parseListQuery({ take: 200, fields: ['name'], expand }, 'body');
    const compiled = compileList(constrain(planList(request, order, view), access), SCHEMA);
    const found = await scans(compiled.text, compiled.values);
    assert.ok(found.length >= 3, 'accounts, lines, and the accounts of lines');
    for (const node of found) assert.match(node['Node Type'], /^Index (Only )?Scan$/, JSON.stringify(node));
    const { writer, count } = await database().transaction((tx) => tx.page(compiled, '['));
    writer.append(']');
    const records = JSON.parse(writer.finish().toString()) as { _expanded: Record<string, unknown> }[];
    assert.equal(count, 200);
    for (const field of ['AccountId__c', 'LineId__c'])
      assert.equal(records.filter(({ _expanded }) => _expanded[field] !== null).length, 2, 'two of 200 are shared');
  });

  it('does so for a single record as well', async () => {
    const plan = planGet('01939f6e-0000-7000-8300-000000000064', null, order, view, {
      expand: parseListQuery({ expand }, 'body').expand,
    });
    const compiled = compileGet(constrain(plan, access), SCHEMA);
    for (const node of await scans(compiled.text, compiled.values))
      assert.match(node['Node Type'], /^Index (Only )?Scan$/);
  });

  const listed = async (raw: Record<string, unknown>): Promise<Record<string, unknown>[]> => {
    const request = parseListQuery({ take: 200, fields: ['AccountId__c'], ...raw }, 'body');
    const compiled = compileList(constrain(planList(request, order, view), access), SCHEMA);
    const { writer } = await database().transaction((tx) => tx.page(compiled, '['));
    writer.append(']');
    return JSON.parse(writer.finish().toString()) as Record<string, unknown>[];
  };
  const filters = (operator: string, value?: unknown): Record<string, unknown> => ({
    filters: { logic: 'and', conditions: [{ id: 'c', field: 'AccountId__c.name', operator, value }] },
  });

  /** Numbers of the accounts that the caller reaches. */
  const own = async (): Promise<ReadonlySet<number>> => {
    const { rows } = await database().pool.query<{ name: string }>(
      `SELECT name FROM "${SCHEMA}"."Account" WHERE "ownerId" = $1`,
      [USER_ID],
    );
    return new Set(rows.map(({ name }) => Number(name.slice(1))));
  };

  it('lets nobody find records by a referenced record that they do not reach', async () => {
    assert.equal((await listed(filters('eq', 'x100'))).length, 1, 'an account of the caller');
    assert.equal((await listed(filters('eq', 'x101'))).length, 0, 'an account of somebody else');
    assert.equal((await listed(filters('is_not_blank'))).length, (await own()).size);
    assert.equal((await listed({ ...filters('neq', 'x101'), includeTotal: true })).length, 200);
    const blank = await listed({ ...filters('is_blank'), sort: [{ id: 'name', desc: false }] });
    assert.equal(blank.length, 200);
  });

  it('orders records behind a referenced record that the caller does not reach as behind none', async () => {
    const numberOf = ({ AccountId__c: id }: Record<string, unknown>): number =>
      Number.parseInt(String(id).slice(-12), 16);
    const sorted = await listed({ sort: [{ id: 'AccountId__c.name', desc: false }] });
    const reached = await own();
    const names = sorted.slice(0, reached.size).map((record) => `x${numberOf(record)}`);
    assert.deepEqual(names, [...reached].map((n) => `x${n}`).toSorted());
    const rest = sorted.slice(reached.size).map(numberOf);
    assert.ok(rest.length > 100 && rest.every((n) => !reached.has(n)));
    assert.deepEqual(
      rest,
      rest.toSorted((a, b) => a - b),
      'by id, which says nothing about the accounts',
    );
    const turned = await listed({ sort: [{ id: 'AccountId__c.name', desc: true }] });
    assert.ok(turned.every((record) => !reached.has(numberOf(record))));
  });

  it('finds records by a referenced record without reading all of them', async () => {
    const request = parseListQuery(filters('eq', 'x100'), 'body');
    const compiled = compileList(constrain(planList(request, order, view), access), SCHEMA);
    await database().query(`CREATE INDEX ON "${SCHEMA}"."Account" (name);
      CREATE INDEX ON "${SCHEMA}"."Order__c" ("AccountId__c"); ANALYZE;`);
    const { rows } = await database().pool.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${compiled.text}`, [
      ...compiled.values,
    ]);
    const read = nodesOf(rows[0]['QUERY PLAN'][0].Plan).filter((node) =>
      ['Account', 'Order__c'].includes(node['Relation Name'] ?? ''),
    );
    assert.deepEqual(
      read.map((node) => node['Node Type']),
      ['Index Scan', 'Index Scan'],
    );
  });
});
