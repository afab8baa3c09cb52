/** The second step: the operation, and the field of each column. */
import { element, fill, foreign } from '../../shared/elements.js';
import { conventionsOf, matchFieldsOf, missingFields, operationsOf, targetsOf } from './columns.js';
import { isLeftOut, repeatedNames } from './file.js';

/** @import { Description, Operation, Sample, Settings, Source, Target } from './types.d.ts' */

const EXAMPLES = 3;

/** @type {Record<Operation, [label: string, hint: string]>} */
const OPERATIONS = {
  create: ['Create records', 'Becomes a new record.'],
  upsert: ['Create or update', 'Changes the record with the same key, or becomes a new one.'],
  update: ['Update records', 'Changes the record with its id, as in an export.'],
};

/**
 * @typedef {object} Mapped
 * @property {Description} object
 * @property {ReadonlyMap<string, Description>} referenced
 * @property {Source} source
 * @property {Sample} sample
 * @property {Settings} settings changed in place
 * @property {readonly string[]} locales
 */

/**
 * @param {Mapped} mapped
 * @param {() => void} changed
 */
export function mappingPart(mapped, changed) {
  const { source } = mapped;
  const table = element('div', {});
  const options = element('div', { class: 'options' });
  const drawn = () => {
    fill(options, ...optionsOf(mapped, drawn, changed));
    fill(table, ...tableOf(mapped, changed));
    changed();
  };
  const part = element(
    'section',
    { class: 'card', 'aria-labelledby': 'columns' },
    element('h2', { id: 'columns' }, 'Columns'),
    operationChoice(mapped, drawn),
    options,
    ...(source.format === 'csv' ? [localeChoice(mapped, changed)] : []),
    table,
  );
  drawn();
  return part;
}

/**
 * @param {Mapped} mapped
 * @param {() => void} changed
 */
function operationChoice({ object, settings }, changed) {
  const choices = operationsOf(object).map((operation) => {
    const [label, hint] = OPERATIONS[operation];
    const input = element('input', {
      type: 'radio',
      name: 'operation',
      id: `operation-${operation}`,
      value: operation,
      checked: settings.operation === operation,
      'aria-describedby': `operation-${operation}-hint`,
      change: () => {
        settings.operation = operation;
        changed();
      },
    });
    return element(
      'div',
      { class: 'choice' },
      input,
      element('label', { for: `operation-${operation}` }, label),
      element('p', { class: 'hint', id: `operation-${operation}-hint` }, hint),
    );
  });
  return element('fieldset', { class: 'choices' }, element('legend', {}, 'What happens to each row'), ...choices);
}

/**
 * @param {Mapped} mapped
 * @param {() => void} drawn what depends on the choice is drawn anew
 * @param {() => void} changed
 */
function optionsOf({ object, settings }, drawn, changed) {
  const { operation } = settings;
  /** @type {HTMLElement[]} */
  const parts = [];
  if (operation === 'upsert')
    parts.push(
      choice(
        'match',
        'Find existing records by',
        settings.externalIdField,
        (value) => {
          settings.externalIdField = value;
          drawn();
          document.getElementById('match')?.focus();
        },
        matchFieldsOf(object).map(({ apiName, label }) => [apiName, label]),
      ),
    );
  if (operation === 'update')
    parts.push(
      tick(
        'overwrite',
        'Overwrite changes that were made since the export',
        'Requires the permission to modify all records. Otherwise a row whose record has changed since fails.',
        settings.overwrite,
        (on) => {
          settings.overwrite = on;
          changed();
        },
      ),
    );
  else
    parts.push(
      tick(
        'duplicates',
        'Import rows that may be duplicates',
        'Otherwise a row that resembles an existing record fails.',
        settings.duplicates,
        (on) => {
          settings.duplicates = on;
          changed();
        },
      ),
    );
  return parts;
}

/**
 * @param {string} id
 * @param {string} label
 * @param {string} hint
 * @param {boolean} on
 * @param {(on: boolean) => void} set
 */
function tick(id, label, hint, on, set) {
  const input = /** @type {HTMLInputElement} */ (
    element('input', {
      type: 'checkbox',
      id,
      checked: on,
      'aria-describedby': `${id}-hint`,
      change: () => set(input.checked),
    })
  );
  return element(
    'div',
    { class: 'choice' },
    input,
    element('label', { for: id }, label),
    element('p', { class: 'hint', id: `${id}-hint` }, hint),
  );
}

/**
 * @param {string} id
 * @param {string} label
 * @param {string} value
 * @param {(value: string) => void} set
 * @param {readonly (readonly [string, string])[]} options
 */
export function choice(id, label, value, set, options) {
  const select = /** @type {HTMLSelectElement} */ (
    element(
      'select',
      { id, change: () => set(select.value) },
      ...options.map(([name, text]) => element('option', { value: name, selected: name === value }, text)),
    )
  );
  return element('div', { class: 'field' }, element('label', { for: id }, label), select);
}

/**
 * @param {Mapped} mapped
 * @param {() => void} changed
 */
function localeChoice({ settings, locales }, changed) {
  const names = new Intl.DisplayNames(['en'], { type: 'language' });
  return choice(
    'locale',
    'Format of numbers and dates',
    settings.locale,
    (value) => {
      settings.locale = value;
      changed();
    },
    [
      ['', '1234.5, 2026-11-21'],
      ...locales.map(
        (locale) => /** @type {const} */ ([locale, `${conventionsOf(locale).example} · ${names.of(locale)}`]),
      ),
    ],
  );
}

/**
 * @param {Mapped} mapped
 * @param {() => void} changed
 */
function tableOf({ object, referenced, sample, settings }, changed) {
  const targets = targetsOf(object, referenced, settings.operation);
  const names = new Set(targets.map(({ name }) => name));
  const repeated = new Set(repeatedNames(sample.columns));
  const missing = element('p', { class: 'note', id: 'missing', role: 'status' });
  const noted = () => {
    const labels = missingFields(settings, targets);
    missing.hidden = labels.length === 0;
    fill(
      missing,
      `New records need ${labels.length === 1 ? 'a value' : 'values'} for `,
      ...commas(labels),
      ', for which no column stands.',
    );
  };
  const rows = [...new Set(sample.columns)].flatMap((column) => {
    if (isLeftOut(column)) return [];
    // The target may not exist for this operation, or not any more.
    if (!names.has(settings.columns[column] ?? '')) settings.columns[column] = '';
    if (repeated.has(column)) settings.columns[column] = '';
    const place = sample.columns.indexOf(column);
    const select = targetSelect(column, targets, settings.columns[column] ?? '', (value) => {
      settings.columns[column] = value;
      noted();
      changed();
    });
    if (repeated.has(column)) select.disabled = true;
    return [
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, foreign(column)),
        element('td', { class: 'examples' }, ...examplesOf(sample, place)),
        element(
          'td',
          {},
          select,
          ...(repeated.has(column)
            ? [element('p', { class: 'hint' }, 'Several columns have this name. Rename them to import them.')]
            : []),
        ),
      ),
    ];
  });
  noted();
  return [
    missing,
    element(
      'table',
      { class: 'mapping' },
      element('caption', { class: 'visually-hidden' }, 'Columns of the file, and the fields they stand for'),
      element(
        'thead',
        {},
        element('tr', {}, ...['Column', 'First rows', 'Field'].map((text) => element('th', { scope: 'col' }, text))),
      ),
      element('tbody', {}, ...rows),
    ),
  ];
}

/** @param {string[]} labels */
const commas = (labels) => labels.flatMap((label, at) => [...(at > 0 ? [', '] : []), foreign(label)]);

/**
 * @param {Sample} sample
 * @param {number} place
 */
function examplesOf({ rows }, place) {
  const cells = [...new Set(rows.flatMap((row) => row[place]?.trim() || []))].slice(0, EXAMPLES);
  if (cells.length === 0) return [element('span', { class: 'none' }, 'Empty')];
  return cells.map((cell) => element('span', { dir: 'auto' }, cell));
}

/**
 * @param {string} column
 * @param {readonly Target[]} targets
 * @param {string} chosen
 * @param {(value: string) => void} set
 */
function targetSelect(column, targets, chosen, set) {
  const groups = Map.groupBy(targets, ({ group }) => group);
  const options = [...groups].map(([label, members]) =>
    element(
      'optgroup',
      { label },
      ...members.map(({ name, label: text, required }) =>
        element('option', { value: name, selected: name === chosen }, required ? `${text} (required)` : text),
      ),
    ),
  );
  const select = /** @type {HTMLSelectElement} */ (
    element(
      'select',
      {
        'aria-label': `Field for ${column}`,
        'data-column': column,
        change: () => {
          select.classList.toggle('out', select.value === '');
          set(select.value);
        },
      },
      element('option', { value: '' }, 'Leave out'),
      ...options,
    )
  );
  select.classList.toggle('out', chosen === '');
  return select;
}
