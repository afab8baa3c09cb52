/** Exports the records of a query: pages that the user sees, in segments that are committed one by one. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ObjectColumns } from '../../../contracts/data/columns.ts';
import { PlatformError } from '../../../lib/errors/platform-error.ts';
import { ExactNumber } from '../../../lib/json/exact-number.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { type BlobRow, blobsStatement, keepBlobStatement } from '../jobs/job.sql.ts';
import { reserve } from '../parts/upload.ts';
import { cellOf, csvLine } from '../rows/cells.ts';
import { ETAG } from '../rows/columns.ts';
import { advance, contextOf, nextTurn, type Work } from './turn.ts';

const compressed = promisify(gzip);

/** Characters of a segment, before it is compressed. */
const SEGMENT_CHARS = 4 * 1024 * 1024;

/** Stored with the job between segments. */
interface Position {
  /** Columns of the file, as the user saw them at its beginning. */
  readonly columns: readonly string[];
  /** Cursor of the next page; null: all are read. */
  readonly next: string | null;
  readonly segments: number;
}

type Shown = Record<string, unknown>;

export async function exportRecords(work: Work): Promise<void> {
  const { deps, tenantId, job } = work;
  let position: Position | null = job.cursor === null ? null : JSON.parse(job.cursor);
  let processed = job.processed;
  while (position === null || position.next !== null) {
    const object = await nextTurn(work);
    const at: Position = position ?? { columns: columnsOf(work, object), next: null, segments: 0 };
    const segment = await readSegment(work, object, at);
    const key = deps.blobs.newKey(`bulk/${tenantId}`);
    const { content } = segment;
    const blob = { jobId: job.jobId, key, number: at.segments + 1, bytes: content.length };
    const owner = { tenantId, userId: job.userId, clientId: job.clientId };
    await deps.database.shared('bulk', tenantId, (tx) => reserve(tx, owner, blob));
    if (content.length > 0) await deps.blobs.write(key, Readable.from([content]));
    if (processed + segment.rows > LIMITS.bulk_job_rows_max)
      throw new PlatformError('TOO_MANY_ITEMS', `An export may have at most ${LIMITS.bulk_job_rows_max} records.`);
    position = { columns: at.columns, next: segment.next, segments: at.segments + 1 };
    const progress = { from: processed, succeeded: segment.rows, failed: 0, cursor: JSON.stringify(position) };
    const sha256 = createHash('sha256').update(content).digest('hex');
    const goesOn = await advance(work, progress, (tx) =>
      tx.query(keepBlobStatement(tenantId, { ...blob, rows: segment.rows, sha256, kind: 'segment' })),
    );
    processed += segment.rows;
    deps.numbers.exported += segment.rows;
    if (!goesOn) return;
  }
  const sha256 = await digestOfAll(work);
  await advance(work, { from: processed, succeeded: 0, failed: 0, ends: { state: 'COMPLETED', sha256 } });
}

/** Names of the columns, in the order of records in answers. */
function columnsOf({ job: { request } }: Work, { columns }: ObjectColumns): string[] {
  const asked: unknown = Object.entries(request.query ?? {}).find(([name]) => name === 'fields')?.[1];
  const names =
    typeof asked === 'string' ? asked.split(',').map((name) => name.trim()) : Array.isArray(asked) ? asked : null;
  const shown = columns.map(({ apiName }) => apiName);
  return [...(names ? shown.filter((name) => name === 'id' || names.includes(name)) : shown), ETAG];
}

async function readSegment(
  { deps, job, signal }: Work,
  object: ObjectColumns,
  { columns, next, segments }: Position,
): Promise<{ content: Buffer; rows: number; next: string | null }> {
  const { format, csv, query, compression, objectApiName } = job.request;
  const end = csv?.lineEnding === 'CRLF' ? '\r\n' : '\n';
  const forms = new Map(object.columns.map(({ apiName, form }) => [apiName, form]));
  const exact = object.columns.some(({ form }) => form === 'json');
  const line = (record: Shown): string =>
    format === 'ndjson'
      ? JSON.stringify(record)
      : csvLine(
          columns.map((name) => cellOf(record[name], forms.get(name) ?? 'text')),
          csv?.delimiter,
        );
  const lines: string[] = [];
  if (segments === 0 && format === 'csv') lines.push(csvLine(columns, csv?.delimiter));
  let chars = 0;
  let rows = 0;
  let cursor = next;
  do {
    signal.throwIfAborted();
    const asked = { ...query, take: LIMITS.take_max, includeEtag: true, ...(cursor === null ? {} : { cursor }) };
    const page = pageOf(await deps.read(contextOf(job), objectApiName, asked), exact);
    for (const record of page.records) {
      const text = line(record);
      lines.push(text);
      chars += text.length;
    }
    rows += page.records.length;
    cursor = page.nextCursor;
  } while (cursor !== null && chars < SEGMENT_CHARS);
  const content = Buffer.from(lines.map((text) => text + end).join(''));
  return { content: compression === 'gzip' ? await compressed(content) : content, rows, next: cursor };
}

/** `exact`: values of json fields may have more digits than a double. */
const pageOf = (page: Buffer, exact: boolean): { records: Shown[]; nextCursor: string | null } =>
  JSON.parse(Buffer.from(page).toString(), exact ? keepDigits : undefined);

function keepDigits(_name: string, value: unknown, { source }: { source?: string } = {}): unknown {
  return typeof value === 'number' && source !== undefined && String(value) !== source
    ? new ExactNumber(source)
    : value;
}

/** SHA-256 of the segments, one after the other. */
async function digestOfAll({ deps, tenantId, job, signal }: Work): Promise<string> {
  const segments = await deps.database.shared('bulk', tenantId, (tx) =>
    tx.all<BlobRow>(blobsStatement(tenantId, job.jobId, 'segment')),
  );
  const hash = createHash('sha256');
  for (const { key, bytes } of segments) {
    signal.throwIfAborted();
    if (bytes > 0) for await (const chunk of await deps.blobs.read(key, { from: 0, bytes })) hash.update(chunk);
  }
  return hash.digest('hex');
}
