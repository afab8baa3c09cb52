/** `GET /deprecations`: the operations that are going to be gone, with the clients of a tenant that still call them. */
import type { AuthActions } from '../../../contracts/auth.ts';
import type { OperationOutput } from '../../../contracts/operations.ts';
import { documentsUrl } from '../../../lib/addresses.ts';
import type { Operation, OperationReply } from '../../../lib/operation.ts';
import { platformTime } from '../../../lib/values/clock.ts';
import { isPastSunset } from '../pipeline/deprecation.ts';

/** `usesOf`: asks auth who has called these operations; not asked when there are none. */
export async function listDeprecations(
  operations: readonly Operation[],
  baseUrl: string,
  usesOf: (operationIds: string[]) => Promise<AuthActions['auth.deprecatedUses.list']['result']>,
): Promise<OperationReply & { body: OperationOutput<'schema.deprecations.list'> }> {
  const found = operations.flatMap((operation) => {
    const { deprecated } = operation;
    return deprecated && !isPastSunset(operation, platformTime()) ? [{ ...operation, deprecated }] : [];
  });
  const { uses } = found.length > 0 ? await usesOf(found.map(({ operationId }) => operationId)) : { uses: [] };
  const records = found
    .toSorted((a, b) => a.deprecated.sunset.localeCompare(b.deprecated.sunset))
    .map(({ operationId, method, path, deprecated: { since, sunset, replacement, documentation } }) => ({
      operationId,
      method,
      path,
      since,
      sunset,
      replacement,
      documentation: `${documentsUrl(baseUrl)}/${documentation}`,
      clients: uses
        .filter((use) => use.operationId === operationId)
        .map(({ clientId, clientName, requests, lastUsedAt }) => ({ clientId, clientName, requests, lastUsedAt })),
    }));
  return { body: { records } };
}
