/** `data export`: the records of a query as a file, made by a bulk job. */
import { rm } from 'node:fs/promises';
import { extname } from 'node:path';
import type { OperationInput } from '../../contracts/operations.ts';
import type { Run } from '../command.ts';
import { parse } from '../data/assignments.ts';
import { readConditions } from '../data/conditions.ts';
import { describe, fieldOf } from '../data/objects.ts';
import { usage } from '../failure.ts';
import { download } from '../files/content.ts';
import type { Api } from '../http/api.ts';
import { openUnfinished } from '../http/unfinished.ts';
import { onInterrupt } from '../output/interrupt.ts';
import { openProgress } from '../output/progress.ts';
import { follow, outcomeOf } from './follow.ts';

export interface ExportOptions {
  output: string;
  fields?: string | undefined;
  where?: string[] | undefined;
  filters?: string | undefined;
  sort?: string | undefined;
  delimiter?: string | undefined;
}

export async function exportRecords(run: Run, objectApiName: string, options: ExportOptions): Promise<void> {
  const api = await run.api();
  const body = creationOf(objectApiName, options, await filtersOf(api, objectApiName, options));
  const unfinished = await openUnfinished(run, ['export', options.output, JSON.stringify(body)]);
  const progress = openProgress(run.output, { quiet: true });
  const restore = onInterrupt(() => run.output.note('\nStopped. Run the same command again to resume the export.'));
  try {
    let jobId = unfinished.found?.['jobId'];
    if (typeof jobId !== 'string') {
      jobId = (await api.call('bulk.jobs.create', { body }, { what: 'The export' })).body.jobId;
      await unfinished.keep({ jobId });
      // A partial download belongs to an earlier job.
      await rm(`${options.output}.part`, { force: true });
    }
    const path = { jobId: String(jobId) };
    const answer = await follow(run, path.jobId);
    const failure = outcomeOf(answer.body);
    if (failure) {
      await unfinished.forget();
      throw failure;
    }
    const bytes = await download({
      ask: (from) => api.content('bulk.results.list', { path }, from),
      path: options.output,
      what: options.output,
      progress,
    });
    await unfinished.forget();
    // The download is complete: the copy on the platform is not needed any more.
    await api.call('bulk.jobs.delete', { path });
    progress.end();
    run.output.result(answer, () => run.output.line(`${options.output}\t${answer.body.counts.succeeded}\t${bytes}`));
  } finally {
    progress.end();
    restore();
  }
}

async function filtersOf(api: Api, objectApiName: string, { where, filters }: ExportOptions): Promise<unknown> {
  if (filters !== undefined && where) throw usage('--filters and --where cannot be combined.');
  if (filters !== undefined) return parse(filters, '--filters');
  if (!where) return undefined;
  const description = await describe(api, objectApiName);
  return readConditions(where, false, (name) => fieldOf(description, name));
}

function creationOf(
  objectApiName: string,
  options: ExportOptions,
  filters: unknown,
): OperationInput<'bulk.jobs.create'>['body'] {
  const { output, fields, sort, delimiter } = options;
  const compressed = output.endsWith('.gz');
  const ending = extname(compressed ? output.slice(0, -3) : output).toLowerCase();
  const format = ending === '.csv' ? 'csv' : /^\.(nd)?jsonl?$/.test(ending) ? 'ndjson' : null;
  if (!format) throw usage('--output must end with .csv or .ndjson, optionally followed by .gz.');
  return {
    operation: 'export',
    objectApiName,
    format,
    ...(compressed ? { compression: 'gzip' as const } : {}),
    ...(delimiter === undefined ? {} : { csv: { delimiter: delimiter as ',' } }),
    query: {
      ...(fields ? { fields: fields.split(',').map((name) => name.trim()) } : {}),
      ...(filters === undefined ? {} : { filters }),
      ...(sort
        ? {
            sort: sort
              .split(',')
              .map((name) => ({ id: name.trim().replace(/^-/, ''), desc: name.trim().startsWith('-') })),
          }
        : {}),
    },
  };
}
