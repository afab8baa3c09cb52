/**
 * Explaining access to a record to who can read it, about themselves; to administrators about others as well.
 * Source: docs/reference/access.md#explanations.
 */

import type { Handler, OperationInput } from '../../../contracts/operations.ts';
import { accessFor } from '../../../lib/access/rules.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError, violation } from '../../../lib/errors/platform-error.ts';
import type { ObjectMeta } from '../../../lib/schema/snapshot.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { Sql } from '../../../mixins/database/sql.ts';
import type { ReadDeps } from '../read/read.ts';
import { exactJson, reachSql, table } from '../sql.ts';
import { findPrincipal } from '../store.ts';
import { assertFresh, namedRecord, recordNotFound } from '../tenants.ts';
import { type Act, visibleActs } from '../transitions/acts.ts';
import { foreseenFields, misplacedBy } from '../transitions/parents.ts';
import type { View } from '../view.ts';
import { explain, type Question } from './explain.ts';
import { readSharedRecord, sharedRecordSql } from './record.ts';

export const explainAccess: Handler<'data.access.explain', ReadDeps> = async (deps, request, call) => {
  const { body } = call;
  const question = questionIn(body);
  const userId = body.userId?.toLowerCase() ?? request.userId;
  const other = userId !== request.userId;
  if (other) requireScope(request);
  return deps.tenants.withView(request.tenantId, request.userId, async (view) => {
    const { access: shown, id } = namedRecord(view, call);
    const { object } = shown;
    const act = visibleActs(shown).find(({ meta }) => meta.key === question.transitionKey) ?? null;
    const acts = act ? [act] : [];
    const { found, about, misplaced } = await deps.database.tenant(request.tenantId, async (tx) => {
      const found = await readRow(tx, view, object, id, acts);
      const about = other ? await viewOf(tx, view, userId) : view;
      return { found, about, misplaced: await misplacedBy(tx, about, acts, id, found.stored) };
    });
    const scopes = other ? null : request.scopes;
    const known = view.access.objects;
    const subject = { ...found, view: about, scopes, object, shown, known, act, misplaces: misplaced.size > 0 };
    return { body: explain(subject, question) };
  });
};

/** Which of the two names goes with which operation. */
function questionIn({ operation, ...names }: OperationInput<'data.access.explain'>['body']): Question {
  const field = names.field ?? null;
  const transitionKey = names.transitionKey ?? null;
  if (operation === 'transition' && transitionKey === null)
    throw new PlatformError('PARAMETER_REQUIRED', 'Say which transition.', {
      errors: [violation('/transitionKey', 'PARAMETER_REQUIRED', 'transitionKey is required with transition.')],
    });
  const wrong: [name: string, applies: boolean][] = [
    ['transitionKey', transitionKey === null || operation === 'transition'],
    ['field', field === null || !['delete', 'transition'].includes(operation)],
  ];
  const errors = wrong
    .filter(([, applies]) => !applies)
    .map(([name]) => violation(`/${name}`, 'PARAMETER_CONFLICT', `${name} does not go with ${operation}.`));
  if (errors.length > 0)
    throw new PlatformError('PARAMETER_CONFLICT', 'The body asks for what does not go together.', { errors });
  return { operation, field, transitionKey };
}

function requireScope({ scopes }: RequestContext): void {
  if (scopes.includes('setup:read')) return;
  throw new PlatformError('SCOPE_INSUFFICIENT', 'The access token lacks the scope setup:read.', {
    details: { required: ['data:read', 'setup:read'], granted: [...scopes], layer: 'scope' },
    headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="data:read setup:read"' },
  });
}

async function readRow(tx: Tx, view: View, object: ObjectMeta, id: string, acts: readonly Act[]) {
  const sql = new Sql();
  const { rows } = await tx.arrays(
    sql.statement(`SELECT s.metadata_version, s.access_version, o.record, o.stored FROM ${tx.schema}._state s LEFT JOIN (
        SELECT ${sharedRecordSql(tx.schema, view.snapshot, object, 't')}::text AS record,
          ${exactJson('t', foreseenFields(object, acts, view.snapshot))}::text AS stored
        FROM ${table(tx.schema, object.apiName)} t WHERE t."id" = ${sql.bind(id, 'uuid')} AND ${reachSql(view, sql, object.apiName, 'read', 't')}) o ON true`),
  );
  const [metadataVersion, accessVersion, record, stored] = rows[0]!;
  assertFresh(view, metadataVersion, accessVersion);
  if (record === null) throw recordNotFound();
  return { record: readSharedRecord(record), stored: JSON.parse(stored as string) as Record<string, unknown> };
}

/** The view of another user, for who may read the configuration that it follows from. */
async function viewOf(tx: Tx, view: View, userId: string): Promise<View> {
  const { system } = view.access;
  if (!system.has('metadataRead') && !system.has('metadataManage'))
    throw new PlatformError('METADATA_PERMISSION_DENIED', 'The user lacks the system permission metadataRead.', {
      details: { layer: 'objectPermission', permission: 'metadataRead' },
    });
  const found = isUuid(userId) ? await findPrincipal(tx, userId) : null;
  if (found) assertFresh(view, found.versions.metadataVersion, found.versions.accessVersion);
  if (!found?.principal)
    throw new PlatformError('VALIDATION_FAILED', 'There is no such user.', {
      errors: [violation('/userId', 'REFERENCE_NOT_FOUND', 'There is no such user.')],
    });
  return { ...view, access: accessFor(view.snapshot, found.principal, view.access.directory) };
}
