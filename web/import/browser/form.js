/** The form of a new import: object and file, columns, check. */
import { CallFailed, call } from '../../shared/api.js';
import { announce, element, fill, foreign } from '../../shared/elements.js';
import { showBox } from '../../shared/failure.js';
import { guessColumns, guessLocale, guessOperation, localesOf, operationsOf, targetsOf } from './columns.js';
import { failureBox } from './failure.js';
import { countRows, DELIMITERS, ENCODINGS, isLeftOut, openFile, sampleOf } from './file.js';
import { beginImport } from './job.js';
import { earlierImports } from './jobs.js';
import { lookPart } from './look.js';
import { choice, mappingPart } from './mapping.js';

/** @import { Place, View } from '../../shared/types.d.ts' */
/** @import { Description, ObjectSummary, Sample, Settings, Source } from './types.d.ts' */

/** Maximum number of referenced objects that are described; further ones offer no keys. */
const REFERENCED_MAX = 20;
/** Imports refuse this object, since its records give access. */
const NOT_IMPORTED = 'User';
/** Storage of the settings for the next file with the same columns, such as the corrected one. */
const SETTINGS = 'import-settings:';

/**
 * @param {HTMLElement} main
 * @param {Place} place
 * @param {(address: string) => void} go
 * @returns {Promise<View>}
 */
export async function showForm(main, place, go) {
  /** @type {{ records: ObjectSummary[] }} */
  const { records } = await call('/objects');
  const earlier = await earlierImports(records, place);
  const objects = records
    .filter(({ apiName, capabilities }) => apiName !== NOT_IMPORTED && capabilities.creatable)
    .sort((a, b) => a.label.localeCompare(b.label));
  const head = [
    element('h1', { tabindex: '-1' }, 'Import a spreadsheet'),
    element(
      'p',
      { class: 'lead' },
      'Bring the rows of a CSV or NDJSON file in as records. You see what would fail before anything is stored.',
    ),
  ];
  if (objects.length === 0) {
    const text = 'You may create no records of any object. An administrator of your company can change that.';
    fill(main, ...head, element('p', { class: 'empty' }, text), ...earlier);
    return { title: 'Import' };
  }
  const form = new Form(objects, place, go);
  fill(main, ...head, ...form.parts, ...earlier);
  return { title: 'Import', close: () => form.close() };
}

class Form {
  /** @type {Source | null} */
  #source = null;
  /** Number of the current choice: results for an earlier one are discarded. */
  #chosen = 0;
  #counting = new AbortController();
  #objectName = '';
  #place;
  #go;
  #said = element('div', {});
  #reading = element('div', { class: 'reading' });
  #rest = element('div', {});
  #fileName = element(
    'p',
    { class: 'file-name', id: 'file-name' },
    'CSV or NDJSON, up to 1 GiB. The first row names the columns.',
  );
  #first;

  /**
   * @param {ObjectSummary[]} objects
   * @param {Place} place
   * @param {(address: string) => void} go
   */
  constructor(objects, place, go) {
    this.#place = place;
    this.#go = go;
    const asked = new URLSearchParams(location.search).get('object');
    this.#objectName = objects.find(({ apiName }) => apiName === asked)?.apiName ?? '';
    const object = choice(
      'object',
      'Import into',
      this.#objectName,
      (value) => {
        this.#objectName = value;
        history.replaceState(null, '', value ? `/import?${new URLSearchParams({ object: value })}` : '/import');
        void this.#show();
      },
      [['', 'Choose…'], ...objects.map(({ apiName, label }) => /** @type {const} */ ([apiName, label]))],
    );
    this.#first = element(
      'section',
      { class: 'card', 'aria-labelledby': 'file-heading' },
      element('h2', { id: 'file-heading' }, 'What to import'),
      object,
      this.#drop(),
      this.#reading,
      this.#said,
    );
  }

  get parts() {
    return [this.#first, this.#rest];
  }

  close() {
    this.#chosen++;
    this.#counting.abort();
  }

  #drop() {
    const input = /** @type {HTMLInputElement} */ (
      element('input', {
        type: 'file',
        id: 'file',
        accept: '.csv,.tsv,.txt,.ndjson,.jsonl',
        'aria-describedby': 'file-name',
        change: () => {
          const [file] = input.files ?? [];
          // Choosing the same file again, after correcting it, must fire a change event.
          input.value = '';
          if (file) void this.#open(file);
        },
      })
    );
    const zone = element(
      'div',
      { class: 'drop' },
      element('label', { for: 'file' }, 'Choose a file'),
      element('span', { class: 'or', 'aria-hidden': 'true' }, 'or drop it here'),
      input,
      this.#fileName,
    );
    /** @param {DragEvent} event */
    const over = (event) => {
      event.preventDefault();
      zone.classList.toggle('over', event.type === 'dragover');
    };
    zone.addEventListener('dragover', over);
    zone.addEventListener('dragleave', over);
    zone.addEventListener('drop', (event) => {
      over(event);
      const [file] = event.dataTransfer?.files ?? [];
      if (file) void this.#open(file);
    });
    return zone;
  }

  /** @param {File} file */
  async #open(file) {
    const chosen = ++this.#chosen;
    this.#source = null;
    fill(this.#said);
    fill(this.#rest);
    fill(this.#reading, element('p', { class: 'working' }, `Reading ${file.name}…`));
    try {
      const source = await openFile(file);
      if (chosen !== this.#chosen) return;
      this.#source = source;
      fill(this.#fileName, foreign(file.name), `, ${sizeOf(file.size, this.#place.locale)}`);
      this.#drawReading(source);
      announce(`${file.name} is chosen.`);
      await this.#show();
    } catch (error) {
      if (chosen !== this.#chosen) return;
      fill(this.#reading);
      showBox(this.#said, failureBox('The file cannot be imported', error));
    }
  }

  /** @param {Source} source */
  #drawReading(source) {
    const again = () => void this.#show();
    fill(
      this.#reading,
      choice(
        'encoding',
        'Encoding',
        source.encoding,
        (value) => {
          source.encoding = value;
          again();
        },
        ENCODINGS,
      ),
      ...(source.format === 'csv'
        ? [
            choice(
              'delimiter',
              'Delimiter',
              source.delimiter,
              (value) => {
                source.delimiter = value;
                again();
              },
              DELIMITERS,
            ),
          ]
        : []),
    );
  }

  /** Shows the columns of the chosen file with the guessed mapping. */
  async #show() {
    const chosen = ++this.#chosen;
    const source = this.#source;
    this.#counting.abort();
    this.#counting = new AbortController();
    fill(this.#said);
    if (!source || !this.#objectName) {
      fill(this.#rest);
      return;
    }
    const { signal } = this.#counting;
    try {
      const [sample, { object, referenced }] = await Promise.all([sampleOf(source), described(this.#objectName)]);
      if (chosen !== this.#chosen) return;
      const locales = localesOf([this.#place.locale, ...navigator.languages].filter((locale) => locale.includes('-')));
      const settings = settingsFor(object, referenced, sample, source, locales);
      const mapped = { object, referenced, source, sample, settings, locales };
      const look = lookPart(
        mapped,
        async (body) => {
          keepSettings(object.apiName, settings);
          this.#go(`/import/${await beginImport(body, source)}`);
        },
        this.#place.locale,
      );
      let isGuess = true;
      const mapping = mappingPart(mapped, () => {
        // Guesses are not kept: the next file may give better ones.
        if (!isGuess) keepSettings(object.apiName, settings);
        look.changed();
      });
      isGuess = false;
      fill(this.#rest, mapping, look.part);
      look.counted(await countRows(source, signal));
    } catch (error) {
      if (chosen !== this.#chosen || signal.aborted) return;
      fill(this.#rest);
      showBox(this.#said, failureBox('The file cannot be imported', error));
    }
  }
}

/**
 * @param {number} bytes
 * @param {string} locale
 */
function sizeOf(bytes, locale) {
  const units = /** @type {const} */ (['byte', 'kilobyte', 'megabyte', 'gigabyte']);
  const step = Math.min(units.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(1_000)));
  return new Intl.NumberFormat(locale, {
    style: 'unit',
    unit: units[step],
    unitDisplay: step === 0 ? 'long' : 'short',
    maximumFractionDigits: 1,
  }).format(bytes / 1_000 ** step);
}

/**
 * @param {string} objectName
 * @returns {Promise<{ object: Description, referenced: Map<string, Description> }>} with the objects that it refers to
 */
async function described(objectName) {
  const describe = (/** @type {string} */ name) => call(`/objects/${encodeURIComponent(name)}/describe`);
  /** @type {Description} */
  const object = await describe(objectName);
  const names = [
    ...new Set(object.fields.filter(({ editable }) => editable).flatMap(({ referenceTo }) => referenceTo)),
  ];
  /** @type {(Description | null)[]} */
  const others = await Promise.all(
    names.slice(0, REFERENCED_MAX).map((name) =>
      describe(name).catch((error) => {
        // Keys of this object are then not offered.
        if (error instanceof CallFailed) return null;
        throw error;
      }),
    ),
  );
  return { object, referenced: new Map(others.flatMap((one) => (one ? [[one.apiName, one]] : []))) };
}

/**
 * The settings of the last file with the same columns; else guessed ones.
 * @param {Description} object
 * @param {ReadonlyMap<string, Description>} referenced
 * @param {Sample} sample
 * @param {Source} source
 * @param {readonly string[]} locales
 * @returns {Settings}
 */
function settingsFor(object, referenced, sample, source, locales) {
  const columns = [...new Set(sample.columns)];
  /** @type {Settings | null} */
  const kept = JSON.parse(sessionStorage.getItem(SETTINGS + object.apiName) ?? 'null');
  const named = columns.filter((column) => !isLeftOut(column));
  const known = kept ? Object.keys(kept.columns).filter((column) => !isLeftOut(column)) : [];
  if (
    kept &&
    operationsOf(object).includes(kept.operation) &&
    known.length === named.length &&
    named.every((column) => known.includes(column))
  )
    return { ...kept, columns: Object.fromEntries(columns.map((column) => [column, kept.columns[column] ?? ''])) };
  const guess = guessOperation(columns, object);
  const targets = targetsOf(object, referenced, guess.operation);
  const guessed = guessColumns(named, targets);
  const all = Object.fromEntries(columns.map((column) => [column, guessed[column] ?? '']));
  const locale = source.format === 'csv' ? guessLocale(sample, all, targets, locales) : '';
  return { ...guess, columns: all, locale, duplicates: false, overwrite: false };
}

/**
 * @param {string} objectName
 * @param {Settings} settings
 */
function keepSettings(objectName, settings) {
  try {
    sessionStorage.setItem(SETTINGS + objectName, JSON.stringify(settings));
  } catch {
    // Storage is unavailable: the columns are guessed again.
  }
}
