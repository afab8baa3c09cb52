/**
 * Writes records into segments of files: from the wire of the database into lines, and from there into the store of contents. A
 * segment is read by one cursor of the database, in steps that leave the process free for other requests in between.
 * Source: docs/reference/bulk.md#results.
 */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { SEGMENT_BYTES } from '../../../contracts/data/columns.ts';
import type { DataActions } from '../../../contracts/data.ts';
import { csvLine } from '../../../lib/cells/cells.ts';
import { CsvWriter } from '../../../lib/cells/csv-writer.ts';
import { type Asker, tenantSchema } from '../../../lib/context.ts';
import { type GrowingBytes, type RowShape, type RowSink, RowWriter } from '../../../lib/json/row-writer.ts';
import { LIMITS } from '../../../lib/limits.ts';
import { constrain } from '../../../lib/query/constrain.ts';
import { continuePlan, sealCursor } from '../../../lib/query/cursor.ts';
import { parseListQuery } from '../../../lib/query/parse.ts';
import { planList } from '../../../lib/query/plan.ts';
import { type CompiledList, compileList, type Page, readPage } from '../../../lib/query/sql.ts';
import { sealFor } from '../../../lib/values/sealed.ts';
import type { Blobs } from '../../../mixins/blobs/blobs.ts';
import type { Tx } from '../../../mixins/database/database.ts';
import { visibleObject } from '../object-access.ts';
import { formOf } from '../read/columns.ts';
import type { ReadDeps } from '../read/read.ts';
import { queryView } from '../read/records.ts';
import { assertFresh } from '../tenants.ts';

type Params = Omit<DataActions['data.rows.export']['params'], 'asker'>;

const compressed = promisify(gzip);

/** Records of a segment, and the time after which it ends: whoever waits for it wants to be asked whether to go on. */
const SEGMENT_ROWS = 100_000;
const SEGMENT_MS = 5_000;
/** Records of the first step, and of the longest. A step that has taken longer than STEP_MS is followed by a shorter one. */
const STEP_ROWS_MIN = 50;
const STEP_ROWS_MAX = 2_000;
const STEP_MS = 100;

type Writer = GrowingBytes & RowSink;

export async function exportSegment(
  { blobs, ...deps }: ReadDeps & { readonly blobs: Pick<Blobs, 'write'> },
  asker: Asker,
  params: Params,
): Promise<DataActions['data.rows.export']['result']> {
  const { lines, rows, nextCursor } = await readSegment(deps, asker, params);
  const content = params.file.compression === 'gzip' && lines.length > 0 ? await compressed(lines) : lines;
  if (content.length > 0) await blobs.write(params.key, Readable.from([content]));
  const sha256 = createHash('sha256').update(content).digest('hex');
  return { rows, bytes: content.length, sha256, nextCursor };
}

interface Segment {
  readonly lines: Buffer;
  readonly rows: number;
  readonly nextCursor: string | null;
}

async function readSegment(
  deps: ReadDeps,
  asker: Asker,
  { objectApiName, query, cursor, file }: Omit<Params, 'key'>,
): Promise<Segment> {
  const { tenantId, userId } = asker;
  const asked = { ...query, take: LIMITS.take_max, includeEtag: true, ...(cursor === null ? {} : { cursor }) };
  return deps.tenants.withView(tenantId, userId, async (view) => {
    const at = queryView(view);
    const seal = sealFor(asker, deps.sealingKeys, at.now);
    const list = parseListQuery(asked, 'body');
    const { object, readable } = visibleObject(view, objectApiName);
    const planned = planList(list, object, at, { ieee754Compatible: true });
    const plan = continuePlan({ ...planned, take: SEGMENT_ROWS }, list, seal);
    const compiled = compileList(constrain(plan, view.access), tenantSchema(tenantId));
    const writerOf = (shape: RowShape): Writer => {
      const lineEnd = file.lineEnding === 'CRLF' ? '\r\n' : '\n';
      const capacity = SEGMENT_BYTES + 64 * 1024;
      if (file.format === 'ndjson') return new RowWriter(shape, lineEnd, capacity);
      const { columns, delimiter } = file;
      const forms = new Map(readable.map((field) => [field.apiName, formOf(field)]));
      const writer = new CsvWriter(shape, { columns, forms, delimiter, lineEnd }, capacity);
      if (cursor === null) writer.appendText(csvLine(columns, delimiter) + lineEnd);
      return writer;
    };
    const { writer, rows, last } = await deps.database.tenantTransaction(tenantId, (tx) =>
      readSteps(tx, compiled, writerOf, ({ metadataVersion, accessVersion }) =>
        assertFresh(view, metadataVersion, accessVersion),
      ),
    );
    return { lines: writer.finish(), rows, nextCursor: last.lastKeys && sealCursor(last.lastKeys, plan, list, seal) };
  });
}

/** Reads records until the segment is full or there are no more. `check` is called before the second step. */
async function readSteps(
  tx: Tx,
  compiled: CompiledList,
  writerOf: (shape: RowShape) => Writer,
  check: (page: Page) => void,
): Promise<{ writer: Writer; rows: number; last: Page }> {
  const { text, values, name: _, ...columns } = compiled;
  const declared = tx.query({ text: `DECLARE export NO SCROLL CURSOR FOR ${text}`, values });
  let writer: Writer | undefined;
  const sink = {
    writerOf: (shape: RowShape): Writer => (writer ??= writerOf(shape)),
    maxBytes: SEGMENT_BYTES,
  };
  const begun = performance.now();
  let rows = 0;
  let wanted = STEP_ROWS_MIN;
  for (;;) {
    const asked = performance.now();
    const room = writer && rows > 0 ? Math.ceil((sink.maxBytes - writer.length) / (writer.length / rows)) : wanted;
    const take = Math.max(1, Math.min(wanted, room, SEGMENT_ROWS - rows));
    const step = await tx.rows({ ...columns, text: `FETCH ${take} FROM export`, values: [], take }, sink);
    await declared;
    const isLast = step.count < take && !step.more;
    const page = readPage(compiled, { ...step, more: !isLast });
    if (rows === 0) check(page);
    rows += step.count;
    const now = performance.now();
    if (isLast || step.writer.length >= sink.maxBytes || rows >= SEGMENT_ROWS || now - begun > SEGMENT_MS)
      return { writer: step.writer, rows, last: page };
    wanted = now - asked > STEP_MS ? Math.max(STEP_ROWS_MIN, wanted >> 1) : Math.min(STEP_ROWS_MAX, wanted * 4);
  }
}
