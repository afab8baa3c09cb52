/** Maps the columns of a file to fields, and guesses the mapping. Pure. */

/** @import { Description, Field, Operation, Sample, Settings, Target } from './types.d.ts' */

const NUMBERS = new Set(['integer', 'decimal', 'currency', 'percent']);

/** @param {Field} field */
const formOf = ({ fieldType }) => (NUMBERS.has(fieldType) ? 'number' : fieldType === 'date' ? 'date' : 'other');

/** @param {Field} field */
const isReference = ({ referenceTo }) => referenceTo.length > 0;

/**
 * All targets that a column of a file can be mapped to.
 * @param {Description} object
 * @param {ReadonlyMap<string, Description>} referenced objects that its references point to, by apiName
 * @param {Operation} operation
 * @returns {Target[]} those of fields by label
 */
export function targetsOf(object, referenced, operation) {
  const fields = object.fields.filter(({ editable, apiName }) => editable && apiName !== 'id');
  const labels = fields.map(({ label }) => label);
  const own = fields.map(
    /** @returns {Target} */
    (field) => ({
      name: field.apiName,
      // Several fields may have the same label.
      label:
        labels.filter((label) => label === field.label).length > 1 ? `${field.label} (${field.apiName})` : field.label,
      group: 'Fields',
      aliases: [field.apiName, field.label],
      form: formOf(field),
      required: operation !== 'update' && field.required && !field.defaultedOnCreate,
    }),
  );
  const keys = fields.filter(isReference).flatMap((field) => keysOf(field, referenced));
  return [...recordTargets(operation), ...byLabel(own), ...byLabel(keys)];
}

/** @param {Target[]} targets */
const byLabel = (targets) => targets.sort((a, b) => a.label.localeCompare(b.label));

/**
 * @param {Operation} operation
 * @returns {Target[]}
 */
function recordTargets(operation) {
  /** @type {[string, string][]} */
  const names = [
    ...(operation === 'update' ? [/** @type {[string, string]} */ (['id', 'Id of the record'])] : []),
    ...(operation === 'create' ? [] : [/** @type {[string, string]} */ (['_etag', 'Version of the record (_etag)'])]),
  ];
  return names.map(([name, label]) => ({
    name,
    label,
    group: 'Record',
    aliases: [name],
    form: 'other',
    required: false,
  }));
}

/**
 * @param {Field} field a reference
 * @param {ReadonlyMap<string, Description>} referenced
 * @returns {Target[]} for each external id of the records that it may name
 */
function keysOf(field, referenced) {
  const objects = field.referenceTo.flatMap((name) => referenced.get(name) ?? []);
  return objects.flatMap((object) =>
    object.fields
      .filter(({ externalId }) => externalId)
      .map((key) => ({
        name: `${field.apiName}.${key.apiName}`,
        label: `${field.label}: ${key.label}${objects.length > 1 ? ` (${object.label})` : ''}`,
        group: 'A record that is found by a key',
        aliases: [
          `${field.apiName}.${key.apiName}`,
          `${field.label} ${key.label}`,
          `${object.label} ${key.label}`,
          key.label,
          key.apiName,
        ],
        form: /** @type {const} */ ('other'),
        required: false,
      })),
  );
}

/**
 * Normalizes a name for comparison: `AccountId__c` becomes `accountid`.
 * @param {string} name
 */
const simple = (name) =>
  name
    .replace(/__c\b/g, '')
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, '');

/**
 * Guesses the target of each column; each target is used at most once. The first aliases of all targets are tried first.
 * @param {readonly string[]} columns
 * @param {readonly Target[]} targets
 * @returns {Record<string, string>} by name of the column; an empty name: left out
 */
export function guessColumns(columns, targets) {
  /** @type {Map<string, string>} */
  const found = new Map();
  const used = new Set();
  const ranks = Math.max(0, ...targets.map(({ aliases }) => aliases.length));
  for (let rank = 0; rank < ranks; rank++)
    for (const { name, aliases } of targets) {
      const alias = simple(aliases[rank] ?? '');
      const column = alias && columns.find((one) => !found.has(one) && simple(one) === alias);
      if (!column || used.has(name)) continue;
      found.set(column, name);
      used.add(name);
    }
  return Object.fromEntries(columns.map((column) => [column, found.get(column) ?? '']));
}

/**
 * @param {Description} object
 * @returns {Operation[]} what the user may do to records of the object by an import
 */
export const operationsOf = ({ capabilities: { creatable, updateable }, fields }) => [
  ...(creatable ? [/** @type {const} */ ('create')] : []),
  ...(creatable && updateable && fields.some(isKey) ? [/** @type {const} */ ('upsert')] : []),
  ...(updateable ? [/** @type {const} */ ('update')] : []),
];

/** @param {Field} field */
const isKey = ({ externalId, editable }) => externalId && editable;

/** @param {Description} object */
export const matchFieldsOf = ({ fields }) => fields.filter(isKey);

/**
 * @param {readonly string[]} columns
 * @param {Description} object
 * @returns {Pick<Settings, 'operation' | 'externalIdField'>} the key of a record in the file says that it may be there
 */
export function guessOperation(columns, object) {
  const possible = operationsOf(object);
  const names = new Set(columns.map(simple));
  const key = matchFieldsOf(object).find(
    ({ apiName, label }) => names.has(simple(apiName)) || names.has(simple(label)),
  );
  const externalIdField = (key ?? matchFieldsOf(object)[0])?.apiName ?? '';
  if (columns.includes('id') && possible.includes('update')) return { operation: 'update', externalIdField };
  if (key && possible.includes('upsert')) return { operation: 'upsert', externalIdField };
  return { operation: possible[0] ?? 'create', externalIdField };
}

/** Locales that are offered besides those of the user. */
const LOCALES = [
  ...['en-US', 'en-GB', 'de-DE', 'de-CH', 'fr-FR', 'es-ES', 'it-IT', 'nl-NL', 'pl-PL', 'pt-BR', 'sv-SE', 'da-DK'],
  ...['cs-CZ', 'hu-HU', 'tr-TR', 'ja-JP'],
];

/** @param {readonly string[]} preferred of the user */
export const localesOf = (preferred) => [...new Set([...preferred, ...LOCALES])];

/** @param {string} locale */
export function conventionsOf(locale) {
  const parts = new Intl.NumberFormat(locale, { numberingSystem: 'latn' }).formatToParts(1_234_567.5);
  const days = new Intl.DateTimeFormat(locale, {
    ...{ year: 'numeric', month: '2-digit', day: '2-digit', calendar: 'gregory', numberingSystem: 'latn' },
    timeZone: 'UTC',
  });
  /** @param {string} type */
  const sign = (type) => parts.find((part) => part.type === type)?.value ?? '';
  return {
    decimal: sign('decimal'),
    group: sign('group'),
    order: days
      .formatToParts(0)
      .map(({ type }) => type)
      .filter((type) => type !== 'literal')
      .join(' '),
    example: `${new Intl.NumberFormat(locale, { numberingSystem: 'latn', minimumFractionDigits: 2 }).format(1234.5)}, ${days.format(Date.UTC(2026, 10, 21))}`,
  };
}

/**
 * Guesses the locale of the numbers and days in a file; empty: they are in the format of JSON, or there are none.
 * @param {Sample} sample
 * @param {Record<string, string>} columns
 * @param {readonly Target[]} targets
 * @param {readonly string[]} locales those of the user first
 */
export function guessLocale(sample, columns, targets, locales) {
  /** @param {Target['form']} form */
  const cells = (form) =>
    sample.columns.flatMap((name, place) =>
      targets.some((target) => target.form === form && target.name === columns[name])
        ? sample.rows.flatMap((row) => row[place]?.trim() || [])
        : [],
    );
  const numbers = cells('number').filter((cell) => /^[+-]?\d[\d.,'’ \u00a0\u202f]*$/.test(cell));
  const days = cells('date').filter((cell) => /^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}$/.test(cell));
  const plain =
    numbers.every((cell) => /^-?\d+(?:\.\d+)?$/.test(cell)) && days.every((cell) => /^\d{4}-\d{2}-\d{2}$/.test(cell));
  if (plain) return '';
  const fits = locales.find((locale) => {
    const { decimal, group, order } = conventionsOf(locale);
    return numbers.every((cell) => isNumber(cell, decimal, group)) && days.every((cell) => isDay(cell, order));
  });
  return fits ?? '';
}

/**
 * @param {string} cell
 * @param {string} decimal
 * @param {string} group
 */
function isNumber(cell, decimal, group) {
  const [whole = '', fraction = '0', ...more] = cell.replace(/^[+-]/, '').split(decimal);
  const [first = '', ...groups] = whole.replace(/[\u00a0\u202f]/g, ' ').split(group.replace(/[\u00a0\u202f]/g, ' '));
  const digits = [first, ...groups, fraction].every((part) => /^\d+$/.test(part));
  return more.length === 0 && digits && groups.every(({ length }) => length === 3);
}

/**
 * @param {string} cell
 * @param {string} order such as `day month year`
 */
function isDay(cell, order) {
  if (/^\d{4}-\d{2}-\d{2}$/.test(cell)) return true;
  const parts = cell.split(/[./-]/).map(Number);
  const names = order.split(' ');
  const [day = 0, month = 0, year = 0] = ['day', 'month', 'year'].map((name) => parts[names.indexOf(name)] ?? 0);
  return day >= 1 && day <= 31 && month >= 1 && month <= 12 && year >= 1000;
}

/**
 * @param {Settings} settings
 * @param {readonly Target[]} targets
 * @returns {string[]} what keeps the import from beginning
 */
export function problemsOf({ operation, externalIdField, columns, overwrite }, targets) {
  const names = Object.values(columns).filter((name) => name !== '');
  const labelOf = (/** @type {string} */ name) => targets.find((target) => target.name === name)?.label ?? name;
  // A reference by its id and by a key are one field.
  const fields = names.map((name) => name.split('.', 1)[0] ?? '');
  const repeated = [...new Set(fields.filter((name, at) => fields.indexOf(name) !== at))];
  return [
    ...(names.length === 0 ? ['No column stands for a field yet.'] : []),
    ...repeated.map((name) => `Two columns stand for ${labelOf(name)}. Leave one of them out.`),
    ...(operation === 'upsert' && names.length > 0 && !names.includes(externalIdField)
      ? [`No column stands for ${labelOf(externalIdField)}, by which records are found.`]
      : []),
    ...(operation === 'update' && !names.includes('id')
      ? ['No column stands for the id of the record. An export has it, as “id”.']
      : []),
    ...(operation === 'update' && !overwrite && !names.includes('_etag')
      ? ['No column stands for the version of the record. An export has it, as “_etag”.']
      : []),
  ];
}

/**
 * @param {Settings} settings
 * @param {readonly Target[]} targets
 * @returns {string[]} labels of fields without which every new record would fail
 */
export const missingFields = ({ columns }, targets) =>
  targets
    .filter(({ required, name }) => required && !Object.values(columns).some((one) => one.split('.', 1)[0] === name))
    .map(({ label }) => label);

/**
 * The body of the job.
 * @param {string} objectApiName
 * @param {Pick<import('./types.d.ts').Source, 'format' | 'delimiter'>} source
 * @param {Settings} settings
 */
export function jobOf(objectApiName, { format, delimiter }, settings) {
  const { operation, externalIdField, columns, locale, duplicates, overwrite } = settings;
  return {
    operation,
    objectApiName,
    format,
    ...(format === 'csv' ? { csv: { delimiter, ...(locale ? { locale } : {}) } } : {}),
    columns: Object.fromEntries(Object.entries(columns).map(([column, target]) => [column, target || null])),
    ...(operation === 'upsert' ? { externalIdField } : {}),
    ...(duplicates ? { duplicatePolicy: 'report' } : {}),
    ...(operation === 'update' && overwrite ? { conflictPolicy: 'lastWriteWins' } : {}),
  };
}
