/** Explanations of access to a record, for the caller or another user. */
import type { Database } from '../../../mixins/database/database.ts';
import type { DataHandlers, Handlers } from '../handlers.ts';
import type { Tenants } from '../tenants.ts';
import { explainAccess } from './answer.ts';
import { checkAccess } from './check.ts';

export const explainActions = ({ read }: Handlers, database: Database, tenants: Tenants) =>
  ({
    'access.explain': read(explainAccess),
    'access.check': async (ctx) => checkAccess(database, tenants, ctx.params),
  }) satisfies Partial<DataHandlers>;
