/** History, changes and the audit trail with its chain. */
import { requestContext } from '../../../lib/context.ts';
import type { Database } from '../../../mixins/database/database.ts';
import { epochOfTenant } from '../../../mixins/epoch/epoch.ts';
import type { DataHandlers, Handlers } from '../handlers.ts';
import { fillTemplate } from '../read/template-text.ts';
import type { Tenants } from '../tenants.ts';
import { listAudit } from './audit-list.ts';
import { sealTenant } from './chain.ts';
import { listChanges } from './changes.ts';
import { recordAct, recordDenial, recordSignInDenial, recordSuppressed } from './denial.ts';
import { readEventRecords } from './event-records.ts';
import { listHistory } from './history.ts';
import { recordsOfRequests, seenRecords } from './of-requests.ts';
import { verifyTenant } from './verify.ts';

export const trailActions = ({ read, ask }: Handlers, database: Database, tenants: Tenants, stopping: AbortSignal) =>
  ({
    'history.list': read(listHistory),
    'changes.list': read(listChanges),
    'audit.list': read(listAudit),
    'audit.suppress': (ctx) => recordSuppressed(database, ctx.params),
    'audit.deny': (ctx) => recordDenial(database, requestContext(ctx), ctx.params),
    'audit.note': (ctx) => recordAct(database, ctx.params),
    'audit.denySignIn': (ctx) => recordSignInDenial(database, ctx.params),
    'events.read': ask(readEventRecords),
    'records.seen': (ctx) => seenRecords(database, tenants, ctx.params),
    'templates.fill': (ctx) => fillTemplate(database, tenants, ctx.params),
    'trail.ofRequests': (ctx) => recordsOfRequests(database, tenants, ctx.params),
    'epochs.get': (ctx) => epochOfTenant(database, ctx.params.tenantId),
    'audit.seal': async (ctx) => ({
      sealed: await sealTenant(database, ctx.params.tenantId, () => stopping.aborted),
    }),
    'audit.verify': (ctx) => verifyTenant(database, ctx.params),
  }) satisfies Partial<DataHandlers>;
