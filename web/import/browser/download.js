/** Makes the files of failed rows and of results. */
import { answer, call } from '../../shared/api.js';
import { failedRows, TYPES } from '../../shared/rows.js';
import { saveTexts } from '../../shared/save.js';
import { rowsOfFile } from './file.js';

/** @import { Job, RowResult, Source } from './types.d.ts' */

/** Maximum page size of results. */
const PAGE_ROWS = 5_000;

/**
 * Rows that failed or were not reached, in their order.
 * @param {string} jobId
 * @returns {AsyncGenerator<RowResult, undefined>}
 */
async function* unwritten(jobId) {
  for (const outcome of ['failed', 'unprocessed']) {
    /** @type {string | null} */
    let cursor = null;
    do {
      const query = new URLSearchParams({ outcome, take: String(PAGE_ROWS), ...(cursor ? { cursor } : {}) });
      /** @type {{ records: RowResult[], nextCursor: string | null }} */
      const page = await call(`/bulk/jobs/${jobId}/results?${query}`, { patient: true });
      yield* page.records;
      cursor = page.nextCursor;
    } while (cursor);
  }
  return undefined;
}

/**
 * The rows that were not imported as they stand in the file, to be corrected and imported.
 * @param {Job} job
 * @param {Source} source
 */
export async function saveFailedRows(job, source) {
  const { file, format } = source;
  const [, stem = file.name, ending = format] = /^(.*)\.([^.]+)$/.exec(file.name) ?? [];
  await saveTexts(`${stem}-failed.${ending}`, TYPES[format], texts());
  async function* texts() {
    // Spreadsheets recognize UTF-8 by the byte order mark; an import accepts it.
    if (format === 'csv') yield '\ufeff';
    yield* failedRows(rowsOfFile(source), unwritten(job.jobId), source);
  }
}

/**
 * The outcome of every row, with the ids of records, as CSV.
 * @param {Job} job
 */
export const saveResults = (job) => saveTexts(`${job.objectApiName}-results.csv`, TYPES.csv, resultsOf(job));

/** @param {Job} job */
async function* resultsOf({ jobId }) {
  yield '\ufeff';
  /** @type {string | null} */
  let path = `/bulk/jobs/${jobId}/results?take=${PAGE_ROWS}`;
  for (let first = true; path; first = false) {
    const response = /** @type {Response} */ (await answer(path, { accept: TYPES.csv, patient: true }));
    const text = await response.text();
    // Each page begins with the header line.
    yield first ? text : text.slice(text.indexOf('\n') + 1);
    const next = /<([^>]+)>;\s*rel="next"/.exec(response.headers.get('link') ?? '')?.[1];
    path = next ? next.slice(next.indexOf('/bulk/')) : null;
  }
}
