/** The transitions and actions of a record, with what stands against each. Source: docs/reference/transitions.md. */
import type { Handler } from '../../../contracts/operations.ts';
import { NEEDS } from '../../../lib/access/decide.ts';
import { served } from '../../../lib/expression/transition-input.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { ReadDeps } from '../read/read.ts';
import { etagOf, exactJson, reachSql, table } from '../sql.ts';
import { assertFresh, namedRecord, recordNotFound } from '../tenants.ts';
import { type Act, reasonsAgainst, type Situation, stateIn, storedFacts, visibleActs } from './acts.ts';
import { foreseenFields, misplacedBy } from './parents.ts';

export const listTransitions: Handler<'data.transitions.list', ReadDeps> = async (deps, request, call) => {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { access, id } = namedRecord(view, call);
    const { object } = access;
    const acts = visibleActs(access);
    const { values, misplaced, etag, editable } = await deps.database.tenant(request.tenantId, async (tx) => {
      const sql = new Sql();
      const seen = `o."id" = ${sql.bind(id, 'uuid')} AND ${reachSql(view, sql, object.apiName, 'read', 'o')}`;
      const { rows } = await tx.arrays(
        sql.statement(`SELECT s.metadata_version, s.access_version, o."recordVersion",
            ${exactJson('o', foreseenFields(object, acts, view.snapshot))}::text, ${reachSql(view, sql, object.apiName, NEEDS.transition.level, 'o')}
          FROM ${tx.schema}._state s LEFT JOIN ${table(tx.schema, object.apiName)} o ON ${seen}`),
      );
      const [metadataVersion, accessVersion, recordVersion, stored, editable] = rows[0]!;
      assertFresh(view, metadataVersion, accessVersion);
      if (recordVersion === null) throw recordNotFound();
      const values = JSON.parse(stored as string) as Record<string, unknown>;
      const misplaced = await misplacedBy(tx, view, acts, id, values);
      return { values, misplaced, etag: etagOf(recordVersion as number), editable: editable === true };
    });
    const state = stateIn(access, values);
    const situation: Situation = {
      view,
      scopes: request.scopes,
      access,
      state,
      editable,
      facts: storedFacts(view, object, values),
      misplaced,
    };
    const records = acts.map((act) => shown(act, situation));
    return { headers: { ETag: etag }, body: { records, nextCursor: null, currentState: state, etag } };
  });
};

/** Where it starts: from the current state if it can, otherwise from the only state there is, if there is but one. */
function startOf({ from }: Act, state: string | null): string | null {
  if (from === null || (state !== null && from.includes(state))) return state;
  return from.length === 1 ? from[0]! : null;
}

function shown(act: Act, situation: Situation): object {
  const { meta, from, to, kind } = act;
  const { state } = situation;
  const unavailableReasons = reasonsAgainst(act, situation);
  return {
    transitionKey: meta.key,
    label: meta.label,
    description: meta.description,
    fromState: startOf(act, state),
    toState: from === null ? state : to,
    kind,
    available: unavailableReasons.length === 0,
    unavailableReasons,
    risk: meta.risk,
    requiresComment: meta.requiresComment,
    requiresApproval: false,
    input: meta.input && served(meta.input),
  };
}
