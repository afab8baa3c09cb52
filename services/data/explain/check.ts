/**
 * Whether a user could execute operations on a record themselves, for services that let people decide about what is asked
 * for in the name of others: by the rules of the execution, without scopes and without the state of the record.
 */
import type { DataActions } from '../../../contracts/data.ts';
import { decideSharing, NEEDS, permissionRefusal, type RecordOperation } from '../../../lib/access/decide.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { isUuid } from '../../../lib/values/ids.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { recordNotFound, visibleObject } from '../object-access.ts';
import { checkedRow } from '../read/versions.ts';
import type { Tenants } from '../tenants.ts';
import { permissionsMissing, visibleTransitions } from '../transitions/transitions-and-actions.ts';
import type { View } from '../view.ts';
import { type ExplainedRow, explainedRecordStatement } from './record.sql.ts';

type Check = DataActions['data.access.check'];

export async function checkAccess(
  database: Database,
  tenants: Tenants,
  question: Check['params'],
): Promise<Check['result']> {
  const { tenantId, userId, objectApiName, recordId } = question;
  return tenants.withView(tenantId, userId, async (view) => {
    const { object } = visibleObject(view, objectApiName);
    const id = recordId?.toLowerCase();
    if (!isUuid(id)) return { readsRecord: false, refusal: refusalOf(view, question, null)?.toWire() ?? null };
    const statement = explainedRecordStatement(view, object, id, []);
    const row = checkedRow(view, await database.tenant(tenantId, (tx) => tx.all<ExplainedRow>(statement)));
    const refusal = row.record === null ? recordNotFound() : refusalOf(view, question, row.record);
    return { readsRecord: row.record !== null, refusal: refusal?.toWire() ?? null };
  });
}

/** Why the user could not execute the operations; null: they could. Without a record only the object is asked about. */
function refusalOf(
  view: View,
  { objectApiName, operations, transitionKey }: Check['params'],
  record: ExplainedRow['record'],
): PlatformError | null {
  for (const operation of operations) {
    const permission = permissionRefusal(view.access, objectApiName, NEEDS[operation].permission);
    if (permission) return permission;
    if (record === null || operation === 'create') continue;
    const decision = decideSharing(view.access, objectApiName, operation, record);
    if (!decision.allowed) return notReached(operation);
  }
  return transitionKey === null ? null : transitionRefusal(view, objectApiName, transitionKey);
}

const notReached = (operation: RecordOperation): PlatformError =>
  new PlatformError('RECORD_ACCESS_DENIED', 'You can read the record, but sharing does not let you do this with it.', {
    details: { operation, layer: 'sharing' },
  });

function transitionRefusal(view: View, objectApiName: string, key: string): PlatformError | null {
  const transition = visibleTransitions(visibleObject(view, objectApiName)).find(({ meta }) => meta.key === key);
  if (!transition)
    return new PlatformError('TRANSITION_NOT_ALLOWED', `There is no transition or action ${key} for you.`);
  return permissionsMissing(transition, view)[0] ?? null;
}
