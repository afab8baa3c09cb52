/** `data import`: a file of CSV or NDJSON as a bulk job, from its parts to the rows that failed. */
import { createReadStream, createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pages } from '../../client/pages.ts';
import type { OperationInput, OperationOutput } from '../../contracts/operations.ts';
import { membersOf } from '../../lib/json/objects.ts';
import { parseYaml, YamlError } from '../../lib/yaml/parse.ts';
import { ERROR_COLUMN, type Format, failedRows, partsOf, RowTooLong, rowsOf, TYPES } from '../../web/shared/rows.js';
import type { Run } from '../command.ts';
import { ApiFailure, usage } from '../failure.ts';
import { measure } from '../files/content.ts';
import type { Api } from '../http/api.ts';
import { openUnfinished, type Unfinished } from '../http/unfinished.ts';
import { onInterrupt } from '../output/interrupt.ts';
import { openProgress } from '../output/progress.ts';
import { counted } from '../output/values.ts';
import { follow, hasEnded, type Job, outcomeOf, showJob } from './follow.ts';

export interface ImportOptions {
  object: string;
  operation?: string | undefined;
  externalId?: string | undefined;
  map?: string | undefined;
  delimiter?: string | undefined;
  locale?: string | undefined;
  allOrNone?: true | undefined;
  lastWriteWins?: true | undefined;
  reportDuplicates?: true | undefined;
  failed?: string | undefined;
}

type Creation = OperationInput<'bulk.jobs.create'>['body'];
type RowResult = OperationOutput<'bulk.results.list'>['records'][number];

/** Rows that are shown without --failed. */
const SHOWN_MAX = 20;

export async function importFile(run: Run, path: string, options: ImportOptions): Promise<void> {
  const api = await run.api();
  const format = formatOf(path);
  const { size, sha256 } = await measure(path);
  const body = await creationOf(run, format, options);
  const unfinished = await openUnfinished(run, ['import', sha256, JSON.stringify(body)]);
  const restore = onInterrupt(() =>
    run.output.note(
      '\nStopped. A job that was started continues on the platform. Run the same command again to resume.',
    ),
  );
  try {
    const job = await begun(api, body, unfinished);
    if (job.state === 'OPEN' || job.state === 'UPLOADED')
      await send(run, api, { path, format, size, job, unfinished }).catch(async (error: unknown) => {
        // The file as it is corrected is another one, and begins a job of its own: this one would stay open.
        if (error instanceof ApiFailure && error.code === 'BULK_DATA_INVALID') {
          await api.call('bulk.jobs.delete', { path: { jobId: job.jobId } }, { saysDryRun: true });
          await unfinished.forget();
        }
        throw error;
      });
    const answer = await follow(run, job.jobId);
    await unfinished.forget();
    showJob(run, answer);
    await tellFailed(run, api, { path, format, options, job: answer.body });
    const failure = outcomeOf(answer.body);
    if (failure) throw failure;
  } finally {
    restore();
  }
}

function formatOf(path: string): Format {
  const ending = extname(path).toLowerCase();
  if (ending === '.csv' || ending === '.tsv' || ending === '.txt') return 'csv';
  if (ending === '.ndjson' || ending === '.jsonl') return 'ndjson';
  throw usage(`${path} is neither CSV nor NDJSON by its name.`, 'Save the spreadsheet as CSV: name.csv');
}

async function creationOf(run: Run, format: Format, options: ImportOptions): Promise<Creation> {
  const { delimiter, locale, externalId } = options;
  const operation = options.operation ?? (externalId === undefined ? 'create' : 'upsert');
  const csv = { ...(delimiter === undefined ? {} : { delimiter }), ...(locale === undefined ? {} : { locale }) };
  // The platform checks it against the schema, and names everything that is wrong with it.
  return {
    operation,
    objectApiName: options.object,
    format,
    columns: { [ERROR_COLUMN]: null, ...(options.map === undefined ? {} : await mappingOf(options.map)) },
    ...(externalId === undefined ? {} : { externalIdField: externalId }),
    ...(format === 'csv' && Object.keys(csv).length > 0 ? { csv } : {}),
    ...(options.allOrNone ? { allOrNone: true } : {}),
    ...(run.options.dryRun ? { checkOnly: true } : {}),
    ...(options.lastWriteWins ? { conflictPolicy: 'lastWriteWins' } : {}),
    ...(options.reportDuplicates ? { duplicatePolicy: 'report' } : {}),
  } as Creation;
}

/** Columns of the file and the fields that they stand for, as YAML; a column without a field is left out. */
async function mappingOf(path: string): Promise<Record<string, string | null>> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw usage(`--map: ${error instanceof Error ? error.message : String(error)}`);
  });
  try {
    const fields: Record<string, string | null> = {};
    for (const [column, field] of Object.entries(membersOf(parseYaml(text).value))) {
      if (field !== null && typeof field !== 'string') throw usage(`${path}: ${column} must stand for one field.`);
      fields[column] = field;
    }
    if (Object.keys(fields).length === 0) throw usage(`${path} must be lines of "column: field".`);
    return fields;
  } catch (error) {
    if (error instanceof YamlError) throw usage(`${path}: ${error.message}`);
    throw error;
  }
}

/** The job that an earlier command began with the same file, or a new one. */
async function begun(api: Api, body: Creation, unfinished: Unfinished): Promise<Job> {
  const jobId = unfinished.found?.['jobId'];
  if (typeof jobId === 'string')
    try {
      const { body: job } = await api.call('bulk.jobs.get', { path: { jobId } });
      if (!hasEnded(job)) return job;
    } catch (error) {
      if (!(error instanceof ApiFailure && error.status === 404)) throw error;
    }
  const { body: job } = await api.call('bulk.jobs.create', { body }, { what: 'The job', saysDryRun: true });
  await unfinished.keep({ jobId: job.jobId, parts: 0 });
  return job;
}

interface Sending {
  path: string;
  format: Format;
  size: number;
  job: Job;
  unfinished: Unfinished;
}

/** Uploads the parts that the platform does not have yet, and starts the job. */
async function send(run: Run, api: Api, { path, format, size, job: { jobId }, unfinished }: Sending): Promise<void> {
  const progress = openProgress(run.output);
  const sent = unfinished.found?.['jobId'] === jobId ? Number(unfinished.found['parts']) : 0;
  try {
    let part = 0;
    let bytes = 0;
    for await (const rows of partsOf(rowsOfFile(path, format), format)) {
      part++;
      bytes += rows.length;
      progress.update('Uploading', Math.min(bytes, size), size);
      if (part <= sent) continue;
      await api.call(
        'bulk.parts.upload',
        { path: { jobId, partNumber: String(part) } },
        {
          content: { type: TYPES[format], bytes: rows },
          what: `Part ${part}`,
          saysDryRun: true,
        },
      );
      await unfinished.keep({ jobId, parts: part });
    }
    if (part === 0) throw usage(`${path} has no rows.`);
    await api.call('bulk.jobs.start', { path: { jobId } }, { what: 'The start', saysDryRun: true });
  } finally {
    progress.end();
  }
}

interface Import {
  path: string;
  format: Format;
  options: ImportOptions;
  job: Job;
}

/** Reports rows that were not written: all into the file of --failed, or the first ones on standard error. */
async function tellFailed(run: Run, api: Api, { path, format, options, job }: Import): Promise<void> {
  const left = job.counts.failed + (job.counts.unprocessed ?? 0);
  if (left === 0) return;
  if (options.failed !== undefined) {
    await pipeline(
      failedRows(rowsOfFile(path, format), unwritten(api, job.jobId), { format, delimiter: options.delimiter ?? ',' }),
      createWriteStream(options.failed),
    );
    run.output.note(
      `${counted(left, 'row', 'rows')} not written: ${options.failed}. Correct them, then import that file.`,
    );
    return;
  }
  if (run.output.json) return;
  const query = { outcome: 'failed', take: SHOWN_MAX } as const;
  const { records } = (await api.call('bulk.results.list', { path: { jobId: job.jobId }, query })).body;
  run.output.noteTable(
    [{ title: 'Row' }, { title: 'Column' }, { title: 'Problem' }],
    records.flatMap(({ rowNumber, errors }) =>
      errors.map(({ column = '', message, code }) => [String(rowNumber), column, `${message} (${code})`]),
    ),
  );
  if (left > records.length) run.output.note(`${left - records.length} more: --failed <file> writes them all.`);
}

/** The rows of the file. Names the file in the error for a row that is too long. */
async function* rowsOfFile(path: string, format: Format): AsyncGenerator<Uint8Array> {
  try {
    yield* rowsOf(createReadStream(path, { highWaterMark: 1024 * 1024 }), format);
  } catch (error) {
    throw error instanceof RowTooLong ? usage(`${path}: ${error.message}`) : error;
  }
}

/** Rows that failed or were not reached, in their order. */
async function* unwritten(api: Api, jobId: string): AsyncGenerator<RowResult> {
  for (const outcome of ['failed', 'unprocessed'] as const)
    for await (const { body } of pages(
      (cursor) => api.call('bulk.results.list', { path: { jobId }, query: { outcome, ...(cursor ? { cursor } : {}) } }),
      ({ body }) => body.nextCursor,
    ))
      yield* body.records;
}
