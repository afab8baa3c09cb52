/**
 * Sharing in the statements of a mutation: what the user cannot read is not locked and not found, and the lock
 * also answers how far they reach what they can read. Source: docs/reference/access.md#what-an-operation-needs.
 */

import { NEEDS, type RecordOperation } from '../../../lib/access/decide.ts';
import { parentFields, RANK, reach } from '../../../lib/access/sharing.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { ownEntry } from '../../../lib/schema/lookup.ts';
import type { Sql } from '../../../mixins/database/sql.ts';
import { reachSql, schemaOf, table } from '../sql.ts';

import type { FieldValue, ReachLevel, ResolvedReferences, Write } from './write.ts';

/**
 * SQL of ReachLevel for the locked row `alias`, as far as the operation asks: `full` only where it needs it. `lookups`
 * are the references that the body gives, with SQL of the ids they were found to name.
 */
export function reachedSql(
  write: Pick<Write, 'view' | 'object'>,
  sql: Sql,
  alias: string,
  operation: RecordOperation,
  lookups: ResolvedReferences = new Map(),
): string {
  const { view, object } = write;
  const parents = deniedParentsSql(write, sql, lookups, (item) => `${alias}."${item.field.apiName}"`);
  const at = (level: 'edit' | 'full'): string => reachSql(view, sql, object.apiName, level, alias);
  const full = NEEDS[operation].level === 'full' ? `WHEN ${at('full')} THEN 'full' ` : '';
  return `CASE ${parents ? `WHEN ${parents} THEN 'parent' ` : ''}${full}WHEN ${at('edit')} THEN 'edit' ELSE 'read' END`;
}

/**
 * SQL boolean: a reference names a parent that controls the record's sharing, and that the user may read but not edit.
 * Null when no reference can. `before` gives SQL of the parent that the record has now.
 */
export function deniedParentsSql(
  { view, object }: Pick<Write, 'view' | 'object'>,
  sql: Pick<Sql, 'bind'>,
  lookups: ResolvedReferences,
  before: ((item: FieldValue) => string) | null,
): string | null {
  const controlling = new Set(parentFields(object));
  const denied = [...lookups].flatMap(([item, id]) => {
    const parent = ownEntry(view.access.objects, item.field.referenceTo[0] ?? '')?.object;
    if (!controlling.has(item.field) || !parent || reach(view.access, parent.apiName, 'edit') === null) return [];
    const editable = `EXISTS (SELECT FROM ${table(schemaOf(view.tenantId), parent.apiName)} t
      WHERE t."id" = ${id} AND ${reachSql(view, sql, parent.apiName, 'edit', 't')})`;
    return [`(${id} IS NOT NULL${before ? ` AND ${id} IS DISTINCT FROM ${before(item)}` : ''} AND NOT ${editable})`];
  });
  return denied.length > 0 ? `(${denied.join(' OR ')})` : null;
}

/** 403 when the user reads the record but does not reach it far enough. */
export function requireReach(reached: ReachLevel, operation: RecordOperation): void {
  if (reached === 'parent') throw parentDenied();
  const wanted = NEEDS[operation].level;
  if (RANK[reached] >= RANK[wanted]) return;
  throw new PlatformError(
    'RECORD_ACCESS_DENIED',
    wanted === 'full'
      ? 'You may read this record, but neither delete it nor decide whose it is.'
      : 'You may read this record, but not change it.',
    { details: { layer: 'sharing' } },
  );
}

/** A record whose sharing its parent controls is written by those who may edit the parent. */
export const parentDenied = (): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'You may read the parent record, but not change what belongs to it.', {
    details: { layer: 'sharing' },
  });
