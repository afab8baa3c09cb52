/** Connections that act in a person's name, and their revocation. */
import type { ServiceBroker } from 'moleculer';
import { call } from '../../../contracts/call.ts';
import { requestContext } from '../../../lib/context.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { warnOf } from '../../../mixins/log-failure.ts';
import type { DataHandlers } from '../handlers.ts';
import type { Tenants } from '../tenants.ts';
import { confirmGrants } from './confirm.ts';
import { revokeConnection } from './revoke.ts';

export const connectionActions = (database: Database, tenants: Tenants, log: ServiceBroker['logger']) =>
  ({
    'grants.confirm': (ctx) => confirmGrants(database, tenants, ctx.params.grants),
    'connections.revoke': (ctx) => {
      const grantEnded = (grantId: string): Promise<unknown> =>
        call(ctx, 'auth.grants.noteEnded', { grantIds: [grantId] }).catch((error: unknown) =>
          warnOf(log, error, 'The end of a connection was not announced; gateways see it within seconds.'),
        );
      return revokeConnection({ database, grantEnded }, requestContext(ctx), ctx.params);
    },
  }) satisfies Partial<DataHandlers>;
