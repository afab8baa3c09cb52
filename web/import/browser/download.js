/** Makes the files of failed rows and of results. */
import { answer, call } from '../../shared/api.js';
import { failedRows, TYPES } from '../../shared/rows.js';
import { rowsOfFile } from './file.js';

/** @import { Job, RowResult, Source } from './types.d.ts' */

/** Maximum page size of results. */
const PAGE_ROWS = 5_000;
/** Text is moved into blobs of this size, which the browser may keep on disk. */
const PIECE_CHARS = 4 * 1024 * 1024;

/**
 * @param {string} name
 * @param {string} type
 * @param {AsyncIterable<string>} texts
 */
async function save(name, type, texts) {
  /** @type {Blob[]} */
  const pieces = [];
  let open = '';
  for await (const text of texts) {
    open += text;
    if (open.length < PIECE_CHARS) continue;
    pieces.push(new Blob([open]));
    open = '';
  }
  const address = URL.createObjectURL(new Blob([...pieces, open], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // Revoked late: the download may not have started yet.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

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
  await save(`${stem}-failed.${ending}`, TYPES[format], texts());
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
export const saveResults = (job) => save(`${job.objectApiName}-results.csv`, TYPES.csv, resultsOf(job));

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
