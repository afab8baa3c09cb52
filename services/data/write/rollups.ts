/**
 * What a write of a child owes to the rollups of its parents. The triggers do the work; here they learn in whose name,
 * and the parents are locked before the child, as everybody does it, so that no two writers wait for each other in a
 * circle. Source: docs/decisions/rollups-by-triggers.md.
 */
import { CHANGED_ALONG, parentLocks, type RollupEdge, rollupEdges } from '../../../lib/rollups.ts';
import type { FieldMeta, Snapshot } from '../../../lib/snapshot/types.ts';
import { identifier } from '../../../mixins/database/database.ts';
import { remembered, type Sql, table } from '../sql.ts';
import type { Write } from './write.ts';

const edgesOfSnapshot = remembered((objects: Snapshot['objects']): readonly RollupEdge[] => rollupEdges(objects));

const edgesOf = ({ view }: Pick<Write, 'view'>): readonly RollupEdge[] => edgesOfSnapshot(view.snapshot.objects);

/**
 * A WHERE clause, always true, for the statement that begins a write: it tells the triggers who acts, until the
 * transaction ends. Empty where no trigger asks: a delete may touch any object, other writes their own.
 */
export function actorSql(write: Write, sql: Sql, operationId: string, anyObject = false): string {
  if (!edgesOf(write).some((edge) => anyObject || edge.child === write.object.apiName)) return '';
  const { request, key } = write;
  const actor = {
    userId: request.userId,
    clientId: request.clientId,
    agentRunId: request.agentRunId,
    requestId: request.requestId,
    channel: request.channel,
    ip: request.ip,
    operationId,
    key: key.key,
    transactionId: write.transactionId,
    transactionSize: 1,
  };
  return ` WHERE set_config('app.actor', ${sql.bind(JSON.stringify(actor), 'text')}, true) IS NOT NULL`;
}

/** Where a reference is going to point, by field. */
export type Moves = ReadonlyMap<FieldMeta['apiName'], string>;

/**
 * CTEs that lock the parents of the record `id`, topmost first, and the condition under which the record itself may be
 * locked after them. `changed` names the fields that a write gives; null: the record goes. `moves` has SQL queries of
 * the ids that given references point to. Without rollups over these fields there is nothing to lock.
 */
export function parentLocksSql(
  write: Write,
  id: string,
  changed: ReadonlySet<string> | null,
  moves: Moves = new Map(),
): { readonly ctes: readonly string[]; readonly after: string } {
  const { schema, object } = write;
  const edges = edgesOf(write);
  const first = edges
    .filter(
      (edge) =>
        edge.child === object.apiName &&
        (changed === null || [...edge.reads].some((name) => changed.has(name) || CHANGED_ALONG.includes(name))),
    )
    .map((edge) => {
      const now = `SELECT x.${identifier(edge.referenceField)} FROM ${table(schema, edge.child)} x WHERE x."id" = ${id}`;
      const next = moves.get(edge.referenceField);
      return { edge, ids: next === undefined ? now : `${now} UNION ALL ${next}` };
    });
  if (first.length === 0) return { ctes: [], after: '' };
  const locks = parentLocks(
    edges,
    first,
    (edge, ids) =>
      `SELECT x.${identifier(edge.referenceField)} FROM ${table(schema, edge.child)} x WHERE x."id" IN (${ids})`,
  );
  const gate = (index: number): string =>
    index < 0 ? ' AND EXISTS (SELECT FROM k)' : ` AND (SELECT count(*) FROM p${index}) >= 0`;
  return {
    ctes: locks.map(
      ({ object: parent, ids }, index) =>
        `p${index} AS MATERIALIZED (SELECT p."id" FROM ${table(schema, parent)} p WHERE p."id" IN (${ids.join(' UNION ALL ')})${gate(index - 1)} ORDER BY p."id" FOR NO KEY UPDATE)`,
    ),
    after: gate(locks.length - 1),
  };
}
