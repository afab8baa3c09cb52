/**
 * Explains the access to a record: to callers who can read it their own, to administrators also that of other users.
 * Source: docs/reference/access.md#explanations.
 */

import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import { holdsPermission, permissionDenied } from '../../../lib/access/system-permission.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { namedRecord, recordNotFound } from '../object-access.ts';
import type { ReadDeps } from '../read/read.ts';
import { checkedRow } from '../read/versions.ts';
import { findPrincipal } from '../tenants.sql.ts';
import { assertFresh } from '../tenants.ts';
import { foreseenFields, misplacedBy } from '../transitions/parents.ts';
import { visibleTransitions } from '../transitions/transitions-and-actions.ts';
import type { View } from '../view.ts';
import { explain, type Question } from './explain.ts';
import { type ExplainedRow, explainedRecordStatement } from './record.sql.ts';

export const explainAccess: Handler<'data.access.explain', ReadDeps> = async (deps, request, call) => {
  const { body } = call;
  const question = questionIn(body);
  const userId = body.userId?.toLowerCase() ?? request.userId;
  const other = userId !== request.userId;
  if (other) requireScope(request);
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { access: shown, id } = namedRecord(view, call);
    const { object } = shown;
    const transition = visibleTransitions(shown).find(({ meta }) => meta.key === question.transitionKey) ?? null;
    const transitions = transition ? [transition] : [];
    const { found, about, misplaced } = await deps.database.tenant(request.tenantId, async (tx) => {
      const statement = explainedRecordStatement(view, object, id, foreseenFields(object, transitions, view.snapshot));
      const found = checkedRow(view, await tx.all<ExplainedRow>(statement));
      if (found.record === null) throw recordNotFound();
      const about = other ? await viewOf(tx, view, userId) : view;
      return { found, about, misplaced: await misplacedBy(tx, about, transitions, id, found.stored) };
    });
    const scopes = other ? null : request.scopes;
    const known = view.access.objects;
    const { record, stored } = found;
    const subject = {
      record,
      stored,
      view: about,
      scopes,
      object,
      shown,
      known,
      transition,
      misplaces: misplaced.size > 0,
    };
    return { body: explain(subject, question) };
  });
};

/** The question; the field and the transition are only for some operations. */
function questionIn({ operation, ...names }: OperationInput<'data.access.explain'>['body']): Question {
  const field = names.field ?? null;
  const transitionKey = names.transitionKey ?? null;
  if (operation === 'transition' && transitionKey === null)
    throw new PlatformError('PARAMETER_REQUIRED', 'transitionKey is required with the operation transition.', {
      errors: [
        violation('/transitionKey', 'PARAMETER_REQUIRED', 'transitionKey is required with the operation transition.'),
      ],
    });
  const wrong: [name: string, applies: boolean][] = [
    ['transitionKey', transitionKey === null || operation === 'transition'],
    ['field', field === null || !['delete', 'transition'].includes(operation)],
  ];
  const errors = wrong
    .filter(([, applies]) => !applies)
    .map(([name]) =>
      violation(`/${name}`, 'PARAMETER_CONFLICT', `${name} cannot be combined with the operation ${operation}.`),
    );
  const [first] = errors;
  if (first) throw new PlatformError('PARAMETER_CONFLICT', first.message, { errors });
  return { operation, field, transitionKey };
}

function requireScope({ scopes }: RequestContext): void {
  if (scopes.includes('setup:read')) return;
  throw new PlatformError('SCOPE_INSUFFICIENT', 'The access token lacks the scope setup:read.', {
    details: { required: ['data:read', 'setup:read'], granted: [...scopes], layer: 'scope' },
    headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="data:read setup:read"' },
  });
}

/** The view of another user, for callers who may read the configuration that decides about it. */
async function viewOf(tx: Tx, view: View, userId: string): Promise<View> {
  const { system } = view.access;
  if (!holdsPermission(system, 'metadataRead')) throw permissionDenied('metadataRead');
  const found = isUuid(userId) ? await findPrincipal(tx, userId) : null;
  if (found) assertFresh(view, found.versions.metadataVersion, found.versions.accessVersion);
  if (!found?.principal)
    throw new PlatformError('VALIDATION_FAILED', 'The user does not exist.', {
      errors: [violation('/userId', 'REFERENCE_NOT_FOUND', 'The user does not exist.')],
    });
  return { ...view, access: accessFor(view.snapshot, found.principal, view.access.directory) };
}
