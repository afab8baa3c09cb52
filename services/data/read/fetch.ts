/** Runs compiled queries: here rows become the bytes of an answer. */
import {
  type CompiledList,
  type Page,
  type RecordRow,
  readPage,
  readRecord,
  type SingleRecord,
} from '../../../lib/query/sql.ts';
import type { CompiledQuery } from '../../../lib/query/types.ts';
import type { Tx } from '../../../mixins/database/database.ts';

/**
 * Runs the statement of a page and answers the bytes `{"records":[…],"total":…,"nextCursor":…}`. The records never
 * become JavaScript values. `cursorOf` makes the cursor of the next page from everything else that was returned.
 */
export async function fetchPage(
  tx: Tx,
  compiled: CompiledList,
  cursorOf: (page: Page) => string | null,
): Promise<Buffer> {
  const { writer, ...rows } = await tx.page(compiled, '{"records":[');
  const page = readPage(compiled, rows);
  const cursor = cursorOf(page);
  const total = page.total === null ? '' : `,"total":${page.total}`;
  writer.append(`]${total},"nextCursor":${cursor === null ? 'null' : `"${cursor}"`}}`);
  return writer.finish();
}

/** Runs the statement of one record; its JSON as bytes, null when there is none the user can see. */
export async function fetchRecord(
  tx: Tx,
  compiled: CompiledQuery,
): Promise<Omit<SingleRecord, 'record'> & { record: Buffer | null }> {
  const read = readRecord(await tx.one<RecordRow>(compiled));
  return { ...read, record: read.record === null ? null : Buffer.from(read.record) };
}
