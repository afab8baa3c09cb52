/** Connections in a person's name: the grants of a user, as the API and the account page show them. */

import type { OperationInput, OperationOutput } from '../../contracts/operations.ts';
import type { RequestContext } from '../../lib/context.ts';
import { membersOf } from '../../lib/json/objects.ts';
import type { OperationReply } from '../../lib/operation.ts';
import { listPage } from '../../lib/query/list-page.ts';
import { parseListQuery } from '../../lib/query/parse.ts';
import { platformTime } from '../../lib/values/clock.ts';
import { type SealingKeys, sealFor } from '../../lib/values/sealed.ts';
import { formatTimestamp } from '../../lib/values/time.ts';
import { ALL_SCOPES, type Clients } from './clients.ts';
import type { ConnectionRow } from './store/grants.sql.ts';
import type { AuthStore } from './store/store.ts';

interface ConnectionParts {
  readonly store: AuthStore;
  readonly clients: Clients;
}

/** An application that a user has allowed to act in their name. */
interface Connection {
  readonly connectionId: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly scopes: readonly string[];
  readonly createdAt: string;
  readonly lastUsedAt: string | null;
  readonly agent: boolean;
}

/** Answers `GET /me/connections`. */
export async function listConnections(
  parts: ConnectionParts,
  keys: SealingKeys,
  request: RequestContext,
  call: OperationInput<'me.connections.list'>,
): Promise<OperationReply & { body: OperationOutput<'me.connections.list'> }> {
  const paging = parseListQuery(call.query, 'query');
  const list = { name: 'connections', parameters: { take: paging.take } };
  return listPage(list, paging, sealFor(request, keys, platformTime()), {
    rows: ([createdAt, id], take) => {
      const after = createdAt === undefined || id === undefined ? null : { createdAt, id };
      return parts.store.grants.connections(request, after, take);
    },
    keys: ({ createdAt, id }) => [createdAt, id],
    present: async (page) => {
      const connections = await presentConnections(parts, request.tenantId, page);
      return connections.map((connection) => ({
        ...connection,
        current: connection.connectionId === request.grantId,
      }));
    },
  });
}

export function presentConnections(
  { clients }: ConnectionParts,
  tenantId: string,
  rows: readonly ConnectionRow[],
): Promise<Connection[]> {
  return Promise.all(
    rows.map(async ({ id, clientId, payload, createdAt, lastUsedAt }) => {
      const client = await clients.find(clientId, tenantId);
      return {
        connectionId: id,
        clientId,
        clientName: titleOf(client?.name ?? clientId),
        scopes: scopesOf(payload),
        createdAt: formatTimestamp(new Date(createdAt)),
        lastUsedAt: lastUsedAt === null ? null : formatTimestamp(new Date(lastUsedAt)),
        agent: client?.meta?.agent ?? false,
      };
    }),
  );
}

/** The platform's own pages are named as in "to continue to your dashboards"; in a list the name begins the line. */
const titleOf = (name: string): string => name.replace(/^your /, 'Your ');

/** Every scope that a grant has, those of the API in the order of their catalogue. */
function scopesOf(payload: Record<string, unknown>): string[] {
  const texts = [membersOf(payload['openid'])['scope'], ...Object.values(membersOf(payload['resources']))];
  const given = new Set(texts.flatMap((text) => String(text ?? '').split(' ')));
  given.delete('');
  const known = ALL_SCOPES.filter((scope) => given.delete(scope));
  return [...known, ...given];
}
