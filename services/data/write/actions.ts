/** Changes of records, and sample rows of templates. */
import type { Database } from '../../../mixins/database/database.ts';
import type { DataHandlers, Handlers } from '../handlers.ts';
import type { Tenants } from '../tenants.ts';
import { loadSamples } from './samples.ts';

export const writeActions = ({ write, check, rows, settledRows }: Handlers, database: Database, tenants: Tenants) =>
  ({
    'records.create': write('create'),
    'records.update': write('update'),
    'records.delete': write('delete'),
    'records.upsert': write('upsert'),
    'records.restore': write('restore'),
    'records.check': check,
    'rows.settle': settledRows,
    'rows.write': rows,
    'samples.load': (ctx) => loadSamples(database, tenants, ctx.params),
  }) satisfies Partial<DataHandlers>;
