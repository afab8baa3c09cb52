/** Files of records, for the service that keeps them. */
import type { Database } from '../../../mixins/database/database.ts';
import type { DataHandlers, Handlers } from '../handlers.ts';
import type { Tenants } from '../tenants.ts';
import { filesOfRecord, referencedFiles, seenFiles } from './files.ts';

export const fileActions = ({ ask }: Handlers, database: Database, tenants: Tenants) =>
  ({
    'files.seen': ask(seenFiles),
    'files.ofRecord': ask(filesOfRecord),
    'files.referenced': (ctx) => referencedFiles(database, tenants, ctx.params),
  }) satisfies Partial<DataHandlers>;
