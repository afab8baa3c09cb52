/** The third step: check the first rows, and start the import. */
import { call } from '../../shared/api.js';
import { announce, button, element, fill, problem } from '../../shared/elements.js';
import { showBox } from '../../shared/failure.js';
import { TYPES } from '../../shared/rows.js';
import { jobOf, problemsOf, targetsOf } from './columns.js';
import { failureBox } from './failure.js';
import { ASK_MS, ended, wait } from './job.js';
import { problemTable, rowInFile } from './problems.js';

/** @import { Mapped } from './mapping.js' */
/** @import { Job, RowResult } from './types.d.ts' */

/** Maximum number of listed problems. */
const SHOWN_PROBLEMS = 200;

/**
 * @param {Mapped} mapped
 * @param {(body: object) => Promise<void>} begin begins the import
 * @param {string} locale
 */
export function lookPart(mapped, begin, locale) {
  const numbers = new Intl.NumberFormat(locale);
  const { sample } = mapped;
  const rowCount = sample.rows.length;
  const said = element('div', { class: 'said' });
  const first = rowCount === 1 ? 'row' : `${numbers.format(rowCount)} rows`;
  const check = button(`Check the first ${first}`, () => void look(), { id: 'check' });
  const start = element('button', { type: 'button', id: 'start', click: () => void begun() }, 'Import all rows');
  // Number of the current check: results for earlier settings are discarded.
  let looks = 0;
  /** @param {boolean} busy */
  const setBusy = (busy) => {
    check.toggleAttribute('disabled', busy);
    start.toggleAttribute('disabled', busy);
  };
  const isReady = () => {
    const problems = problemsOf(
      mapped.settings,
      targetsOf(mapped.object, mapped.referenced, mapped.settings.operation),
    );
    if (problems.length === 0) return true;
    const [first = '', ...more] = problems;
    showBox(said, problem('The columns are incomplete', first, ...more.map((text) => element('p', {}, text))));
    return false;
  };
  const body = () => jobOf(mapped.object.apiName, mapped.source, mapped.settings);
  const look = async () => {
    if (!isReady()) return;
    const asked = ++looks;
    setBusy(true);
    fill(said, element('p', { class: 'working' }, 'Trying out the rows; nothing is stored…'));
    announce('Trying out the rows.');
    try {
      const found = await tryOut(body(), mapped, () => asked === looks);
      if (found && asked === looks) showBox(said, outcome(found.job, found.failed, mapped, numbers));
    } catch (error) {
      if (asked === looks) showBox(said, failureBox('The rows could not be tried out', error));
    } finally {
      setBusy(false);
    }
  };
  const begun = async () => {
    if (!isReady()) return;
    setBusy(true);
    try {
      await begin(body());
    } catch (error) {
      showBox(said, failureBox('The import could not begin', error));
    } finally {
      setBusy(false);
    }
  };
  const part = element(
    'section',
    { class: 'card', 'aria-labelledby': 'look' },
    element('h2', { id: 'look' }, 'Check and import'),
    element(
      'p',
      { class: 'hint' },
      'A check stores nothing. An import leaves out rows that fail, and you get them back as a file.',
    ),
    said,
    element('div', { class: 'actions' }, check, start),
  );
  return {
    part,
    /** @param {number} total rows of the file */
    counted: (total) => fill(start, total === 1 ? 'Import the row' : `Import all ${numbers.format(total)} rows`),
    /** Discards the result of the check: the settings have changed. */
    changed: () => {
      looks++;
      fill(said);
    },
  };
}

/**
 * @param {object} body
 * @param {Mapped} mapped
 * @param {() => boolean} wanted
 * @returns {Promise<{ job: Job, failed: RowResult[] } | null>} null: it is not wanted any more
 */
async function tryOut(body, { sample, source }, wanted) {
  const key = () => crypto.randomUUID();
  /** @type {Job} */
  let job = await call('/bulk/jobs', { body: { ...body, checkOnly: true }, key: key() });
  const path = `/bulk/jobs/${job.jobId}`;
  try {
    if (sample.part)
      await call(`${path}/parts/1`, {
        method: 'PUT',
        content: { type: TYPES[source.format], bytes: sample.part },
        key: key(),
      });
    await call(`${path}/start`, { method: 'POST', key: key() });
    while (!ended(job)) {
      if (!wanted()) return null;
      await wait(ASK_MS);
      job = await call(path);
    }
    /** @type {{ records: RowResult[] }} */
    const { records } = await call(`${path}/results?outcome=failed&take=${sample.rows.length}`);
    return { job, failed: records };
  } finally {
    // It counts towards the user's open jobs. If this fails, the platform removes it later.
    void forget(job, path).catch(() => {});
  }
}

/**
 * @param {Job} job
 * @param {string} path
 */
async function forget(job, path) {
  if (!ended(job)) await call(`${path}/cancel`, { method: 'POST', key: crypto.randomUUID() }).catch(() => {});
  await call(path, { method: 'DELETE', key: crypto.randomUUID() });
}

/**
 * @param {Job} job
 * @param {RowResult[]} failed
 * @param {Mapped} mapped
 * @param {Intl.NumberFormat} numbers
 */
function outcome({ state, error, counts }, failed, { sample, source }, numbers) {
  const rows = (/** @type {number} */ count) => `${numbers.format(count)} ${count === 1 ? 'row' : 'rows'}`;
  if (state !== 'COMPLETED')
    return problem(
      'The file cannot be imported like this',
      error ? `${error.message} (${error.code})` : 'The check was canceled.',
    );
  if (failed.length === 0)
    return element(
      'p',
      { class: 'done' },
      `${sample.rows.length === 1 ? 'The row is' : `All ${rows(counts.processed)} are`} fine.`,
    );
  const problems = failed.flatMap(({ rowNumber, errors }) =>
    errors.map(({ column, message, code }) => {
      const place = column === undefined ? -1 : sample.columns.indexOf(column);
      const value = sample.rows[rowNumber - 1]?.[place] ?? '';
      return { row: rowInFile(rowNumber, source.format), column, value, message, code };
    }),
  );
  const left = problems.length - SHOWN_PROBLEMS;
  return element(
    'div',
    { class: 'found' },
    element(
      'h3',
      {},
      counts.processed === 1
        ? 'The row would fail'
        : `${numbers.format(failed.length)} of ${rows(counts.processed)} would fail`,
    ),
    problemTable(problems.slice(0, SHOWN_PROBLEMS), numbers, true),
    ...(left > 0 ? [element('p', { class: 'hint' }, `And ${numbers.format(left)} more.`)] : []),
    element(
      'p',
      { class: 'hint' },
      'Correct the file and choose it again; its columns are remembered. Or import the rows that are fine.',
    ),
  );
}
