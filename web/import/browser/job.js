/** One import: upload, progress and results. The address contains the job id, so that the page survives a reload. */
import { CallFailed, call } from '../../shared/api.js';
import { announce, button, element, fill, foreign } from '../../shared/elements.js';
import { showBox } from '../../shared/failure.js';
import { moment } from '../../shared/format.js';
import { partsOf, TYPES } from '../../shared/rows.js';
import { saveFailedRows, saveResults } from './download.js';
import { failureBox } from './failure.js';
import { FileRefused, openFile, rowsOfFile } from './file.js';
import { problemTable, rowInFile } from './problems.js';

/** @import { Place, View } from '../../shared/types.d.ts' */
/** @import { Description, Job, RowResult, Source } from './types.d.ts' */

/** Reading a job is free once a second. */
export const ASK_MS = 1_000;
/** Minimum seconds between two announcements of the progress to a screen reader. */
const ANNOUNCE_EVERY = 15;
const SHOWN_FAILURES = 50;
/** Storage of what identifies the file of a job after a reload. */
const KEPT = 'import-job:';

/** @param {number} milliseconds */
export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** @param {Job} job */
export const ended = ({ state }) => state === 'COMPLETED' || state === 'FAILED' || state === 'CANCELED';

/**
 * The file of a job, while this page has it.
 * @typedef {object} Work
 * @property {Source} source
 * @property {number} parts that are stored
 * @property {number} bytes of these parts
 * @property {boolean} running
 * @property {unknown} error why the upload has stopped
 * @property {AbortController} abort
 */

/** @type {Map<string, Work>} */
const works = new Map();

window.addEventListener('beforeunload', (event) => {
  if ([...works.values()].some(({ running }) => running)) event.preventDefault();
});

/**
 * Creates the job, and starts the upload of the file.
 * @param {object} body
 * @param {Source} source
 * @returns {Promise<string>} its id
 */
export async function beginImport(body, source) {
  /** @type {Job} */
  const { jobId } = await call('/bulk/jobs', { body, key: crypto.randomUUID() });
  void upload(jobId, source, 0);
  return jobId;
}

/**
 * Uploads the parts after the first `done` ones, and starts the job. An error is kept for the view.
 * @param {string} jobId
 * @param {Source} source
 * @param {number} done parts that are stored
 */
async function upload(jobId, source, done) {
  /** @type {Work} */
  const work = { source, parts: 0, bytes: 0, running: true, error: null, abort: new AbortController() };
  works.set(jobId, work);
  keep(jobId, source, done);
  const { signal } = work.abort;
  try {
    for await (const bytes of partsOf(rowsOfFile(source), source.format)) {
      if (work.parts >= done)
        await call(`/bulk/jobs/${jobId}/parts/${work.parts + 1}`, {
          method: 'PUT',
          content: { type: TYPES[source.format], bytes },
          key: crypto.randomUUID(),
          patient: true,
          signal,
        });
      work.parts++;
      work.bytes += bytes.length;
      if (work.parts > done) keep(jobId, source, work.parts);
    }
    await call(`/bulk/jobs/${jobId}/start`, { method: 'POST', key: crypto.randomUUID(), patient: true, signal });
  } catch (error) {
    if (!signal.aborted) work.error = error;
  } finally {
    work.running = false;
  }
}

/** @typedef {Pick<Source, 'format' | 'encoding' | 'delimiter'> & { name: string, size: number, lastModified: number, parts: number }} Kept */

/**
 * @param {string} jobId
 * @param {Source} source
 * @param {number} parts that are stored
 */
function keep(jobId, { file, format, encoding, delimiter }, parts) {
  const { name, size, lastModified } = file;
  try {
    sessionStorage.setItem(
      KEPT + jobId,
      JSON.stringify({ name, size, lastModified, format, encoding, delimiter, parts }),
    );
  } catch {
    // Storage is unavailable: an upload cannot go on after a reload.
  }
}

/**
 * @param {string} jobId
 * @returns {Kept | null}
 */
const keptOf = (jobId) => JSON.parse(sessionStorage.getItem(KEPT + jobId) ?? 'null');

/**
 * @param {HTMLElement} main
 * @param {string} jobId
 * @param {Place} place
 * @returns {Promise<View>}
 */
export async function showJob(main, jobId, place) {
  /** @type {Job} */
  const job = await call(`/bulk/jobs/${encodeURIComponent(jobId)}`);
  const label = await pluralOf(job.objectApiName);
  const view = new JobView(main, job, label, place);
  void view.follow();
  return { title: `Import into ${label}`, close: () => view.close() };
}

/** @param {string} objectApiName */
async function pluralOf(objectApiName) {
  try {
    /** @type {Description} */
    const { labelPlural } = await call(`/objects/${encodeURIComponent(objectApiName)}/describe`);
    return labelPlural;
  } catch (error) {
    if (error instanceof CallFailed) return objectApiName;
    throw error;
  }
}

/** @type {Record<string, string>} */
const DEEDS = { create: 'Creates records', update: 'Updates records', upsert: 'Creates or updates records' };

class JobView {
  #job;
  #closed = false;
  #canceling = false;
  /** The end is shown. */
  #drawn = false;
  #announcedAt = 0;
  #numbers;
  #state = element('p', { class: 'state', id: 'state', tabindex: '-1' });
  #bar = /** @type {HTMLProgressElement} */ (element('progress', { 'aria-labelledby': 'state' }));
  #counts = element('dl', { class: 'counts' });
  #said = element('div', {});
  #actions = element('div', { class: 'actions' });
  #after = element('div', {});

  /**
   * @param {HTMLElement} main
   * @param {Job} job
   * @param {string} label of its object, as a plural
   * @param {Place} place
   */
  constructor(main, job, label, place) {
    this.#job = job;
    this.#numbers = new Intl.NumberFormat(place.locale);
    const name = keptOf(job.jobId)?.name;
    const facts = [DEEDS[job.operation] ?? job.operation, `started ${moment(job.createdAt, place)}`];
    fill(
      main,
      element(
        'p',
        { class: 'crumbs' },
        element('a', { href: `/import?${new URLSearchParams({ object: job.objectApiName })}` }, 'Import a spreadsheet'),
      ),
      element('h1', { tabindex: '-1' }, 'Import into ', foreign(label)),
      element('p', { class: 'lead' }, ...(name ? [foreign(name), ' · '] : []), facts.join(' · ')),
      element(
        'section',
        { class: 'card', 'aria-label': 'Progress' },
        this.#state,
        this.#bar,
        this.#counts,
        this.#said,
        this.#actions,
      ),
      this.#after,
    );
  }

  close() {
    this.#closed = true;
  }

  get #work() {
    return works.get(this.#job.jobId);
  }

  /** Shows the job until it has ended, or until the user has to do something. */
  async follow() {
    this.#drawCancel();
    while (!this.#closed) {
      const { state } = this.#job;
      if (ended(this.#job)) return this.#drawEnd();
      const isOpen = state === 'OPEN' || state === 'UPLOADED';
      // If the upload has just ended, the job is started, and its state is read next.
      if (isOpen && !this.#canceling && (!this.#work || this.#work.error)) return this.#drawInterrupted();
      this.#draw();
      await wait(ASK_MS);
      if (this.#closed) return;
      try {
        if (!this.#work?.running) this.#job = await call(`/bulk/jobs/${this.#job.jobId}`, { patient: true });
      } catch (error) {
        this.#stopped('The state of the import is not known', error);
        return;
      }
    }
  }

  /**
   * @param {string} title
   * @param {unknown} error
   */
  #stopped(title, error) {
    if (this.#closed) return;
    const again = button('Try again', () => {
      fill(this.#said);
      void this.#resume();
    });
    // An error of the file or its columns is permanent: this import can only be canceled.
    const passes = error instanceof CallFailed && error.passes;
    showBox(this.#said, failureBox(title, error, ...(passes ? [again] : [])));
  }

  /** Reads the state anew, and goes on from there. */
  async #resume() {
    try {
      this.#job = await call(`/bulk/jobs/${this.#job.jobId}`);
    } catch (error) {
      this.#stopped('The state of the import is not known', error);
      return;
    }
    const work = this.#work;
    if ((this.#job.state === 'OPEN' || this.#job.state === 'UPLOADED') && work && !work.running)
      void upload(this.#job.jobId, work.source, work.parts);
    await this.follow();
  }

  #draw() {
    const { counts, state } = this.#job;
    const work = this.#work;
    if (work?.running) {
      this.#progress(`Uploading ${work.source.file.name}`, work.bytes, Math.max(work.bytes, work.source.file.size));
    } else {
      const total = counts.total ?? 0;
      const rows = `${this.#numbers.format(counts.processed)} of ${this.#numbers.format(total)} rows`;
      if (state === 'PROCESSING') this.#progress(`Importing: ${rows}`, counts.processed, total);
      else if (state === 'CANCELING')
        this.#progress('Canceling: the rows under way are finished first', counts.processed, total);
      else this.#progress(this.#canceling ? 'Canceling' : 'Waiting for its turn', 0, 0);
      this.#drawCounts();
    }
  }

  /**
   * @param {string} text
   * @param {number} value
   * @param {number} max 0: not known
   */
  #progress(text, value, max) {
    if (this.#state.textContent !== text) fill(this.#state, text);
    this.#bar.hidden = false;
    if (max > 0) {
      this.#bar.max = max;
      this.#bar.value = value;
    } else this.#bar.removeAttribute('value');
    const now = performance.now() / 1_000;
    if (this.#announcedAt !== 0 && now - this.#announcedAt < ANNOUNCE_EVERY) return;
    this.#announcedAt = now;
    announce(max > 0 ? `${text}, ${Math.floor((100 * value) / max)} %` : text);
  }

  #drawCounts() {
    const { total, succeeded, failed, unprocessed } = this.#job.counts;
    /** @type {[string, number | null, string][]} */
    const counts = [
      ['Rows', total, ''],
      [this.#job.checkOnly ? 'Fine' : 'Imported', succeeded, succeeded > 0 ? 'good' : ''],
      ['Failed', failed, failed > 0 ? 'bad' : ''],
      ['Not reached', ended(this.#job) ? unprocessed || null : unprocessed, ''],
    ];
    fill(
      this.#counts,
      ...counts.flatMap(([term, count, mark]) =>
        count === null
          ? []
          : [element('div', {}, element('dt', {}, term), element('dd', { class: mark }, this.#numbers.format(count)))],
      ),
    );
  }

  #drawCancel() {
    const cancel = button('Cancel the import', () => void act());
    const act = async () => {
      cancel.toggleAttribute('disabled', true);
      this.#canceling = true;
      this.#work?.abort.abort();
      try {
        this.#job = await call(`/bulk/jobs/${this.#job.jobId}/cancel`, { method: 'POST', key: crypto.randomUUID() });
        announce('The import is being canceled.');
        // An interrupted upload is not being followed.
        if (ended(this.#job)) this.#drawEnd();
      } catch (error) {
        // It has ended meanwhile: read its state.
        if (error instanceof CallFailed && error.code === 'JOB_STATE_CONFLICT') await this.#resume();
        else this.#stopped('It could not be canceled', error);
      } finally {
        this.#canceling = false;
        cancel.toggleAttribute('disabled', false);
      }
    };
    fill(this.#actions, cancel);
  }

  /** The file is not in memory any more, or its upload has failed. */
  #drawInterrupted() {
    this.#bar.hidden = true;
    const work = this.#work;
    if (work) {
      fill(this.#state, 'The upload has stopped');
      this.#stopped('The file could not be uploaded', work.error);
      return;
    }
    const kept = keptOf(this.#job.jobId);
    fill(this.#state, 'The upload was interrupted');
    const text = kept
      ? [`Nothing was imported yet. Choose `, foreign(kept.name), ' again, and the upload goes on where it stopped.']
      : ['Nothing was imported yet, and this browser does not know the file. Cancel this import and begin anew.'];
    fill(
      this.#said,
      element('p', {}, ...text),
      ...(kept ? [this.#fileAgain(kept, (source) => this.#goOn(source, kept.parts))] : []),
    );
    announce('The upload was interrupted.');
  }

  /**
   * @param {Source} source
   * @param {number} parts
   */
  #goOn(source, parts) {
    fill(this.#said);
    void upload(this.#job.jobId, source, parts);
    void this.follow();
  }

  /**
   * @param {Kept | null} kept
   * @param {(source: Source) => void} found
   */
  #fileAgain(kept, found) {
    const wrong = element('div', {});
    const input = /** @type {HTMLInputElement} */ (
      element('input', {
        type: 'file',
        id: 'file-again',
        accept: '.csv,.tsv,.txt,.ndjson,.jsonl',
        change: () => void chosen(),
      })
    );
    const chosen = async () => {
      const [file] = input.files ?? [];
      input.value = '';
      if (!file) return;
      try {
        if (kept && (file.name !== kept.name || file.size !== kept.size || file.lastModified !== kept.lastModified))
          throw new FileRefused(`That is not ${kept.name} as it was when the import began.`);
        const opened = await openFile(file);
        fill(wrong);
        found(kept ? { ...opened, encoding: kept.encoding, delimiter: kept.delimiter, format: kept.format } : opened);
      } catch (error) {
        showBox(wrong, failureBox('Another file is needed', error));
      }
    };
    return element(
      'div',
      { class: 'again' },
      wrong,
      element('label', { for: 'file-again' }, kept ? `Choose ${kept.name} again` : 'Choose the file again'),
      input,
    );
  }

  #drawEnd() {
    if (this.#closed || this.#drawn) return;
    this.#drawn = true;
    const held = this.#actions.contains(document.activeElement);
    this.#bar.hidden = true;
    this.#drawCounts();
    fill(this.#said);
    fill(this.#actions);
    fill(this.#state, this.#ending());
    this.#state.classList.toggle('finished', this.#isWhole());
    document.body.dataset['ended'] = 'true';
    if (held) this.#state.focus();
    announce(this.#ending());
    void this.#drawAfter();
  }

  #isWhole() {
    const { state, counts } = this.#job;
    return state === 'COMPLETED' && counts.failed === 0;
  }

  #ending() {
    const { state, counts, error } = this.#job;
    if (state === 'CANCELED') return 'The import was canceled. What had been imported before stays.';
    if (state === 'FAILED')
      return `The import has stopped: ${error ? `${error.message} (${error.code})` : 'the reason is not known.'}`;
    if (this.#isWhole()) return counts.succeeded === 1 ? 'The row is imported' : 'All rows are imported';
    if (counts.succeeded === 0)
      return counts.total === 1 ? 'The row could not be imported' : 'No row could be imported';
    return 'The import is finished; some rows could not be imported';
  }

  async #drawAfter() {
    const { counts, objectApiName } = this.#job;
    const left = counts.failed + (counts.unprocessed ?? 0);
    /** @type {Node[]} */
    const parts = [];
    if (counts.failed > 0) parts.push(await this.#failures());
    const said = element('div', {});
    const results =
      counts.processed > 0
        ? [this.#download('Download the outcome of every row', said, () => saveResults(this.#job))]
        : [];
    const next = element(
      'a',
      { href: `/import?${new URLSearchParams({ object: objectApiName })}` },
      'Import another file',
    );
    if (left > 0 && counts.total !== null) parts.push(this.#rowsLeft());
    parts.push(said, element('div', { class: 'actions' }, ...results, next));
    if (!this.#closed) fill(this.#after, ...parts);
  }

  async #failures() {
    const { jobId, counts } = this.#job;
    const format = this.#work?.source.format ?? keptOf(jobId)?.format ?? 'csv';
    const heading = element(
      'h2',
      {},
      `${this.#numbers.format(counts.failed)} ${counts.failed === 1 ? 'row' : 'rows'} failed`,
    );
    try {
      /** @type {{ records: RowResult[] }} */
      const { records } = await call(`/bulk/jobs/${jobId}/results?outcome=failed&take=${SHOWN_FAILURES}`);
      const problems = records.flatMap(({ rowNumber, errors }) =>
        errors.map(({ column, message, code }) => ({ row: rowInFile(rowNumber, format), column, message, code })),
      );
      const more = counts.failed - records.length;
      return element(
        'section',
        {},
        heading,
        problemTable(problems, this.#numbers, false),
        ...(more > 0
          ? [
              element(
                'p',
                { class: 'hint' },
                `And ${this.#numbers.format(more)} more rows: the file below has them all.`,
              ),
            ]
          : []),
      );
    } catch (error) {
      return element('section', {}, heading, failureBox('The rows cannot be shown', error));
    }
  }

  /** Offers the rows that were not imported as a file. */
  #rowsLeft() {
    const failed = this.#job.counts.failed > 0;
    const said = element('div', {});
    const body = element('div', {});
    const label = failed ? 'Download the failed rows' : 'Download these rows';
    const offer = (/** @type {Source} */ source) => {
      const made = this.#download(label, said, () => saveFailedRows(this.#job, source), '');
      fill(body, element('div', { class: 'actions' }, made));
    };
    const work = this.#work;
    if (work) offer(work.source);
    else fill(body, this.#fileAgain(keptOf(this.#job.jobId), offer));
    const hint = failed ? ' The column _error says what is wrong; an import leaves it out.' : '';
    return element(
      'section',
      { class: 'card', 'aria-labelledby': 'mend' },
      element('h2', { id: 'mend' }, failed ? 'Correct and import again' : 'Import the rest'),
      element('p', {}, `Download the rows that were not imported, as they stand in your file.${hint}`),
      said,
      body,
    );
  }

  /**
   * @param {string} label
   * @param {HTMLElement} said
   * @param {() => Promise<void>} save
   * @param {string} [look] class of the button
   */
  #download(label, said, save, look = 'quiet') {
    const made = button(label, () => void act(), { class: look });
    const act = async () => {
      made.toggleAttribute('disabled', true);
      fill(said);
      announce('The file is being made.');
      try {
        await save();
        announce('The file is downloaded.');
      } catch (error) {
        showBox(said, failureBox('The file could not be made', error));
      } finally {
        made.toggleAttribute('disabled', false);
      }
    };
    return made;
  }
}
