/** The records that notifications are about, for those who can read them at this moment. */
import type { ReadableRecord, RecordName } from '../../contracts/data.ts';
import type { Asker } from '../../lib/context.ts';
import { recordKey } from '../../lib/schema/record-key.ts';
import type { NotificationsDeps } from './deps.ts';
import type { ItemRow } from './items.sql.ts';

type AboutRecord = Pick<ItemRow, 'objectApiName' | 'recordId'>;

export const recordOf = ({ objectApiName, recordId }: AboutRecord): RecordName | null =>
  objectApiName === null || recordId === null ? null : { objectApiName, id: recordId };

/** Answers for each of the items the record that it is about; null: there is none that `asker` can read. */
export async function readableRecordOf(
  { readableRecords }: Pick<NotificationsDeps, 'readableRecords'>,
  asker: Asker,
  items: readonly AboutRecord[],
): Promise<(item: AboutRecord) => ReadableRecord | null> {
  const named = new Map(items.flatMap((item) => recordOf(item) ?? []).map((record) => [recordKey(record), record]));
  const read = named.size === 0 ? [] : await readableRecords({ asker, records: [...named.values()] });
  const byKey = new Map(read.map((record) => [recordKey(record), record]));
  return (item) => {
    const record = recordOf(item);
    return record && (byKey.get(recordKey(record)) ?? null);
  };
}
