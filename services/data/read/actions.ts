/** Objects and records as callers read them. */
import type { Handlers } from '../handlers.ts';
import { aggregateRecords } from './aggregate.ts';
import { catalogOf } from './catalog.ts';
import { describeColumns } from './columns.ts';
import { describe, getSchema, listObjects } from './objects.ts';
import { readableRecords } from './readable.ts';
import { getRecord, listRecords, queryRecords, readRows } from './records.ts';

export const readActions = ({ read, ask }: Handlers) => ({
  'objects.list': read(listObjects),
  'objects.describe': read(describe),
  'objects.getSchema': read(getSchema),
  'records.list': read(listRecords),
  'records.query': read(queryRecords),
  'records.get': read(getRecord),
  'records.aggregate': ask(aggregateRecords),
  'records.readable': ask(readableRecords),
  'objects.catalog': ask(catalogOf),
  'rows.describe': ask(describeColumns),
  'rows.read': ask(readRows),
});
