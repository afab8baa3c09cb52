/**
 * `DELETE /me/connections/{connectionId}`: the grant, which belongs to auth, ends in the transaction that keeps the key
 * and the audit entry. Source: docs/reference/authentication.md.
 */
import type { OperationInput } from '../../../contracts/operations.ts';
import type { RequestContext } from '../../../lib/context.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import type { OperationReply } from '../../../lib/operation.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { mutate } from '../../../mixins/mutation/mutate.ts';
import { endGrant } from './revoke.sql.ts';

const isGrantId = (text: string): boolean => /^[\w-]{1,100}$/.test(text);

interface RevokeDeps {
  readonly database: Database;
  /** Tells auth, which tells all gateways. One that does not hear of it asks again within seconds. */
  readonly grantEnded: (grantId: string) => Promise<unknown>;
}

/** Unknown connections and those of others are 404 alike. */
export async function revokeConnection(
  { database, grantEnded }: RevokeDeps,
  request: RequestContext,
  call: OperationInput<'me.connections.revoke'>,
): Promise<OperationReply> {
  const { connectionId } = call.path;
  const { tenantId, userId } = request;
  const reply = await mutate(database, request, call, {
    role: { service: 'data' },
    async work({ tx, audit, emit }) {
      const { clientId } = isGrantId(connectionId)
        ? await tx.one<{ clientId: string | null }>(endGrant(tenantId, userId, connectionId))
        : { clientId: null };
      if (clientId === null) throw new PlatformError('CONNECTION_NOT_FOUND', 'There is no such connection.');
      const changes = { connection: { from: connectionId, to: null }, client: { from: clientId, to: null } };
      audit({ objectApiName: 'User', recordId: userId, changes });
      emit({ type: 'me.connection.revoked', data: { connectionId, userId } });
      // The verdict of a dry run says which application would lose its access.
      return { status: 204, body: request.dryRun ? { connectionId, clientId } : null };
    },
  });
  if (!request.dryRun) await grantEnded(connectionId);
  return reply;
}
