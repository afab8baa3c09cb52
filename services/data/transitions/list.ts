/**
 * The transitions and actions of a record, with the reasons why each is unavailable. Source:
 * docs/reference/transitions.md.
 */

import type { AgentActions } from '../../../contracts/agent.ts';
import type { Handler } from '../../../contracts/operations.ts';
import { newRequestBudget } from '../../../lib/expression/evaluate.ts';
import { served } from '../../../lib/expression/transition-input.ts';
import { languageHeaders } from '../../../lib/operation.ts';
import { type Labels, labelsFor } from '../../../lib/schema/labels.ts';
import { namedRecord, recordNotFound } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { etagOf } from '../sql.ts';
import { type SituationRow, situationStatement } from './list.sql.ts';
import { foreseenFields, misplacedBy } from './parents.ts';
import {
  type Situation,
  stateIn,
  storedFacts,
  type TransitionOrAction,
  unavailableReasons,
  visibleTransitions,
} from './transitions-and-actions.ts';

type Judge = AgentActions['agent.transitions.judge'];

/** Answers those of the keys for which the policies of the client would have people asked. */
export type JudgeTransitions = (question: Judge['params']) => Promise<Judge['result']>;

interface ListDeps extends ReadDeps {
  readonly judgeTransitions: JudgeTransitions;
}

export const listTransitions: Handler<'data.transitions.list', ListDeps> = async (deps, request, call) => {
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { access, id } = namedRecord(view, call);
    const { object } = access;
    const transitions = visibleTransitions(access);
    const statement = situationStatement(view, object, id, foreseenFields(object, transitions, view.snapshot));
    const { record, misplaced } = await deps.database.tenant(request.tenantId, async (tx) => {
      const record = checkedRow(view, await tx.all<SituationRow>(statement));
      if (record.values === null) throw recordNotFound();
      return { record, misplaced: await misplacedBy(tx, view, transitions, id, record.values) };
    });
    const { values, editable } = record;
    const etag = etagOf(record.recordVersion);
    const state = stateIn(access, values);
    const situation: Situation = {
      view,
      scopes: request.scopes,
      access,
      state,
      editable,
      facts: storedFacts(view, object, values, newRequestBudget()),
      misplaced,
    };
    const labels = labelsFor(view.snapshot, call.headers.acceptLanguage);
    const { tenantId, clientId, agentRunId } = request;
    const keys = transitions.map(({ meta }) => meta.key);
    const asking =
      agentRunId === null
        ? []
        : await deps.judgeTransitions({ tenantId, clientId, objectApiName: object.apiName, keys });
    const records = transitions.map((transition) =>
      shown(transition, situation, labels, asking.includes(transition.meta.key)),
    );
    return {
      headers: { ETag: etag, ...languageHeaders(labels.language) },
      body: { records, nextCursor: null, currentState: state, etag },
    };
  });
};

/** The state in which it starts: the current one if it can, otherwise the only possible one. */
function startOf({ from }: TransitionOrAction, state: string | null): string | null {
  if (from === null || (state !== null && from.includes(state))) return state;
  return from.length === 1 ? (from[0] ?? null) : null;
}

function shown(
  transition: TransitionOrAction,
  situation: Situation,
  labels: Labels,
  requiresApproval: boolean,
): object {
  const { meta, from, to, kind } = transition;
  const { state } = situation;
  const reasons = unavailableReasons(transition, situation);
  return {
    transitionKey: meta.key,
    label: labelOf(transition, labels),
    description: meta.description,
    fromState: startOf(transition, state),
    toState: from === null ? state : to,
    kind,
    available: reasons.length === 0,
    unavailableReasons: reasons,
    risk: meta.risk,
    requiresComment: meta.requiresComment,
    requiresApproval,
    input: meta.input && served(meta.input),
  };
}

/** A transition is a part of its state model, an action is a component. */
function labelOf(
  { kind, meta: { key, label }, object: { apiName, stateModel } }: TransitionOrAction,
  labels: Labels,
): string {
  if (kind === 'action' || stateModel === null) return labels.of('CustomAction', `${apiName}.${key}`, label);
  return labels.of('StateModel', `${apiName}.${stateModel.apiName}`, label, key);
}
